"""The cost of the tuner itself: processor time of all threads within ask and tell."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from hilt.schedule import load_workload, lower, space_for, verdicts
from hilt.simulator.twin import Twin
from hilt.trial import Outcome
from hilt.tune.feedback import Feedback, Tuner
from hilt.tune.options import TunerOptionError
from hilt.tune.problem import TuningProblem
from hilt.tune.registry import make_tuner, tuner_names
from hilt.virtual.board_model import board_model
from tests.bench.figure import Figure, Sizes, Topic

BOARD = board_model("pynq")
PYNQ = BOARD.accelerator
WORKLOAD = "resnet18.C5"
TRIALS = 750
BATCH = 8
SEED = 1


def figures(sizes: Sizes) -> Iterator[Figure]:
    dataset = _dataset()
    for name in tuner_names():
        try:
            tuner = make_tuner(name, TuningProblem.of(load_workload(WORKLOAD), PYNQ), SEED)
        except TunerOptionError as error:  # an extra that is not installed
            yield Figure(f"processor time of tuner {name}", WORKLOAD, str(SEED), "0 trials", str(error))
            continue
        told, seconds, wall = run(tuner, dataset)
        latencies = [each.microseconds for each in told if each.microseconds is not None]
        best = min(latencies) / min(each.microseconds for each in dataset if each.microseconds is not None)
        value = f"{seconds:.1f} s ({seconds / len(told) * 1e3:.1f} ms a trial, {wall:.1f} s on the wall)"
        repeats = f"{len(told)} trials, {BATCH} at a time"
        yield Figure(f"processor time of tuner {name}", f"{WORKLOAD}, answers of the twin", str(SEED), repeats, value)
        quality = f"{best:.3f} of the space's best; {len(latencies)} valid"
        yield Figure(f"  best found by {name}", WORKLOAD, str(SEED), repeats, quality)


def run(tuner: Tuner, dataset: Sequence[Feedback]) -> tuple[list[Feedback], float, float]:
    """Run the tuner up to the last trial or until it asks for no more.

    Returns:
        The feedback, processor seconds and wall seconds.
    """
    told: list[Feedback] = []
    seconds, wall = 0.0, 0.0
    while len(told) < TRIALS:
        start, began = time.process_time(), time.perf_counter()
        answers = [dataset[index] for index in tuner.ask(min(BATCH, TRIALS - len(told)))]
        tuner.tell(answers)
        seconds += time.process_time() - start
        wall += time.perf_counter() - began
        if not answers:  # hilt ends its run itself
            break
        told += answers
    return told, seconds, wall


def _dataset() -> list[Feedback]:
    """The answer for every configuration of the space."""
    workload = load_workload(WORKLOAD)
    space = space_for(workload, PYNQ)
    accepted = verdicts(workload, PYNQ, space.columns(np.arange(len(space)))) == 0
    twin, memory = Twin(PYNQ), BOARD.memory_model

    def answer(index: int) -> Feedback:
        if not accepted[index]:
            return Feedback(index, Outcome.REJECTED)
        cycles = twin.predict([lower(workload, space.knobs_at(index), PYNQ)], memory)[0]["cycles"]
        return Feedback(index, Outcome.OK, int(cycles) * 1e6 / PYNQ.clock_hz)

    return [answer(index) for index in range(len(space))]


TOPIC = Topic("tuner", "the cost of tuners", figures)
