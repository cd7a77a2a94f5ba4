"""The published machines among the tuner's hypotheses, against the event machine that has no approximation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hilt.schedule import load_workload
from hilt.simulator.builds import CHISEL, NEWER, OLDER, shipped_builds
from hilt.simulator.machine import EventMachine
from hilt.trial import Outcome
from hilt.tune import Feedback, make_tuner
from hilt.tune.model_guided.cache_misses import CacheMisses
from hilt.tune.model_guided.candidates import candidates_of
from hilt.tune.model_guided.dataflow import Dataflow
from hilt.tune.model_guided.lowered import LoweredPrograms
from hilt.tune.model_guided.machines import StructuralMachine, public_machines, structural_families
from hilt.tune.model_guided.shortlist import Shortlist
from hilt.tune.model_guided.structural import COSTS, EstimatedTiming, StructuralEstimate, StructuralTiming
from hilt.tune.problem import TuningProblem
from hilt.virtual.board_model import board_model

BOARD = board_model("pynq_public").accelerator
BEST_OF_C5 = 503_907
"""Cycles of the best configuration of C5, of all that compile, on the newer build."""
SMALL = "conv2d:n=1,ci=64,h=14,w=14,co=64,k=3x3,s=1x1,p=1x1"


@pytest.fixture(scope="module")
def problem() -> TuningProblem:
    return TuningProblem.of(load_workload(SMALL), BOARD)


@pytest.fixture(scope="module")
def lowered(problem: TuningProblem) -> LoweredPrograms:
    return LoweredPrograms(problem, np.flatnonzero(problem.compiles))


@pytest.fixture(scope="module")
def timing(lowered: LoweredPrograms) -> StructuralTiming:
    return StructuralTiming(lowered)


@pytest.fixture(scope="module")
def rough(problem: TuningProblem) -> StructuralEstimate:
    return StructuralEstimate(problem.hidden_features(np.flatnonzero(problem.compiles)))


def rows_of(lowered: LoweredPrograms, problem: TuningProblem) -> list[int]:
    some = np.random.default_rng(3).permutation(int(problem.compiles.sum()))[:40].tolist()
    return [row for row, digest in zip(some, lowered.digests(some), strict=True) if digest is not None]


@pytest.mark.parametrize("name", [NEWER, OLDER])
def test_a_published_build_is_predicted_as_by_its_event_machine(
    name: str, problem: TuningProblem, lowered: LoweredPrograms, timing: StructuralTiming, rough: StructuralEstimate
) -> None:
    rows = rows_of(lowered, problem)
    programs = [lowered.program(digest) for digest in lowered.digests(rows) if digest is not None]
    cycles = EventMachine(BOARD).predict(programs, shipped_builds().machines[name])["cycles"]
    machine = public_machines(timing, rough, BOARD)[list(shipped_builds().machines).index(name)]
    error = machine.log_cycles(rows, machine.prior[None])[:, 0] - np.log(cycles)
    assert np.abs(error).max() < 0.03 and error.std() < 0.01


def test_missed_bytes_are_those_of_the_event_machine(problem: TuningProblem, lowered: LoweredPrograms) -> None:
    (digest,) = lowered.digests([0])
    assert digest is not None
    program = lowered.program(digest)
    missed = CacheMisses(BOARD).missed_bytes(program)
    (result,) = EventMachine(BOARD).predict([program], shipped_builds().machines[NEWER])
    assert missed.sum() == pytest.approx(result["missed_bytes"], rel=1e-6)
    assert len(missed) == len(program.instructions)


def test_derivatives_are_those_by_differences(
    problem: TuningProblem, lowered: LoweredPrograms, timing: StructuralTiming, rough: StructuralEstimate
) -> None:
    rows = rows_of(lowered, problem)
    machines: list[StructuralMachine] = [
        *structural_families(timing, rough, BOARD),
        *public_machines(timing, rough, BOARD),
    ]
    for machine in machines:
        base, slope = machine.derivatives(rows, machine.prior)
        points = np.concatenate((machine.prior[None], machine.prior + 1e-5 * np.eye(len(COSTS))))
        cycles = machine.log_cycles(rows, points)
        assert np.allclose(base, cycles[:, 0])
        assert np.allclose(slope, (cycles[:, 1:] - cycles[:, :1]) / 1e-5, atol=1e-4)


def test_a_token_that_is_sent_later_in_the_program_is_no_source(lowered: LoweredPrograms) -> None:
    (digest,) = lowered.digests([0])
    assert digest is not None
    program = lowered.program(digest)
    forwards = Dataflow.of(program, BOARD, 10_000)
    backwards = Dataflow.of(replace(program, instructions=program.instructions[::-1].copy()), BOARD, 10_000)
    for flow in (forwards, backwards):
        assert (flow.sources <= np.arange(len(flow.sources))[:, None]).all()
    assert np.count_nonzero(backwards.sources) < np.count_nonzero(forwards.sources)


def test_without_a_compiler_the_estimate_takes_the_place_of_the_paths(rough: StructuralEstimate) -> None:
    machine = public_machines(EstimatedTiming(rough), rough, BOARD)[0]
    rows = [5, 0, 7]
    base, slope = machine.derivatives(rows, machine.prior)
    assert np.allclose(base, machine.estimate(machine.prior)[rows])
    assert np.allclose(slope, machine.rough_derivatives(machine.prior)[rows])


def test_public_machines_are_likelier_without_an_interlock(timing: StructuralTiming, rough: StructuralEstimate) -> None:
    without = public_machines(timing, rough, BOARD)
    interlocked = public_machines(timing, rough, replace(BOARD, hazards="interlock"))
    assert all(a.weight > b.weight for a, b in zip(without, interlocked, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "said"), [(NEWER, "public HLS"), (OLDER, "public HLS, older build"), (CHISEL, "")])
def test_the_tuner_is_soon_sure_on_a_published_machine(name: str, said: str, problem: TuningProblem) -> None:
    """It ends by itself, within 2 % of the best of the space, and names the machine."""
    indices = np.flatnonzero(problem.compiles)
    programs = list(problem.lowered_many(indices))
    there = [program for program in programs if program is not None]
    cycles = EventMachine(BOARD).predict(there, shipped_builds().machines[name])["cycles"]
    latency = dict(zip(indices.tolist(), (cycles / 100).tolist(), strict=True))
    tuner = make_tuner("hilt", problem, 1)
    measured: list[float] = []
    while asked := tuner.ask(8):
        tuner.tell([Feedback(index, Outcome.OK, latency[index]) for index in asked])
        measured += [latency[index] for index in asked]
        assert len(measured) <= 64
    assert min(measured) <= 1.02 * min(latency.values())
    assessment = tuner.assessment()  # type: ignore[attr-defined]
    assert assessment.confidence >= 0.99
    assert not said or assessment.machine == said


@pytest.mark.slow
def test_doubts_that_exact_predictions_dispel_need_no_trials() -> None:
    """The space of `hilt tune resnet18.C5` has 5,421 programs; at first the tuner lowers a part of them."""
    problem = TuningProblem.of(load_workload("resnet18.C5"), BOARD, orders=4)
    machine = EventMachine(BOARD)
    tuner = make_tuner("hilt", problem, 0)
    measured: list[float] = []
    while asked := tuner.ask(8):
        programs = [program for program in problem.lowered_many(np.array(asked)) if program is not None]
        cycles = machine.predict(programs, shipped_builds().machines[NEWER])["cycles"].tolist()
        tuner.tell([Feedback(index, Outcome.OK, taken / 100) for index, taken in zip(asked, cycles, strict=True)])
        measured += cycles
        assert len(measured) <= 64
    assert tuner.assessment().confidence >= 0.99  # type: ignore[attr-defined]
    assert min(measured) <= 1.01 * BEST_OF_C5


def test_sharpened_predictions_are_the_machines(
    problem: TuningProblem, timing: StructuralTiming, lowered: LoweredPrograms, rough: StructuralEstimate
) -> None:
    machine = public_machines(timing, rough, BOARD)[0]
    shortlist = Shortlist(candidates_of(problem), lowered, machine)
    shortlist.open(machine.openings, 1)
    prediction = shortlist.predict(machine.prior)
    estimated = np.flatnonzero(prediction.own > 0)[:30]
    kept = prediction.base.copy()
    shortlist.sharpen(prediction, estimated, machine.prior)
    assert np.allclose(prediction.base[estimated], machine.log_cycles(estimated.tolist(), machine.prior[None])[:, 0])
    assert not prediction.own[estimated].any()
    others = np.setdiff1d(np.arange(len(kept)), estimated)
    assert (prediction.base[others] == kept[others]).all()
