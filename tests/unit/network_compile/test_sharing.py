"""One network for several threads: overlapped inferences, batches of any size, and its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from hilt.network.compile import compile_network
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt_runtime import ClosedError, InferenceError, InputError, MemoryNeededError, Network, read_bundle
from hilt_runtime.native.library import Engine, engine
from hilt_runtime.register_protocol import DeviceRun

from .graphs import Builder, residual_network, target

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_search")]  # runs networks on the golden model


class Case:
    """A network with an operator of the processor between two programs, images, and the right answers."""

    def __init__(self) -> None:
        builder = Builder((1, 16, 8, 8))
        first = builder.conv("x", 16)
        moved = builder.add_node("moved", "transpose", [first], (1, 16, 8, 8), {"perm": [0, 1, 3, 2]})
        graph = builder.graph(builder.conv(moved, 16))
        self.target = target()
        self.bundle = read_bundle(compile_network(graph, self.target).data, "m")
        random = np.random.default_rng(5)
        self.images = [random.integers(-128, 128, (1, 16, 8, 8)).astype(np.int8) for _ in range(7)]
        self.expected = [evaluate(graph, {"x": image})[graph.outputs[0]] for image in self.images]


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


class Watched(SimulatedVta):
    """A device that counts its buffers, and lets a test hold a program that runs."""

    allowed = 1 << 20
    """Buffers that there is memory for."""
    outcome = "ok"

    def __init__(self, aim: Any) -> None:
        super().__init__(aim)
        self.made: list[int] = []
        self.freed: list[int] = []
        self.runs = 0
        self.most_at_once = 0
        self.at_once = 0
        self.expected: list[float] = []
        self.entered, self.go_on = threading.Semaphore(0), threading.Event()
        self.go_on.set()

    def allocate(self, size: int) -> Any:
        if len(self.made) >= self.allowed:
            raise MemoryNeededError("no more")
        memory = super().allocate(size)
        self.made.append(memory.physical_address)
        return memory

    def free(self, memory: Any) -> None:
        self.freed.append(memory.physical_address)

    def run(self, instructions: Any, count: int, limit_seconds: float, expected_seconds: float = 0.0) -> DeviceRun:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.runs += 1
        self.expected.append(expected_seconds)
        self.entered.release()
        assert self.go_on.wait(30)
        try:
            if self.outcome != "ok":
                return DeviceRun(self.outcome, "held", None, 0.0)
            return super().run(instructions, count, limit_seconds, expected_seconds)
        finally:
            self.at_once -= 1


@pytest.fixture
def device(case: Case) -> Iterator[Watched]:
    with Watched(case.target) as made:
        yield made


@pytest.fixture(params=["numpy", "native"])
def chosen(request: pytest.FixtureRequest) -> Engine:
    found = Engine(None, "numpy") if request.param == "numpy" else engine()
    if request.param == "native" and found.library is None:
        pytest.skip(found.reason)
    return found


def test_eight_threads_get_their_own_answers(case: Case, device: Watched, chosen: Engine) -> None:
    with Network(case.bundle, device, engine=chosen) as network, ThreadPoolExecutor(8) as threads:
        places = [number % len(case.images) for number in range(40)]
        for place, answer in zip(places, threads.map(lambda place: network(case.images[place]), places), strict=True):
            np.testing.assert_array_equal(answer, case.expected[place])
    assert device.most_at_once == 1


def test_overlapped_inferences_come_in_order_with_the_same_bits(case: Case, device: Watched, chosen: Engine) -> None:
    with Network(case.bundle, device, engine=chosen) as network:
        made = list(network.run_each({"x": image} for image in case.images))
        for inference, wanted in zip(made, case.expected, strict=True):
            np.testing.assert_array_equal(next(iter(inference.outputs.values())), wanted)
    assert device.most_at_once == 1


def test_the_processor_goes_on_while_vta_runs_another_image(case: Case, device: Watched) -> None:
    with Network(case.bundle, device, engine=Engine(None, "numpy")) as network:
        network.start({"x": case.images[0]}).wait()
        device.go_on.clear()
        while device.entered.acquire(blocking=False):
            pass
        first, second = (network.start({"x": image}) for image in case.images[:2])
        assert device.entered.acquire(timeout=30)
        # VTA holds the first image; the second one's input is packed into memory of its own meanwhile.
        buffers = [placed._packed for placed in network._placed]
        waiting = threading.Event()
        for _ in range(3000):
            if sum(any(np.any(buffer) for buffer in each.values()) for each in buffers) == 2:
                break
            waiting.wait(0.01)
        else:
            raise AssertionError("the second image waits for the first")
        assert not first.done and not second.done and device.runs % 2 == 1
        device.go_on.set()
        for running, wanted in ((first, case.expected[0]), (second, case.expected[1])):
            np.testing.assert_array_equal(next(iter(running.wait().outputs.values())), wanted)


def test_an_input_may_change_as_soon_as_its_inference_is_started(case: Case, device: Watched) -> None:
    with Network(case.bundle, device) as network:
        image = case.images[0].copy()
        running = network.start({"x": image})
        image[:] = 0
        np.testing.assert_array_equal(next(iter(running.wait().outputs.values())), case.expected[0])


@pytest.mark.parametrize("count", [2, 7])
def test_a_batch_of_any_size(case: Case, device: Watched, count: int) -> None:
    with Network(case.bundle, device) as network:
        answer = network(np.concatenate(case.images[:count]))
    np.testing.assert_array_equal(answer, np.concatenate(case.expected[:count]))


def test_a_batch_is_filled_up_for_a_network_of_several_images() -> None:
    builder = residual_network()
    graph = builder.graph(builder.nodes[-1].outputs[0])
    (name,) = graph.inputs
    shape = graph.tensors[name].shape
    aim = target()
    data = np.random.default_rng(0).integers(-128, 128, (shape[0] * 2 + 1, *shape[1:])).astype(np.int8)
    with SimulatedVta(aim) as device, Network(read_bundle(compile_network(graph, aim).data, "m"), device) as network:
        answer = network(data)
        for first in range(0, len(data), shape[0]):
            part = data[first : first + shape[0]]
            whole = np.concatenate([part, *[part[-1:]] * (shape[0] - len(part))])
            wanted = evaluate(graph, {name: whole})[graph.outputs[0]][: len(part)]
            np.testing.assert_array_equal(answer[first : first + shape[0]], wanted)


def test_no_images_and_other_shapes_are_refused(case: Case, device: Watched) -> None:
    with Network(case.bundle, device) as network:
        with pytest.raises(InputError, match="0 images"):
            network(np.zeros((0, 16, 8, 8), np.int8))
        with pytest.raises(InputError, match="the network takes int8"):
            network(np.zeros((2, 16, 8, 9), np.int8))
        with pytest.raises(InputError, match="the network takes int8"):
            list(network.run_each([{"x": case.images[0].astype(np.float32)}]))


def test_without_memory_for_two_they_run_one_by_one(case: Case, device: Watched) -> None:
    network = Network(case.bundle, device)
    device.allowed = len(device.made) + 1
    np.testing.assert_array_equal(network(np.concatenate(case.images)), np.concatenate(case.expected))
    device.allowed = 1 << 20
    network.close()
    assert sorted(device.made) == sorted(device.freed)


def test_closing_waits_frees_once_and_ends_the_network(case: Case, device: Watched) -> None:
    network = Network(case.bundle, device)
    running = [network.start({"x": image}) for image in case.images]
    network.close()
    network.close()
    assert sorted(device.made) == sorted(device.freed) and all(each.done for each in running)
    for each, wanted in zip(running, case.expected, strict=True):
        np.testing.assert_array_equal(next(iter(each.wait().outputs.values())), wanted)
    with pytest.raises(ClosedError, match="make it again"):
        network(case.images[0])
    with pytest.raises(ClosedError):
        network.start({"x": case.images[0]})


def test_a_fault_ends_the_overlap_and_nothing_runs_on(case: Case, device: Watched) -> None:
    with Network(case.bundle, device) as network:
        made = network.run_each({"x": case.images[number % 7]} for number in range(100))
        next(made)
        device.outcome = "timeout"
        with pytest.raises(InferenceError, match="held"):
            list(made)
        runs = device.runs
        device.outcome = "ok"
        np.testing.assert_array_equal(network(case.images[0]), case.expected[0])
        assert device.runs == runs + 2


def test_the_device_is_told_how_long_a_program_takes(case: Case, device: Watched) -> None:
    with Network(case.bundle, device) as network:
        network(case.images[0])
    clock = case.target.accelerator.clock_hz
    assert device.expected == [program["cycles"] / clock for program in case.bundle.manifest["programs"]]
