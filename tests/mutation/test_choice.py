"""The tests of a mutant: those that ran its line, nearest and shortest first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mutation import choice
from tests.mutation.record import Ran

NAME = "small.py"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Write the module, the modules that import it, and the order of its test files."""

    def written(source: str, users: dict[str, str] | None = None, near: tuple[str, ...] = ()) -> None:
        choice._tree.cache_clear()
        choice._read_lines.cache_clear()
        for name, text in {NAME: source, **(users or {})}.items():
            (tmp_path / name).write_text(text)
        monkeypatch.setattr(choice, "ROOT", tmp_path)
        monkeypatch.setattr(choice, "users_of", lambda name: list(users or ()))
        monkeypatch.setattr(choice, "nearest_tests", lambda name: near)

    return written


def ran(*lines: int, seconds: float = 0.1, name: str = NAME) -> Ran:
    return Ran(seconds, {name: sum(1 << line for line in lines)})


def test_the_line_of_a_decorator_runs_at_import(write: Callable[..., None]) -> None:
    write("@mark(True)\ndef one() -> int:\n    return 1\n")
    tests = {"test_one": ran(3), "test_two": ran(2)}
    assert choice.line_runners(NAME, 1, tests) == ["test_two"]
    assert choice.line_runners(NAME, 3, tests) == ["test_one"]


def test_a_global_belongs_to_the_tests_that_read_it_in_any_file(write: Callable[..., None]) -> None:
    source = "HIGH = 3\n\ndef clamp(value):\n    return min(value, HIGH)\n\ndef double(value):\n    return 2 * value\n"
    write(source, {"other.py": "import small\n\n\ndef high():\n    return small.HIGH\n\n\ndef low():\n    return 0\n"})
    tests = {"test_clamp": ran(4), "test_double": ran(7), "test_high": ran(5, name="other.py")}
    assert choice.line_runners(NAME, 1, tests) == ["test_clamp", "test_high"]
    assert choice.line_runners(NAME, 1, {"test_low": ran(9, name="other.py")}) == []


def test_a_lambda_in_a_table_belongs_to_the_tests_that_run_it(write: Callable[..., None]) -> None:
    write("TABLE = {\n    'one': lambda x: x + 1,\n    'two': lambda x: (\n        x + 2\n    ),\n    'three': 3,\n}\n")
    tests = {"test_one": ran(2), "test_two": ran(3, 4), "test_other": ran(9)}
    assert choice.line_runners(NAME, 2, tests) == ["test_one"]
    assert choice.line_runners(NAME, 4, tests) == ["test_two"]
    assert choice.line_runners(NAME, 6, tests) == ["test_one", "test_two"], "of a table that is made at import"


def test_the_nearest_files_come_first_and_long_tests_last(write: Callable[..., None]) -> None:
    write("def one() -> int:\n    return 1\n", near=("test_small.py", "test_other.py"))
    tests = {
        "test_far.py::test_far": ran(2),
        "test_other.py::test_other": ran(2),
        "test_small.py::test_long": ran(2, seconds=5.0),
        "test_small.py::test_slower": ran(2, seconds=0.5),
        "test_small.py::test_short": ran(2),
        "test_small.py::test_elsewhere": ran(1),
    }
    names = [name.partition("::")[2] for name in choice.chosen(NAME, 2, tests)]
    assert names == ["test_short", "test_slower", "test_other", "test_far", "test_long"]


def test_those_of_the_same_folders_come_before_others_that_are_shorter(
    write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("")
    name = "host/hilt/tune/deep/small.py"
    monkeypatch.setattr(choice, "line_runners", lambda name, line, tests: list(tests))
    tests = {
        "tests/unit/cli/test_a.py::test_a": ran(2),
        "tests/unit/tune/test_b.py::test_long": ran(2, seconds=3.0),
        "tests/unit/tune/test_b.py::test_b": ran(2, seconds=0.5),
        "tests/unit/tune/deep/test_c.py::test_c": ran(2, seconds=8.0),
    }
    found = [test.partition("::")[2] for test in choice.chosen(name, 2, tests)]
    assert found == ["test_c", "test_b", "test_long", "test_a"]


def test_each_function_comes_once_before_any_comes_again_with_other_parameters(write: Callable[..., None]) -> None:
    write("def one() -> int:\n    return 1\n", near=("test_small.py", "test_other.py"))
    tests = {
        "test_small.py::test_a[slow]": ran(2, seconds=0.4),
        "test_small.py::test_a[quick]": ran(2, seconds=0.2),
        "test_small.py::test_a[middle]": ran(2, seconds=0.3),
        "test_other.py::test_b[x]": ran(2, seconds=0.5),
    }
    names = [name.partition("::")[2] for name in choice.chosen(NAME, 2, tests)]
    assert names == ["test_a[quick]", "test_b[x]", "test_a[middle]", "test_a[slow]"]


def test_of_a_line_that_runs_at_import_each_parameter_counts(write: Callable[..., None]) -> None:
    """The nearest file holds the edges of all fields in one test, a field a parameter."""
    write("class Message:\n    size = 3\n", near=("test_fields.py", "test_other.py"))
    tests = {f"test_fields.py::test_edge[{field}]": ran(name="other.py", seconds=5.0) for field in ("size", "kind")}
    tests["test_other.py::test_a"] = ran(name="other.py")
    assert choice.chosen(NAME, 2, tests)[:2] == ["test_other.py::test_a", "test_fields.py::test_edge[size]"]
    short = {test: Ran(0.5, each.lines) for test, each in tests.items()}
    assert choice.chosen(NAME, 2, short)[:2] == ["test_fields.py::test_edge[size]", "test_fields.py::test_edge[kind]"]


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("host/hilt/network/partition.py", "tests/unit/network_compile"),
        ("board/hilt_board/driver.py", "tests/unit/board"),
        ("host/hilt/tune/glimpse/tuner.py", "tests/unit/tune"),
    ],
)
def test_a_folder_of_tests_is_a_files_own_by_its_name(
    name: str, folder: str, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("")
    monkeypatch.setattr(choice, "line_runners", lambda name, line, tests: list(tests))
    tests = {"tests/unit/cli/test_a.py::test_a": ran(2), f"{folder}/test_b.py::test_b": ran(2, seconds=0.9)}
    assert choice.chosen(name, 2, tests)[0] == f"{folder}/test_b.py::test_b"


def test_the_tests_of_a_mutant_end_before_their_time(write: Callable[..., None]) -> None:
    write("def one() -> int:\n    return 1\n")
    tests = {f"test_{number}": ran(2, seconds=8.0 + number) for number in range(4)}
    tests["test_long"] = ran(2, seconds=12.0)
    assert choice.chosen(NAME, 2, tests) == ["test_0", "test_1", "test_2"]
    tests["test_small"] = ran(2, seconds=2.5)
    assert choice.chosen(NAME, 2, tests) == ["test_small", "test_0", "test_1", "test_2"], "three do not fit any more"
    assert choice.chosen(NAME, 2, {"test_long": ran(2, seconds=400.0)}) == ["test_long"]


def test_a_line_that_no_test_runs_has_the_tests_of_its_file_and_of_its_importers(write: Callable[..., None]) -> None:
    write("class One:\n    high = 3\n\n    def two(self):\n        return 2\n", near=("test_near.py",))
    tests = {"test_two": ran(5), "test_near.py::test_three": ran(name="other.py"), "test_far": ran(name="other.py")}
    assert choice.chosen(NAME, 2, tests) == ["test_near.py::test_three", "test_two"]
