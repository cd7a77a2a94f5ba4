"""Runs on a virtual board with injected faults, and the fate of every trial.

Two witnesses check them: each program is written by hand, so its outcome is known, and an undisturbed run has its
records. The board's chaos keeps a file of each fault and its trial.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hilt.engine.events import Event, TrialRecorded
from hilt.engine.loop import TuningLoop
from hilt.engine.run_control import Control
from hilt.link import client
from hilt.link.quarantine import quarantined
from hilt.measure import Measurer, Request, ladder
from hilt.measure.board_description import VirtualTarget
from hilt.measure.board_measurer import BoardMeasurer
from hilt.measure.fleet import FleetMeasurer
from hilt.store import Store, Trial
from hilt.trial import Outcome
from hilt.tune import Feedback
from hilt.virtual.board_model import board_model
from hilt.virtual.directory import BoardDirectory
from hilt.vta.program import Program
from tests.e2e.small_programs import dot_product, hanging, wrong
from tests.unit.store.examples import run as example_run

ACCELERATOR = board_model("pynq").accelerator
BOARDS = ("injected", "injected-too")
BATCH = 10


class InOrder:
    """A tuner that asks for one configuration after the other, whatever it hears."""

    def __init__(self) -> None:
        self._next = 0

    def ask(self, count: int) -> list[int]:
        self._next += count
        return list(range(self._next - count, self._next))

    def tell(self, feedback: Sequence[Feedback]) -> None:
        pass


class KnownPrograms:
    """Configuration n is a dot product of n + 1 rounds; every ninth gives a wrong answer, every 31st hangs."""

    def __init__(self) -> None:
        self._requests: dict[str, Request] = {}

    @staticmethod
    def expected(index: int) -> Outcome:
        if index % 31 == 5:
            return Outcome.TIMEOUT
        return Outcome.WRONG_ANSWER if index % 9 == 4 else Outcome.OK

    def knobs(self, index: int) -> Mapping[str, int]:
        return {"rounds": index + 1}

    def lower(self, index: int) -> Program:
        outcome = self.expected(index)
        request = dot_product(ACCELERATOR, index, rounds=index + 1)
        if outcome is Outcome.TIMEOUT:
            request = hanging(ACCELERATOR, index)
        elif outcome is Outcome.WRONG_ANSWER:
            request = wrong(request)
        self._requests[request.program.sha256] = request
        return request.program

    def lower_many(self, configurations: Sequence[int]) -> Iterator[Program]:
        return map(self.lower, configurations)

    def lengths(self, indices: Sequence[int]) -> Sequence[float]:
        return [1.0] * len(indices)

    def request(self, ordinal: int, key: str, program: Program) -> Request:
        return replace(self._requests[program.sha256], ordinal=ordinal, key=key)


@dataclass(frozen=True)
class Fault:
    """A fault that hit a trial, and the time at which the trial was recorded.

    `seconds` is None if it was never recorded.
    """

    kind: str
    ordinal: int
    seconds: float | None


@dataclass(frozen=True)
class Verdict:
    """The verdict on one run; the last three sets must be empty."""

    faults: list[Fault]
    quarantined: bool
    lost: set[int]
    doubled: set[int]
    misattributed: set[int]


@contextmanager
def impatient() -> Iterator[None]:
    """Shorten the limits for a board that boots in a second; the awaited events are the same."""
    seconds, act = ladder.SECONDS.copy(), ladder.ACT_SECONDS
    silent, beat = client.SILENT_SECONDS, client.HEARTBEAT_SECONDS
    ladder.SECONDS.update({ladder.RecoveryStep.RECONNECT: 3.0})
    ladder.ACT_SECONDS = 1.0
    client.SILENT_SECONDS, client.HEARTBEAT_SECONDS = 3.0, 0.5
    try:
        yield
    finally:
        ladder.SECONDS.update(seconds)
        ladder.ACT_SECONDS, client.SILENT_SECONDS, client.HEARTBEAT_SECONDS = act, silent, beat


def quiet_run(directory: Path, trials: int) -> list[Trial]:
    """Return the records of an undisturbed run, checked against the known outcomes of the programs."""
    records, recorded = _run(directory / "quiet.db", BOARDS[:1], "", 0, trials)
    assert [each.ordinal for each in records] == list(range(trials))
    assert all(each.outcome is KnownPrograms.expected(each.index) for each in records)
    assert len(recorded) == trials
    return records


def faulty_run(
    directory: Path, quiet: Sequence[Trial], seed: int, rate: float, kinds: Sequence[str], boards: int = 1
) -> Verdict:
    """The same run on the same board, or on so many that are alike, while they have a fault."""
    chaos = f"?rate={rate}&seed={seed}&kinds={'+'.join(kinds)}&boot_seconds=3"
    path = directory / f"injected-{seed}.db"
    records, recorded = _run(path, BOARDS[:boards], chaos, seed, len(quiet))
    ordinals = [ordinal for ordinal, _ in recorded]
    by_number = {each.ordinal: each for each in records}
    first = dict(reversed(recorded))
    faults = [
        Fault(kind, ordinal, first[ordinal] - at if ordinal in first else None)
        for name, ordinal, kind, at in with_chaos()
        if name == run_name(seed)
    ]
    return Verdict(
        faults,
        bool(quarantined()),
        lost={each.ordinal for each in quiet} - by_number.keys(),
        doubled={ordinal for ordinal in ordinals if ordinals.count(ordinal) > 1},
        misattributed={
            each.ordinal
            for each in quiet
            if each.ordinal in by_number and _facts(each) != _facts(by_number[each.ordinal])
        },
    )


def with_chaos() -> list[tuple[str, int, str, float]]:
    """Return the notes of the boards' chaos: run, trial, kind and time."""
    paths = [BoardDirectory(name).chaos / "injected" for name in BOARDS]
    notes = [json.loads(line) for path in paths if path.exists() for line in path.read_text().splitlines()]
    trials = [note["trial"].split("/") for note in notes]
    return [(run, int(ordinal), note["kind"], note["at"]) for (run, ordinal), note in zip(trials, notes, strict=True)]


def run_name(seed: int) -> str:
    return f"{seed:032x}"


def _facts(trial: Trial) -> Trial:
    """Return the trial without the name of the board, which tells the two runs apart."""
    return replace(trial, board="")


def _run(
    path: Path, boards: Sequence[str], chaos: str, seed: int, trials: int
) -> tuple[list[Trial], list[tuple[int, float]]]:
    """Return the run's records, and the numbers and times of its reports."""
    recorded: list[tuple[int, float]] = []

    def publish(event: Event) -> None:
        if isinstance(event, TrialRecorded):
            recorded.append((event.trial.ordinal, event.trial.recorded_at))

    targets = [VirtualTarget(f"virtual:pynq@{name}{chaos}", form="golden") for name in boards]
    measurer: Measurer
    if len(targets) == 1:
        measurer = BoardMeasurer.open(targets[0], lambda event: None)
    else:
        measurer = FleetMeasurer.open(targets, lambda event: None)
    try:
        with Store(path) as store:
            sizes = {"budget": trials, "batch": BATCH, "space_size": 1 << 20, "output_elements": 16}
            run = example_run(run_name(seed), board=measurer.description.name, **sizes)
            store.create_run(run)
            task = KnownPrograms()
            assert TuningLoop(run, InOrder(), task, measurer, store, Control(), publish).run()
            return store.trials(run.uuid), recorded
    finally:
        measurer.close()
