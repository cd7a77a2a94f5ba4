"""The memory that the selftest finds is the one that the cycles came from."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.measure.selftest import memory
from hilt.measure.selftest.memory import Sample, fit_memory, load_requests, store_requests
from hilt.simulator.device import MemoryModel
from hilt.simulator.twin import Twin
from hilt.virtual.board_model import BOARD_MODELS


def cycles_of(name: str, memory: MemoryModel) -> tuple[list[float], list[float]]:
    accelerator = BOARD_MODELS[name].accelerator
    twin = Twin(accelerator)
    both = [
        [float(count) for count in twin.predict([request.program for request in requests], memory)["cycles"]]
        for requests in (load_requests(accelerator), store_requests(accelerator))
    ]
    return both[0], both[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pynq", "zcu104", "zcu102"])
@pytest.mark.parametrize(("read", "write"), [(32, 16), (100, 50), (7, 211), (0, 0), (400, 3)])
@pytest.mark.parametrize("share", [1.0, 0.61, 0.25])
def test_latencies_and_bandwidth_are_found_within_two_percent(name: str, read: int, write: int, share: float) -> None:
    accelerator = BOARD_MODELS[name].accelerator
    width = accelerator.bus_bits // 8
    bandwidth = (0, 1) if share == 1.0 else (round(1000 * width * share), 1000)
    loads, stores = cycles_of(name, MemoryModel(read_latency=read, write_latency=write, bandwidth=bandwidth))
    fit = fit_memory(accelerator, loads, stores)
    assert fit.read_latency == pytest.approx(read, rel=0.02, abs=1)
    assert fit.write_latency == pytest.approx(write, rel=0.02, abs=1)
    assert fit.bytes_per_cycle == pytest.approx(width * share, rel=0.02)
    assert fit.error < 0.02


class OneCycle:
    """A twin for which a program takes a cycle for each cycle of latency, and as many more as it has elements."""

    def predict(self, programs: list[int], model: MemoryModel) -> dict[str, NDArray[np.int64]]:
        return {"cycles": np.array(programs) + model.read_latency}


def latency_of(cycles: list[float]) -> int:
    samples = [Sample(size, size, count) for size, count in zip((1, 8, 9), cycles, strict=True)]  # type: ignore[arg-type]
    return memory._latency(OneCycle(), samples, lambda latency: MemoryModel(read_latency=latency))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cycles", "latency"),
    [
        ([31, 38, 0], 30),  # programs of more than 8 elements do not count
        ([1, 8, 999], 0),
        ([0, 0, 0], 0),
        ([32, 38, 0], 30),  # 30 is as near as 31: the lower
        ([31, 37, 0], 29),
        ([99999, 99999, 0], 4096),
    ],
)
def test_the_latency_is_the_nearest(cycles: list[float], latency: int) -> None:
    assert latency_of(cycles) == latency


PYNQ = BOARD_MODELS["pynq"].accelerator  # 8 bytes a beat


@pytest.mark.parametrize(
    ("cycles", "rate"),
    [((10, 1010), 4.096), ((100, 612), 8.0), ((100, 614), 8.0), ((100, 615), 8 * 512 / 515), ((10, 10), 8.0)],
)
def test_bytes_a_cycle_are_those_between_the_largest_programs(cycles: tuple[int, int], rate: float) -> None:
    """They differ by 16 elements of 16 bytes, which move 16 times; nearly a beat each cycle is one."""
    samples = [Sample(1, 0, 5.0), Sample(16, 0, cycles[0]), Sample(32, 0, cycles[1])]  # type: ignore[arg-type]
    assert memory._slope(samples, 16, PYNQ) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("rate", "fraction"), [(8.0, (0, 1)), (9.0, (0, 1)), (7.96, (7960, 1000)), (0.5, (500, 1000)), (1e-9, (1, 1000))]
)
def test_a_bandwidth_is_thousandths_of_a_byte_a_cycle(rate: float, fraction: tuple[int, int]) -> None:
    assert memory._bandwidth(rate, PYNQ) == fraction
