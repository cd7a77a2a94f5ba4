"""A sample of `make fault`: faults of every kind, and engines killed at random instants."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt import paths
from hilt.measure.board_description import VirtualTarget
from hilt.measure.board_measurer import BoardMeasurer
from hilt.store import Run
from hilt.trial import Outcome
from hilt.virtual.chaos import KINDS, Chaos, parse_chaos
from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.names import chaos_of, with_chaos
from tests.e2e.conftest import stop_boards
from tests.e2e.small_programs import dot_product
from tests.fault import killed_engine
from tests.fault.campaign import ACCELERATOR, faulty_run, impatient, quiet_run
from tests.fault.killed_engine import killed_run, undisturbed
from tests.unit.engine.test_process import Gate

SEED, RATE, TRIALS = 1, 0.5, 70
"""The injected faults of the cheap kinds."""
CHEAP = (
    *("hang", "worker_crash", "wrong_output", "clock_jump", "link_drop", "full_disk"),
    *("out_of_memory", "forged_key", "impossible_counter", "escape_sequences"),
)
DEAR = {"daemon_crash": 100, "ssh_gone": 107, "freeze": 108, "slow_reboot": 111}
"""Faults that take long, each met once with that seed."""


@pytest.fixture
def patient_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A HILT_HOME under the limits of a real board: a loaded machine loses no board by its silence."""
    monkeypatch.setenv("HILT_HOME", str(tmp_path / "home"))
    yield tmp_path
    stop_boards(tmp_path / "home")


@pytest.fixture
def home(patient_home: Path) -> Iterator[Path]:
    with impatient():
        yield patient_home


@pytest.mark.timeout(600)  # a minute; beside other work boards boot in ten times their time
def test_faults_of_all_kinds_leave_the_records_of_a_quiet_run(home: Path) -> None:
    quiet = quiet_run(home, TRIALS)
    verdicts = [faulty_run(home, quiet, SEED, RATE, CHEAP)]
    verdicts += [faulty_run(home, quiet[:4], seed, 1 / 3, [kind]) for kind, seed in DEAR.items()]
    met = [fault.kind for verdict in verdicts for fault in verdict.faults]
    assert set(met) == set(KINDS) and len(met) >= 30, met
    for verdict in verdicts:
        assert (verdict.lost, verdict.doubled, verdict.misattributed) == (set(), set(), set())
        assert all(fault.seconds is not None for fault in verdict.faults)
        assert not verdict.quarantined


def test_requests_that_a_faulty_board_of_a_fleet_loses_are_measured(home: Path) -> None:
    quiet = quiet_run(home, 30)
    verdict = faulty_run(home, quiet, SEED, RATE, CHEAP, boards=2)
    assert len(verdict.faults) >= 8, verdict.faults
    assert (verdict.lost, verdict.doubled, verdict.misattributed) == (set(), set(), set())
    assert not verdict.quarantined


def test_a_program_that_takes_the_agent_down_each_time_is_answered_for(patient_home: Path) -> None:
    """A program that takes the agent down each time is accused; the others on their way are not."""
    board = "virtual:pynq@injected?rate=0.2&seed=5&again=1&kinds=daemon_crash"
    measurer = BoardMeasurer.open(VirtualTarget(board, form="golden"), lambda event: None)
    results = {}
    measurer.measure([dot_product(ACCELERATOR, ordinal, run="again") for ordinal in range(6)], results.__setitem__)
    measurer.close()
    with_chaos = {ordinal for ordinal, result in results.items() if result.outcome is not Outcome.OK}
    assert with_chaos == {2}
    assert results[2].outcome is Outcome.CRASH
    assert "took the board's agent" in results[2].reason
    assert sum(climbed.well for climbed in measurer.recovery.attempts) == 2


def test_engines_killed_at_random_instants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = undisturbed(tmp_path / "quiet", 150)
    gate, kill = Gate(tmp_path / "gate", monkeypatch), killed_engine._kill
    gate.shut(after=60)  # so that the first engine is not over before it is killed, however late that comes

    def kill_and_open(home: Path, run: Run, after: float) -> bool:
        killed = kill(home, run, after)
        gate.open()
        return killed

    monkeypatch.setattr(killed_engine, "_kill", kill_and_open)
    kills, records = killed_run(tmp_path / "killed", random.Random(7), 5, 150)
    assert kills > 0
    assert records == quiet


def test_chaos_is_spelled_as_people_type_it() -> None:
    assert parse_chaos("rate=0.25,seed=3,kinds=hang+freeze") == Chaos(0.25, 3, ("hang", "freeze"))
    assert parse_chaos("rate=0.25&seed=3") == Chaos(0.25, 3)
    for wrong, words in (
        ("rate=2", "from 0 to 1"),
        ("kinds=hangs", "no kind 'hangs'; there are hang,"),
        ("speed=1", "'speed=1' is none of rate="),
        ("seed=x", "'x' is no value of seed"),
    ):
        with pytest.raises(VirtualBoardError, match=words):
            parse_chaos(wrong)


def test_a_board_that_is_faulty_is_the_same_board() -> None:
    names = with_chaos("virtual:pynq@a,virtual:pynq", "rate=0.5,kinds=hang+freeze")
    assert names == "virtual:pynq@a?rate=0.5&kinds=hang+freeze,virtual:pynq?rate=0.5&kinds=hang+freeze"
    assert [chaos_of(name) for name in names.split(",")] == [Chaos(0.5, kinds=("hang", "freeze"))] * 2
    assert chaos_of("virtual:pynq") is None
    for boards in ("desk", "virtual:pynq,desk", "virtual:pynq?rate=1"):
        with pytest.raises(VirtualBoardError, match="for virtual boards"):
            with_chaos(boards, "rate=0.5")


def test_host_and_board_know_the_same_kinds() -> None:
    source = (paths.board_package_directory().with_name("hilt_virtual_board") / "chaos.py").read_text()
    actions = set(re.findall(r'^    "(\w+)": ', source, re.MULTILINE))
    in_place = set(re.findall(r'"(\w+)"', source.partition("_IN_PLACE = {")[2].partition("}")[0]))
    assert actions | in_place == set(KINDS) and not actions & in_place
