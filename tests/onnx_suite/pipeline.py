"""One model from ONNX to outputs on the golden model, and the verdict against ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from hilt.network.calibration import Calibration, CalibrationError, Runner
from hilt.network.compile import UnplaceableError, compile_network
from hilt.network.gate import WrongFileError, check_file, check_rewritten
from hilt.network.graph import GraphError
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import graph_of, to_model
from hilt.network.onnx_import import import_proto
from hilt.network.onnx_simplify import fix, fix_float
from hilt.network.quantize.quantizer import quantise
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.verify import WrongTensorError, compare, inside_of
from hilt.schedule.onnx_model import OnnxError
from hilt_runtime import Network, read_bundle
from hilt_runtime.errors import NetworkError
from tests.onnx_suite.cases import Case
from tests.unit.network_compile.graphs import target

Array = NDArray[Any]


class Verdict(StrEnum):
    """The end of a case."""

    RUN = "run"
    REFUSED = "refused"
    UNKNOWN = "ONNX Runtime cannot"
    WRONG = "wrong"
    FAULT = "fault"


@dataclass(frozen=True)
class Ended:
    """A case's verdict, the reason where it is not `run`, and the worst output's decibels against the float model."""

    verdict: Verdict
    reason: str = ""
    decibels: float = float("inf")
    on_vta: int = 0


def run(case: Case) -> Ended:
    """Return the verdict on one case; every exception that is not one of hilt's own refusals is a fault."""
    try:
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), providers=["CPUExecutionProvider"])
        wanted = dict(zip([each.name for each in session.get_outputs()], session.run(None, case.feeds), strict=True))
    except Exception as error:
        return Ended(Verdict.UNKNOWN, str(error)[:200])
    if not all(isinstance(each, np.ndarray) for each in wanted.values()):
        return Ended(Verdict.UNKNOWN, "outputs that are no tensors")
    try:
        return _held(case, wanted)
    except (WrongTensorError, WrongFileError) as error:
        return Ended(Verdict.WRONG, str(error))
    except (OnnxError, CalibrationError, GraphError, UnplaceableError, NetworkError) as error:
        return Ended(Verdict.REFUSED, str(error))
    except Exception as error:
        return Ended(Verdict.FAULT, f"{type(error).__name__}: {error}")


def _held(case: Case, wanted: dict[str, Array]) -> Ended:
    graph = graph_of(case.model, "suite")
    shapes = {name: list(array.shape) for name, array in case.feeds.items()}
    fix_float(graph, shapes, {})
    original = graph_of(to_model(graph), "suite")
    fix(original, {}, {})
    canonicalise(graph)
    feeds = {name: case.feeds[name].astype(graph.dtypes[name]) for name in graph.inputs}
    check_rewritten(original, graph, [feeds])
    result = quantise(graph, Calibration((feeds,)), search=False)
    network = import_proto(to_model(result.model), "suite")
    check_file(network, result.model, [feeds])
    with SimulatedVta(target()) as device:
        bundle = read_bundle(compile_network(network, target()).data, "suite")
        inference = Network(bundle, device, keep=True).run(feeds)
    compare(inference.tensors, evaluate(network, feeds), network, inside_of(bundle.manifest))
    quantised = Runner(result.model, result.model.outputs, optimised=False).run(feeds)
    worst = float("inf")
    for (name, first), second in zip(wanted.items(), result.model.outputs, strict=True):
        made = inference.outputs[second]
        if made.shape != first.shape:
            return Ended(Verdict.WRONG, f"output {name} is {made.shape}, ONNX Runtime's {first.shape}")
        if made.dtype != first.dtype and first.dtype not in (np.uint8, np.int8):
            return Ended(Verdict.WRONG, f"output {name} is {made.dtype}, ONNX Runtime's {first.dtype}")
        if first.dtype.kind == "f":
            worst = min(worst, decibels(first, made))
            if decibels(quantised[second], made) < 20:
                return Ended(Verdict.WRONG, f"output {name} is {decibels(quantised[second], made):.1f} dB")
    on_vta = sum(step["kind"] == "vta" for step in bundle.manifest["steps"])
    return Ended(Verdict.RUN, "", worst, on_vta)


def decibels(wanted: Array, made: Array) -> float:
    """Return the signal to noise of the finite values; infinite where nothing differs."""
    finite = np.isfinite(wanted) & np.isfinite(made)
    if not finite.any():
        return float("inf") if np.array_equal(np.isfinite(wanted), np.isfinite(made)) else -float("inf")
    noise = float(np.mean((wanted[finite].astype(np.float64) - made[finite]) ** 2))
    signal = float(np.mean(wanted[finite].astype(np.float64) ** 2))
    return float("inf") if noise <= 1e-12 * max(signal, 1e-20) else float(10 * np.log10(max(signal, 1e-20) / noise))
