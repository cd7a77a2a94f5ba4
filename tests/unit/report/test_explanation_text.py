"""An explanation's lines: loops, buffers, bytes and the prediction, each with its numbers in their place."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hilt.report import explanation_text as module
from hilt.report.explanation_text import explanation_text
from hilt.schedule import load_workload
from hilt.simulator.twin import TwinStatus
from hilt.vta.accelerator import Accelerator, load_parameters

ACCELERATOR = Accelerator.for_parameters(load_parameters("pynq"))


def loop(kind: str, axis: str, extent: int, count: int) -> Any:
    return SimpleNamespace(kind=kind, axis=axis, extent=extent, touched={"inp": count, "wgt": 2 * count, "out": 1})


def explained(**changes: Any) -> Any:
    values = {
        "workload": load_workload("resnet18.C5"), "index": 7, "knobs": {"tile_h": 2, "tile_w": 7},
        "verdicts": {"compiler": None, "tvm": ("inp_overflow", "3 too many")},
        "loops": (loop("tile", "h", 4, 5000), loop("thread", "co", 1, 9), loop("micro_op", "ci", 3, 70)),
        "occupancy": {"inp": (512, 2048), "acc": (4096, 2048), "uop": (0, 8)}, "weights_resident": True,
        "hazard_distance": 12, "program": None, "prediction": None, "code": None, "accelerator": ACCELERATOR,
        "bound_cycles": 400_000,
    }  # fmt: skip
    return SimpleNamespace(**{**values, **changes})


def section(text: str, heading: str) -> list[str]:
    """Return the lines below a heading."""
    (found,) = [part for part in text.split("\n\n") if part.startswith(heading)]
    return found.splitlines()[1:]


def test_it_begins_with_the_configuration_and_its_verdicts() -> None:
    text = explanation_text(explained())
    assert text.startswith("resnet18.C5, configuration 7: tile_h=2 tile_w=7\n\n")
    assert section(text, "checks") == ["  compiler  accepted", "  tvm       rejected, inp_overflow: 3 too many"]
    assert not any(each in text for each in ("program", "prediction", "instructions"))


def test_loops_are_indented_and_those_of_one_turn_are_left_out() -> None:
    head, first, second = section(explanation_text(explained()), "loops")
    assert head.split() == ["inp", "wgt", "out"]
    assert first == f"  {'for h 4':36} {'5,000':>10} {'10,000':>10} {'1':>10}"
    assert second == f"  {'  micro-ops ci 3':36} {'70':>10} {'140':>10} {'1':>10}"
    assert section(explanation_text(explained(loops=(loop("tile", "h", 1, 1),))), "loops") == ["  one micro-op"]


def test_buffers_have_a_bar_and_what_does_not_fit_says_so() -> None:
    inp, acc, uop, weights, hazard = section(explanation_text(explained()), "buffers")
    assert inp == f"  inp  [{'█' * 8}{'·' * 24}]     512 of 2,048 (25%)"
    assert acc == f"  acc  [{'█' * 32}>   4,096 of 2,048 (200%)  does not fit"
    assert uop == f"  uop  [{'·' * 32}]       0 of 8 (0%)"
    assert weights == "  all weights stay on chip and are loaded once"
    assert hazard == "  an accumulator element is updated again after 12 micro-ops at least"
    plain = section(explanation_text(explained(weights_resident=False, hazard_distance=None)), "buffers")
    assert len(plain) == 3


@pytest.mark.parametrize(("share", "full"), [(0.0, 0), (1e-6, 1), (0.5, 16), (1.0, 32)])
def test_a_bar_shows_any_share(share: float, full: int) -> None:
    assert module._bar(share) == f"[{'█' * full}{'·' * (32 - full)}]"


@pytest.mark.parametrize(("factor", "side"), [(0.9, "the memory"), (1.0, "the multipliers"), (1.1, "the multipliers")])
def test_the_limit_is_memory_below_the_balance(factor: float, side: str) -> None:
    balance = 2 * ACCELERATOR.macs_per_cycle / ACCELERATOR.bytes_per_cycle
    program = SimpleNamespace(
        instructions=1234, instruction_bytes=19744, uops=56, mix={"LOAD": 7}, bytes={"inp": 8900},
        intensity=factor * balance,
    )  # fmt: skip
    lines = section(explanation_text(explained(program=program)), "program")
    assert lines[0] == "  1,234 instructions (19,744 bytes), 56 micro-ops"
    assert lines[1].split() == ["LOAD", "7"] and lines[3].split() == ["inp", "8,900"] and lines[2] == "  bytes moved"
    assert lines[4].endswith(f"is in balance at {balance:.1f}, so {side} can be the limit")


def prediction(**changes: Any) -> Any:
    stages = {
        "load": SimpleNamespace(busy=200_000, starved=100_000, stalled=500_000, bytes=4096, instructions=12),
        "compute": SimpleNamespace(busy=800_000, starved=0, stalled=0, bytes=0, instructions=3),
    }
    values = {"status": TwinStatus.DONE, "cycles": 800_000, "microseconds": 8000.0, "stages": stages}
    return SimpleNamespace(**{**values, "occupation": [[0.0, 0.001, 0.5], [1.0, 0.75, 0.26]], **changes})


def test_a_prediction_has_the_share_of_each_stage() -> None:
    lines = section(explanation_text(explained(prediction=prediction())), "the twin's prediction")
    operations = 2 * load_workload("resnet18.C5").macs / 8000.0 / 1e3
    assert lines[0] == f"  800,000 cycles = 8,000.0 µs, {operations:.1f} GOP/s, 50.0% of the roofline bound"
    assert lines[1].split() == ["busy", "starved", "stalled", "bytes", "instructions"]
    assert lines[2].split() == ["load", "25.0%", "12.5%", "62.5%", "4,096", "12"]
    assert lines[3].split() == ["compute", "100.0%", "0.0%", "0.0%", "0", "3"]
    assert len(lines[1]) == len(lines[2]) == len(lines[3])
    assert lines[4] == "  busy over time, from the start of fetch to FINISH:"
    assert lines[5] == f"  {'load':8}  ░▒" and lines[6] == f"  {'compute':8} █▓░"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (TwinStatus.NEVER, "the program never ends: a dependence token is missing"),
        (TwinStatus.FAULT, "the program faults"),
    ],
)
def test_a_program_that_does_not_end_is_told_in_a_line(status: TwinStatus, words: str) -> None:
    lines = section(explanation_text(explained(prediction=prediction(status=status))), "the twin's prediction")
    assert lines == [f"  {words}"]
