"""The lines that each test runs and the first that fails, in children of a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from tests.mutation import record
from tests.mutation.runner import PLUGINS

MODULE = """from functools import cache

HIGH = 7

def clamp(value):
    return min(value, HIGH)

def double(value):
    return 2 * value

class Table:
    @staticmethod
    @cache
    def of(value):
        return double(value)
"""
TESTS = """
import signal
import small

def test_clamp():
    assert small.clamp(9) == 7
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

def test_double():
    assert small.double(2) == 4

def test_table():
    assert small.Table.of(3) == 6

def test_table_again():
    assert small.Table.of(3) == 6
"""
PROFILE = """
from hypothesis import settings

settings.register_profile("busy", settings.default, deadline=None)
settings.load_profile("busy")
"""
HYPOTHESIS = """
from pathlib import Path
from hypothesis import given, strategies

@given(strategies.integers())
def test_any(number):
    with Path("drawn.txt").open("a") as drawn:
        drawn.write(f"{number}\\n")
"""
PROGRAM = """
import json, signal, sys
from pathlib import Path
from tests.mutation.runner import Limits, first_failure, import_libraries, record_lines
folder, limits = Path(sys.argv[1]), Limits(60.0, 60)
signal.signal(signal.SIGINT, signal.SIG_IGN)
import_libraries()
found = {"recorded": [json.loads(line) for line in record_lines(folder, "test_small.py", limits).open()]}
found["seconds"] = json.loads((folder / "seconds.json").read_text())
names = ["test_small.py::test_double", "test_small.py::test_clamp"]
found["right"] = [first_failure(folder, names, limits), first_failure(folder, ["test_broken.py"], limits)]
module = folder / "host" / "small.py"
module.write_text(module.read_text().replace("min(value, HIGH)", "HIGH - 1"))
found["wrong"] = first_failure(folder, names, limits)
for _ in range(2):
    assert first_failure(folder, ["test_drawn.py"], limits) is None
found["drawn"] = (folder / "drawn.txt").read_text().split()
print(json.dumps(found))
"""
"""One process for all tests of this file: the libraries take seconds to import."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the findings of the program in a small module and its tests."""
    folder = tmp_path_factory.mktemp("copy")
    (folder / "host").mkdir()
    (folder / "host" / "small.py").write_text(MODULE)
    (folder / "test_small.py").write_text(TESTS)
    (folder / "test_broken.py").write_text("import absent\n")
    (folder / "conftest.py").write_text(PROFILE)
    (folder / "test_drawn.py").write_text(HYPOTHESIS)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_line_belongs_to_the_tests_that_run_it_and_an_import_to_none(found: dict[str, Any]) -> None:
    tests = found["recorded"]
    lines = {test["name"].partition("::")[2]: int(test["lines"]["host/small.py"], 16) for test in tests}
    assert {"test_clamp": 1 << 5 | 1 << 6, "test_double": 1 << 8 | 1 << 9}.items() <= lines.items()
    assert all(test["passed"] for test in tests)
    assert {test["name"]: test["seconds"] for test in tests} == found["seconds"], "as they are when nothing is recorded"


def test_a_cached_result_is_made_by_each_test_that_asks_for_it(found: dict[str, Any]) -> None:
    lines = {test["name"].partition("::")[2]: int(test["lines"]["host/small.py"], 16) for test in found["recorded"]}
    assert lines["test_table"] == lines["test_table_again"] and lines["test_table"] >> 9 & 1, "double's line too"


def test_the_first_test_that_fails_is_named(found: dict[str, Any]) -> None:
    assert found["right"] == [None, ""], "all pass; a file that cannot be imported names none"
    assert found["wrong"] == "test_small.py::test_clamp"


def test_hypothesis_draws_the_same_examples_each_time(found: dict[str, Any]) -> None:
    drawn = found["drawn"]
    assert len(drawn) > 100 and drawn[: len(drawn) // 2] == drawn[len(drawn) // 2 :]


def test_a_record_is_stale_once_a_source_that_it_names_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "ROOT", tmp_path)
    monkeypatch.setattr(record, "FOLDER", tmp_path / "kept")
    for name in ("test_small.py", "small.py", "helper.py", "other.py"):
        (tmp_path / name).write_text("")
    test = {"name": "test_small.py::test_one", "seconds": 0.5, "lines": {"small.py": "12"}, "helpers": ["helper.py"]}
    other = {"name": "test_small.py::test_two", "seconds": 0.5, "lines": {}, "helpers": []}
    recorded = tmp_path / "tests.jsonl"
    recorded.write_text("\n".join(json.dumps(each) for each in ({**test, "passed": True}, {**other, "passed": False})))
    record.keep("test_small.py", recorded)
    found = record.read("test_small.py")
    assert found.failed == ("test_small.py::test_two",)
    assert found.passed == {"test_small.py::test_one": record.Ran(0.5, {"small.py": 1 << 1 | 1 << 4})}
    assert found.passed["test_small.py::test_one"].ran("small.py", {4}) and not found.passed[test["name"]].lines.get(
        "x"
    )
    for name, is_stale in {"other.py": False, "small.py": True, "helper.py": True, "test_small.py": True}.items():
        record._digest.cache_clear()
        (tmp_path / name).write_text("changed = 1\n")
        assert record.stale(["test_small.py"]) == (["test_small.py"] if is_stale else []), name
        (tmp_path / name).write_text("")
    record._digest.cache_clear()
    assert record.stale(["test_small.py", "test_new.py"]) == ["test_new.py"]


def test_each_plugin_that_a_test_needs_is_there() -> None:
    """Let the pictures of the terminal UI take part: they need the fixture of a plugin.

    Not needed: workers, which a child is itself, and those that libraries bring for the tests of others.
    """
    installed = {each.value for each in entry_points(group="pytest11")}
    assert installed - set(PLUGINS) <= {
        "xdist.plugin",
        "xdist.looponfail",
        "platformdirs.pytest_plugin",
        "labgrid.pytestplugin",
    }
