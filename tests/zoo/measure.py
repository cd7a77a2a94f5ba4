"""Measures one network in a process of its own: `python -m tests.zoo.measure NAME` prints JSON."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from hilt.network.board_run import target_of
from hilt.network.calibration import Calibration, Feeds, Runner, make_calibration, session_options, shapes_from
from hilt.network.compile import compile_network
from hilt.network.core_speed import node_work
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import OnnxGraph, load_graph, to_model
from hilt.network.onnx_simplify import fix_float
from hilt.network.quantize.quantizer import Quantisation, quantise
from hilt.network.quantize.statistics import MeanDecibels
from hilt.network.tflite.convert import load_tflite

from .networks import INVENTED, SUBJECTS, Subject

AIM = 20.0
_COMPARED = 32


def measure(subject: Subject, folder: Path) -> dict[str, Any]:
    """Return the figures of a network."""
    path = subject.file(folder)
    if path is None:
        return {"name": subject.name, "error": "its file is not there"}
    arrays = subject.data(path)
    graph = load_tflite(path) if path.suffix == ".tflite" else load_graph(path)
    fix_float(graph, shapes_from(arrays, graph, ""), subject.values)
    canonicalise(graph)
    samples = make_calibration(arrays, graph).samples
    half = len(samples) // 2
    calibration, unseen = Calibration(samples[:half]), list(samples[half:][:_COMPARED])
    found: dict[str, Any] = {"name": subject.name}
    judge = _Judge(graph, unseen, subject.answer)
    found["ort"] = _onnx_runtime(graph, calibration, judge)
    result, seconds = _timed(lambda: quantise(graph, calibration))
    found["int8"] = judge.of(result.model)
    decibels = judge.least(result.model)
    found["quantise_seconds"], found["quantise_mb"] = seconds, _peak()
    if decibels < AIM:
        best, seconds = _timed(lambda: quantise(graph, calibration, least_decibels=AIM))
        found["mixed"] = judge.of(best.model)
        found["mixed_seconds"], found["kept"] = seconds, len(best.kept)
        found["mixed_macs"] = _share(best)
    found["layers"] = len(result.costs.layers)
    print(json.dumps(found), flush=True)
    compiled, seconds = _timed(lambda: compile_network(result.graph, target_of("virtual:pynq")))
    works = {node.name: node_work(result.graph, node).macs for node in result.graph.nodes}
    beside = sum(works.get(placement.node.name, 0) for placement in compiled.placements if not placement.on_vta)
    found["vta_macs"] = 100 - 100 * beside / max(sum(works.values()), 1)
    found["macs"] = sum(works.values()) / 1e6
    found["compile_seconds"], found["peak_mb"] = seconds, _peak()
    return found


def _share(result: Quantisation) -> float:
    """Return the percentage of multiply-accumulates that stay in int8."""
    macs = sum(layer.macs for layer in result.costs.layers)
    return 100 * macs / max(macs + sum(node.macs for node in result.kept), 1)


def _timed(work: Any) -> tuple[Any, float]:
    started = time.process_time()
    made = work()
    return made, time.process_time() - started


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class _Judge:
    """Compares models with the float model on unseen samples."""

    def __init__(self, graph: OnnxGraph, samples: list[Feeds], answer: str) -> None:
        self._graph, self._samples, self._answer = graph, samples, answer
        self._wanted = list(Runner(graph, graph.outputs).over(samples))
        self._floats = [name for name in graph.outputs if graph.dtypes.get(name) == "float32"]

    def of(self, model: OnnxGraph) -> dict[str, Any]:
        """Return the decibels of the worst output, and the agreement of answers in percent."""
        given = list(Runner(model, self._graph.outputs).over(self._samples))
        return self.compare(given)

    def compare(self, given: list[Feeds]) -> dict[str, Any]:
        pairs = list(zip(self._wanted, given, strict=True))
        found = MeanDecibels(self._floats)
        for each in pairs:
            found.add(*each)
        ratios = found.means().values()
        shares = [_agreement(self._answer, w[name], g[name]) for w, g in pairs for name in self._graph.outputs[:1]]
        return {"db": min(ratios) if ratios else None, "agree": float(np.mean(shares)) if self._answer else None}

    def least(self, model: OnnxGraph) -> float:
        """Return the decibels of the worst output; of integers none."""
        decibels = self.of(model)["db"]
        return 0.0 if decibels is None else float(decibels)


def _agreement(kind: str, wanted: Any, given: Any) -> float:
    """Return the percentage of equal answers."""
    if wanted.dtype.kind != "f":
        return 100 * float(np.mean(wanted == given))
    if kind == "mask":
        return 100 * float(np.mean((wanted > 0.3) == (given > 0.3)))
    rows = [values.reshape(-1, values.shape[-1]).argmax(axis=1) for values in (wanted, given)]
    return 100 * float(np.mean(rows[0] == rows[1]))


def _onnx_runtime(graph: OnnxGraph, calibration: Calibration, judge: _Judge) -> dict[str, Any]:
    """Return the figures of ONNX Runtime's own static quantiser: QDQ, int8, weights by channel."""
    import onnx
    import onnxruntime
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._samples = iter(calibration.samples)

        def get_next(self) -> Any:
            return next(self._samples, None)

    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("float.onnx", "prepared.onnx", "int8.onnx")]
        try:
            onnx.save(to_model(graph), str(paths[0]))
            quantization.shape_inference.quant_pre_process(str(paths[0]), str(paths[1]), skip_symbolic_shape=True)
            quantization.quantize_static(
                str(paths[1]), str(paths[2]), Reader(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                activation_type=quantization.QuantType.QInt8, weight_type=quantization.QuantType.QInt8,
            )  # fmt: skip
            session = onnxruntime.InferenceSession(str(paths[2]), session_options())
            given = [
                dict(zip(graph.outputs, session.run(graph.outputs, feeds), strict=True)) for feeds in judge._samples
            ]
        except Exception as error:  # its classes have no common base
            return {"error": type(error).__name__}
    return judge.compare(given)


if __name__ == "__main__":
    chosen = next(subject for subject in (*SUBJECTS, *INVENTED) if subject.name == sys.argv[1])
    print(json.dumps(measure(chosen, Path(sys.argv[2]))), flush=True)
