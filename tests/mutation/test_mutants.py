"""Mutants of a small module: the changes, and that each mutant compiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import mutants
from tests.mutation.nearest import ROOT, nearest_tests

SOURCE = '''
def clamp(value: int, high: int = 7) -> int:
    """Return it."""
    if value >= high and not value == 3:
        note(value)
        return high
    return value - 1
'''


def test_each_change_is_made_once() -> None:
    made = list(mutants(SOURCE))
    changes = sorted(mutant.change for mutant in made)
    wanted = ["1 -> 2", "3 -> 4", "7 -> 8", "And -> Or", "Eq -> NotEq", "GtE -> Gt", "Sub -> Add"]
    assert changes == sorted([*wanted, "condition -> False", "not -> ", "without note(value)"])
    sources = {mutant.source(SOURCE) for mutant in made}
    assert len(sources) == len(made)
    for source in sources:
        compile(source, "mutant", "exec")


def test_a_change_does_as_its_name_says() -> None:
    by_change = {mutant.change: mutant.source(SOURCE) for mutant in mutants(SOURCE)}
    assert "value > high" in by_change["GtE -> Gt"]
    assert "not not value == 3" in by_change["not -> "]
    assert "note" not in by_change["without note(value)"]
    assert "if False:" in by_change["condition -> False"]


def test_annotations_are_left_alone() -> None:
    assert list(mutants("held: int | None = None\ndef f(a: int | str) -> int | None: ...\n")) == []


UNSEEN = (
    "_LOG.warning('lost %d', 3 + 4)",
    "async def f():\n    await self._log.debug(1)",
    "if TYPE_CHECKING:\n    HIGH = 3",
    "if reason > 3:\n    _LOG.warning(reason)\nelse:\n    _LOG.info('none')",
    "__all__ = ['a'][0:1]",
    "Text = TypeVar('Text', bound=3)",
    "value = cast(list[3], other)",
    "class Shown(Protocol):\n    def size(self) -> int:\n        return 3",
    "@overload\ndef f(a: int = 3): ...",
    "@dataclass(frozen=True, slots=True)\nclass A: ...",
    "@lru_cache(maxsize=64)\ndef f(): ...",
    "pairs = list(zip(a, b, strict=True))",
    "rows = values.reshape(count, -1)",
    "words = values.astype(kind, copy=False)",
    "class Device:\n    def run(self) -> int:\n        raise NotImplementedError",
    "value = np.random.default_rng(7)",
    "value = random.Random(7)",
    "flags = os.O_RDONLY | os.O_CLOEXEC",
)
SEEN = (
    "log.write(3)",
    "if reason > 3:\n    _LOG.warning(reason)\n    stop()",
    "_LOG.propagate = False",
    "@dataclass(eq=False)\nclass A: ...",
    "value = cast(int, 3)",
    "class Kept(Base):\n    size = 3",
    "pairs = sum(a, start=3)",
    "rows = values.reshape(2, rows)",
    "rows = values.sum(-1)",
    "words = values.view(copy=False)",
    "raise ValueError",
    "value = default_rng(seed + 1)",
    "flags = os.O_WRONLY | os.O_CLOEXEC",
    "flags = os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC",
)


@pytest.mark.parametrize("source", UNSEEN)
def test_what_no_test_can_notice_is_not_drawn(source: str) -> None:
    assert [mutant.change for mutant in mutants(source)] == []


@pytest.mark.parametrize("source", SEEN)
def test_what_is_like_it_and_can_be_noticed_is_drawn(source: str) -> None:
    assert list(mutants(source))


def test_a_dropped_log_line_is_none_and_its_neighbour_is_one() -> None:
    source = "def f():\n    _LOG.info('begun')\n    begin()\n"
    assert [mutant.change for mutant in mutants(source)] == ["without begin()"]


@pytest.mark.parametrize(
    ("source", "bounds", "others"),
    [
        ("_ANSWER_SECONDS = 2.0", 1, 0),
        ("SECONDS: float = 3 * 60", 2, 1),  # another product is another time by far
        ("read(1, timeout=5.0)", 1, 1),
        ("wait(timeout_seconds=None, times=2)", 0, 1),
        ("def f():\n    seconds = 2", 0, 1),
        ("SECONDS, ROWS = 2, 3", 0, 2),
        ("SECONDS_OF = {1: 2}", 0, 2),
    ],
)
def test_numbers_that_only_bound_a_time_are_told_apart(source: str, bounds: int, others: int) -> None:
    changed = [each.bounds_time for each in mutants(source) if not each.change.startswith("without")]
    assert (changed.count(True), changed.count(False)) == (bounds, others)


@pytest.mark.parametrize("name", EQUIVALENT)
def test_each_equivalent_mutant_is_one(name: str) -> None:
    source = (Path(__file__).parents[2] / name).read_text(encoding="utf-8")
    lines = source.splitlines()
    made = {(lines[each.line - 1].strip(), each.change) for each in mutants(source)}
    assert EQUIVALENT[name].keys() <= made


def test_the_tests_of_a_file_are_those_that_import_it_nearest_first() -> None:
    tests = nearest_tests("host/hilt/engine/pace.py")
    assert tests[0] == "tests/unit/engine/test_pace.py"
    direct = [test for test in tests if "hilt.engine.pace import" in (ROOT / test).read_text(encoding="utf-8")]
    assert set(tests[: len(direct)]) == set(direct)
    assert "tests/unit/engine/test_loop_pace.py" in tests, "it imports the statistics, which import the pace"
    assert "tests/unit/hls/test_nothing.py" not in tests and len(tests) == len(set(tests))


@pytest.mark.parametrize(
    ("name", "test"),
    [
        ("board/hilt_board/worker.py", "tests/unit/board/test_worker.py"),  # by importlib
        ("board/hilt_board/protocol/trials.py", "tests/unit/board/test_protocol.py"),  # by the package
        ("host/hilt/engine/__main__.py", "tests/unit/engine/test_process.py"),  # as a program
    ],
)
def test_modules_that_are_imported_by_name_have_tests_too(name: str, test: str) -> None:
    assert test in nearest_tests(name)
