"""The memory that the selftest finds is the one that the cycles came from."""

from __future__ import annotations

import pytest

from hilt.measure.selftest.memory import fit_memory, load_requests, store_requests
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
