"""Settings of every test: no deadline on a busy machine, and markers by need."""

from __future__ import annotations

import gc
import re
import resource
from collections.abc import Generator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_TESTS = Path(__file__).parent

# Hypothesis fails an example that takes 200 ms, and a test whose examples are slow to draw.
settings.register_profile("busy", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

_NEEDS = {"rtl": "rtl", "e2e": "ssh", "fault": "ssh", "unit/tui": "tui"}
"""Marker of every test below a folder of tests/."""
_SLOW = {*_NEEDS.values(), "slow"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by need, so that `-m "not rtl and not ssh and not tui"` selects the quick ones.

    Files that wait for boards are spread among the slow ones that do not, whose work fills the waits. Files of quick
    tests come last: they keep all workers busy to the end.
    """
    for item in items:
        folder = item.path.relative_to(_TESTS).as_posix()
        for prefix, marker in _NEEDS.items():
            if folder.startswith(prefix + "/"):
                item.add_marker(marker)
    marks: dict[Path, set[str]] = {}
    for item in items:
        marks.setdefault(item.path, set()).update(mark.name for mark in item.iter_markers())
    waiting = [path for path, names in marks.items() if "ssh" in names]
    working = [path for path, names in marks.items() if "ssh" not in names and names & _SLOW]
    place = {path: number / len(waiting) for number, path in enumerate(waiting)}
    place |= {path: number / len(working) for number, path in enumerate(working)}
    items.sort(key=lambda item: place.get(item.path, 1.0))


def pytest_collection_finish() -> None:
    """Spare the collector the thousands of collected tests, and most of its runs: a twentieth of the quick tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


_folders = count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of the test's own, numbered without a look at those of all tests before, as pytest's is."""
    name = re.sub(r"\W", "_", request.node.name)[:26]
    return tmp_path_factory.mktemp(f"{name}{next(_folders)}", numbered=False)


@pytest.fixture(scope="module")
def quick_search() -> Generator[None]:
    """Try few schedules for each layer: half of a compilation's time. For tests that hold whatever is chosen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hilt.network.search._AS_IT_RUNS", 4)
        patch.setattr("hilt.network.search._ALTERNATIVES", range(2, 3))
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--processor-budget",
        type=float,
        metavar="SECONDS",
        help="print the processor time of the tests and of the processes that they started; fail above SECONDS",
    )


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Hold the session to its budget once the workers have ended: their time counts as that of children."""
    result = yield
    budget = session.config.getoption("--processor-budget")
    if budget is None or hasattr(session.config, "workerinput"):
        return result
    used = sum(
        each.ru_utime + each.ru_stime
        for each in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    print(f"\n{used:.0f} s of processor time, {used / 2:.0f} s on two cores; the budget is {budget:.0f} s")
    if used > budget and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return result
