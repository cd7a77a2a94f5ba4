"""The estimate of a program's cycles from its transfers, by hand: which stage is the slowest, and which take turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt.tune.model_guided.analytic_model import AnalyticModel, bytes_moved
from hilt.virtual.board_model import board_model

PYNQ = board_model("pynq").accelerator
MEMORY = np.log([32.0, 16.0, 1.0])
PLAIN = {
    "cycles.compute": 1000.0,
    "instructions.load_inp": 3.0,
    "instructions.load_wgt": 5.0,
    "bytes.inp": 600.0,
    "bytes.wgt": 200.0,
    "bytes.out": 160.0,
    "instructions.store": 2.0,
    "instructions.gemm": 4.0,
    "instructions.alu": 6.0,
    "instructions.all": 25.0,
    "tokens.load_to_compute": 2.0,
    "tiles": 3.0,
    "tile.acc_elements": 20.0,
    "nVT": 2.0,
}


class Columns:
    """Hidden features of one configuration."""

    def __init__(self, **changes: float) -> None:
        self._values = PLAIN | {name.replace("__", "."): value for name, value in changes.items()}

    def column(self, name: str) -> np.ndarray:
        return np.array([self._values[name]])


def cycles(memory: np.ndarray = MEMORY, **changes: float) -> float:
    features: Any = Columns(**changes)
    return float(AnalyticModel(PYNQ, features).cycles(memory)[0])


# On a bus of 8 bytes a cycle with instructions of 16 bytes, by hand:
LOAD = 800 / 8 + 8 * (12 + 32 / 2)
COMPUTE = 1000 + 3 * 20 + 10 * 12
STORE = 160 / 8 + 2 * (12 + 16)
BUS = 960 / 8 + 25 * 16 / 8


def test_instructions_and_tensors_are_moved_over_one_bus() -> None:
    features: Any = Columns()
    assert bytes_moved(PYNQ, features) == [25 * 16 + 600 + 200 + 160]
    assert PYNQ.bytes_per_cycle == 8 and PYNQ.instruction_bytes == 16


def test_with_two_threads_the_slowest_stage_decides() -> None:
    tenth = (LOAD + COMPUTE + STORE) / 10
    assert cycles() == pytest.approx(COMPUTE + tenth + 32)
    many = cycles(instructions__load_inp=103.0)
    load = LOAD + 100 * 28
    assert many == pytest.approx(load + (load + COMPUTE + STORE) / 10 + 32)
    stores = cycles(instructions__store=102.0)
    store = STORE + 100 * 28
    assert stores == pytest.approx(store + (LOAD + COMPUTE + store) / 10 + 32)
    fetched = cycles(instructions__all=4025.0)
    assert fetched == pytest.approx(BUS + 8000 + tenth + 32)


def test_with_one_thread_load_and_compute_take_turns() -> None:
    assert cycles(nVT=1.0) == pytest.approx(LOAD + COMPUTE + 0.3 * STORE + 32)
    assert cycles(nVT=1.0, instructions__all=4025.0) == pytest.approx(BUS + 8000 + 0.3 * STORE + 32)


def test_a_slow_memory_slows_what_moves() -> None:
    slow = np.log([132.0, 66.0, 4.0])
    load = 4 * 800 / 8 + 8 * (12 + 132 / 2)
    store = 4 * 160 / 8 + 2 * (12 + 66)
    assert cycles(slow) == pytest.approx(max(load, COMPUTE, store) + (load + COMPUTE + store) / 10 + 132)
