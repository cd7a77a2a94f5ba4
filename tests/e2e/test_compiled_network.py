"""The path from an ONNX file to a verified inference on a virtual board, and the results of failures."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilt.cli.main import run as hilt
from hilt.link.agent import build_archive, deploy
from hilt.link.deadline import Deadline
from hilt.link.errors import BoardBusyError, LinkError
from hilt.link.host_keys import HostKeys
from hilt.link.session import SshSession
from hilt.measure.interfaces import BoardEvent, BoardState
from hilt.network.board_run import BoardLostInInferenceError, BoardRunner, target_of
from hilt.network.compile import compile_network
from hilt.network.reference import evaluate
from hilt.network.verify import compare
from hilt.store import Store, database_path
from hilt.trial import Outcome
from hilt_runtime import InferenceError, MemoryNeededError, NetworkError, TargetError, read_bundle
from hilt_runtime.arrays import encode_arrays
from tests.unit.network_compile.graphs import Builder, residual_network

BOARD = "virtual:pynq"


class Model:
    """A small residual network compiled for the board, with an input and the reference of every tensor."""

    def __init__(self) -> None:
        builder = residual_network()
        self.graph = builder.graph(builder.nodes[-1].outputs[0])
        self.data = compile_network(self.graph, target_of(BOARD)).data
        self.bundle = read_bundle(self.data, "small.hilt")
        self.input = builder.input()
        self.inputs = encode_arrays({"x": self.input}, {})
        self.reference = evaluate(self.graph, {"x": self.input})
        self.output = self.graph.outputs[0]


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def events() -> list[BoardEvent]:
    return []


@pytest.fixture(scope="module")
def runner(shared_home: Path, events: list[BoardEvent]) -> Iterator[BoardRunner]:
    with BoardRunner(BOARD, events.append) as opened:
        yield opened


def test_every_tensor_on_the_board_is_the_references(model: Model, runner: BoardRunner) -> None:
    answer = runner.run(model.bundle, model.data, model.inputs, keep=True)
    assert compare(answer.arrays, model.reference, model.graph).tensors == len(model.graph.tensors)
    counted = [step[5] for step in answer.runs[0]["steps"] if step[0] == "vta"]
    assert counted == [program["cycles"] for program in model.bundle.manifest["programs"]]


def test_several_images_are_answered_half_of_them_overlapped(model: Model, runner: BoardRunner) -> None:
    images = np.stack([model.input, np.flip(model.input, 2), np.zeros_like(model.input)])
    answer = runner.run(model.bundle, model.data, encode_arrays({"x": images}, {}), images=3, repeat=2)
    assert len(answer.runs) == 3 and answer.overlapped[0] == 3 and answer.overlapped[1] > 0
    for ordinal, image in enumerate(images):
        expected = evaluate(model.graph, {"x": image})[model.output]
        assert np.array_equal(answer.arrays[f"{ordinal}/{model.output}"], expected)


def test_a_board_lost_in_the_middle_of_an_inference_comes_back_and_runs_it_again(
    model: Model, runner: BoardRunner, events: list[BoardEvent]
) -> None:
    before = len(events)
    failed: list[BaseException] = []

    def cut_off() -> None:
        connected = runner.connection.connected
        assert connected is not None
        while connected.client.status(Deadline(30)).state != "busy":
            pass
        connected.agent.session.close()

    cutter = threading.Thread(target=cut_off)
    cutter.start()
    try:
        answer = runner.run(model.bundle, model.data, model.inputs, repeat=100)
    except BaseException as error:
        failed.append(error)
        raise
    finally:
        cutter.join()
    assert not failed and np.array_equal(answer.arrays[model.output], model.reference[model.output])
    assert BoardState.LOST in [event.state for event in events[before:]]


def test_an_inference_is_repeated_once_after_its_workers_death(
    model: Model, runner: BoardRunner, events: list[BoardEvent]
) -> None:
    connected = runner.connection.connected
    assert connected is not None
    before, worker = len(events), connected.client.status(Deadline(30)).worker
    assert worker is not None

    def kill() -> None:
        assert connected is not None
        while connected.client.status(Deadline(30)).state != "busy":
            pass
        os.kill(worker, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        answer = runner.run(model.bundle, model.data, model.inputs, repeat=100)
    finally:
        killer.join()
    assert np.array_equal(answer.arrays[model.output], model.reference[model.output])
    said = [event.detail for event in events[before:] if event.state is BoardState.RECOVERING]
    assert any("ended by signal 9" in detail and "the inference is repeated once" in detail for detail in said)


def test_an_inference_that_fails_twice_is_an_error(
    model: Model, runner: BoardRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def fails(*arguments: object) -> None:
        asked.append(1)
        raise InferenceError("no FINISH", "timeout")

    monkeypatch.setattr(runner, "_once", fails)
    with pytest.raises(InferenceError, match="no FINISH"):
        runner.run(model.bundle, model.data, model.inputs)
    assert len(asked) == 2


def test_a_clients_death_ends_its_inference_and_another_waits_for_it(
    shared_home: Path, model: Model, runner: BoardRunner, tmp_path: Path
) -> None:
    """A client that would take minutes is killed: the next one has the board within ten seconds."""
    path = tmp_path / "m.hilt"
    path.write_bytes(model.data)
    runner.connection.disconnect()
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert client.stdout is not None and client.stdout.readline() == "running\n"
        with pytest.raises(BoardBusyError, match="is in use by hilt of .*; `--wait` waits for it"):
            runner._connect(wait=False)
    finally:
        client.kill()
        client.wait()
    killed = time.monotonic()
    runner._connect(wait=True)
    assert time.monotonic() - killed < FREE_SECONDS
    answer = runner.run(model.bundle, model.data, model.inputs)
    assert np.array_equal(answer.arrays[model.output], model.reference[model.output])


CLIENT = """
import sys, threading
import numpy as np
from hilt.network.board_run import BoardRunner, open_bundle
from hilt.link.deadline import Deadline
from hilt_runtime.arrays import encode_arrays
bundle, data = open_bundle(sys.argv[1])
with BoardRunner("virtual:pynq") as runner:
    def say():
        while runner.connection.connected.client.status(Deadline(30)).state != "busy":
            pass
        print("running", flush=True)
    threading.Thread(target=say, daemon=True).start()
    inputs = {each["name"]: np.zeros(each["shape"], each["dtype"]) for each in bundle.inputs}
    runner.run(bundle, data, encode_arrays(inputs, {}), repeat=60000)
"""
FREE_SECONDS = 10.0
"""The longest from a client's death until another has the board; two seconds beside ten busy processes a core."""


def test_a_board_that_does_not_come_back_is_one_clear_line(
    model: Model, runner: BoardRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert runner.connection.connected is not None
    with monkeypatch.context() as patch:
        patch.setattr(runner._recovery, "recover_from", lambda error: LinkError("power stays off"))
        runner.connection.connected.agent.session.close()
        with pytest.raises(BoardLostInInferenceError) as caught:
            runner.run(model.bundle, model.data, model.inputs)
    line = str(caught.value)
    assert line.startswith(f"{BOARD} was lost in the middle of an inference and did not come back: power stays off; ")
    assert line.endswith("nothing was written; run the command again when the board is well") and "\n" not in line
    answer = runner.run(model.bundle, model.data, model.inputs)  # it is well again
    assert np.array_equal(answer.arrays[model.output], model.reference[model.output])


def test_an_input_that_is_not_the_networks_is_refused_by_the_board(model: Model, runner: BoardRunner) -> None:
    wrong = encode_arrays({"x": np.zeros((1, 3, 12, 13), np.int8)}, {})
    with pytest.raises(
        NetworkError, match=r"input x is int8 \(1, 3, 12, 13\), the network takes int8 \(1, 3, 12, 12\)"
    ):
        runner.run(model.bundle, model.data, wrong)
    assert np.array_equal(
        runner.run(model.bundle, model.data, model.inputs).arrays[model.output], model.reference[model.output]
    )


def test_a_bundle_that_would_leave_its_memory_is_refused_by_the_board(model: Model, runner: BoardRunner) -> None:
    """A host that checks nothing sends it: the agent refuses it in one line, and keeps its worker."""
    assert runner.connection.connected is not None
    client = runner.connection.connected.client
    worker = client.status(Deadline(30)).worker
    hostile = far_store(model.data)
    with pytest.raises(NetworkError, match=r"\(STORE of OUT\) covers bytes .* outside its buffer"):
        runner.run(model.bundle, hostile, model.inputs)
    assert client.status(Deadline(30)).worker == worker
    answer = runner.run(model.bundle, model.data, model.inputs)
    assert np.array_equal(answer.arrays[model.output], model.reference[model.output])


def far_store(data: bytes) -> bytes:
    """Return a bundle whose first STORE goes 64 MiB further, with all sums right."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "programs/0/instructions.npy"
    words = np.load(io.BytesIO(parts[name]))
    words[int(np.argmax((words[:, 0] & np.uint64(7)) == 1)), 0] += np.uint64((64 << 20) // 16 << 25)
    part = io.BytesIO()
    np.save(part, words)
    parts[name] = part.getvalue()
    manifest = json.loads(parts["manifest.json"])
    manifest["parts"][name]["sha256"] = hashlib.sha256(parts[name]).hexdigest()
    parts["manifest.json"] = json.dumps(manifest).encode()
    parts["manifest.json.sha256"] = hashlib.sha256(parts["manifest.json"]).hexdigest().encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for part_name, contents in parts.items():
            archive.writestr(part_name, contents)
    return file.getvalue()


def test_a_bundle_for_another_accelerator_is_refused_before_it_is_sent(model: Model, runner: BoardRunner) -> None:
    builder = Builder((1, 16, 8, 8))
    other = compile_network(builder.graph(builder.conv("x", 16)), target_of("virtual:pynq_batched")).data
    with pytest.raises(
        TargetError,
        match="o.hilt is for parameters 4x8_i8w8a32_15_16_16_18, virtual:pynq has 1x16_i8w8a32_15_15_18_17",
    ):
        runner.run(read_bundle(other, "o.hilt"), other, model.inputs)


def test_a_bundle_for_another_bitstream_is_refused_with_both_names(model: Model, runner: BoardRunner) -> None:
    bundle = read_bundle(model.data, "m.hilt")
    there = bundle.manifest["target"]["bitstream"]
    bundle.manifest["target"]["bitstream"] = "f" * 64
    with pytest.raises(TargetError, match=f"m.hilt is for bitstream ffffffffffff, virtual:pynq has {there[:12]}"):
        runner.run(bundle, model.data, model.inputs)


def test_too_little_contiguous_memory_is_said_in_bytes(runner: BoardRunner) -> None:
    """Two tensors of 64 MiB live at once; input and outputs fit a message."""
    builder = Builder((1, 16, 128, 128))
    first = builder.conv("x", 16, 1)
    shape, factors = (1, 16, 2048, 2048), {"factors": [16, 16]}
    large = [builder.add_node(f"large{number}", "upsample", [first], shape, factors) for number in range(2)]
    ends = [builder.conv(name, 16, 1, stride=16) for name in large]
    data = compile_network(builder.graph(*ends), target_of(BOARD)).data
    with pytest.raises(
        MemoryNeededError, match=r"the network needs 1[34]\d{7} bytes of contiguous memory, \d+ bytes are free.*in all"
    ):
        runner.run(read_bundle(data, "large.hilt"), data, encode_arrays({"x": builder.input()}, {}))


ALONE = """
import sys
sys.path[:0] = [{agent!r}]
import hilt_virtual_board.verilated  # the virtual board's hardware, as pynq finds it
import numpy as np
from hilt_runtime import Network
network = Network("model.hilt", bitstream="vta.bit")
for _ in range(2):
    y = network(np.load("x.npy"))
np.save("y.npy", y)
print(sorted(name for name in sys.modules if name.split(".")[0] in ("hilt", "onnx", "tvm")))
"""


def test_a_board_alone_runs_a_bundle_with_numpy_and_pynq_only(model: Model, runner: BoardRunner) -> None:
    """A board alone runs a bundle with numpy and pynq only.

    Only the virtual board's device is taken from the agent; it stands for the hardware.
    """
    target = runner.board
    with SshSession.connect(target.endpoint(), HostKeys(), Deadline(60)) as session:
        archive = build_archive(virtual=True)
        deploy(session, archive, Deadline(60))
        x = io.BytesIO()
        np.save(x, model.input)
        script = ALONE.format(agent=archive.remote_path).encode()
        files = {"model.hilt": model.data, "vta.bit": target.bitstream(), "x.npy": x.getvalue(), "alone.py": script}
        for name, contents in files.items():
            session.put(contents, name, Deadline(60))
        completed = session.execute(["python3", "alone.py"], Deadline(120))
        assert completed.status == 0, completed.last_line
        assert completed.output.decode().strip().splitlines()[-1] == "[]"
        written = session.execute(["cat", "y.npy"], Deadline(60)).output
    assert np.array_equal(np.load(io.BytesIO(written)), model.reference[model.output])


@cache
def quantised(name: str) -> Any:
    """Return one of the zoo's networks as a ModelProto, quantised with a few random images. Nobody changes it."""
    from hilt.network import zoo
    from hilt.network.calibration import make_calibration
    from hilt.network.onnx_canonical import canonicalise
    from hilt.network.onnx_graph import to_model
    from hilt.network.onnx_simplify import fixed_model
    from hilt.network.quantize.quantizer import quantise

    graph = fixed_model(zoo.make(name), name)
    canonicalise(graph)
    calibration = make_calibration({"input": zoo.calibration_data(name, 4)}, graph)
    return to_model(quantise(graph, calibration, search=False).model)


def save_quantised(name: str, path: Path, *, opened: bool = False) -> None:
    """Write one of the zoo's networks, quantised; `opened` leaves its input's sizes open."""
    import onnx

    model = copy.deepcopy(quantised(name))
    if opened:
        for number, size in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
            size.dim_param = f"size{number}"
        del model.graph.value_info[:]
    onnx.save(model, path)


def test_two_commands_lead_from_onnx_to_a_verified_inference(
    shared_home: Path, runner: BoardRunner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runner.close()  # the commands take the board themselves
    model, bundle, output = tmp_path / "ds_cnn.onnx", tmp_path / "ds_cnn.hilt", tmp_path / "y.npy"
    save_quantised("ds_cnn", model, opened=True)
    assert hilt(["compile", str(model), "--measure", "-o", str(bundle)]) == 2
    assert "has the open shape ?x?x?x?; give it with --shape" in " ".join(capsys.readouterr().err.split())
    assert hilt(["compile", str(model), "--shape", "input=1,1,49,10", "--measure", "-o", str(bundle)]) == 0
    assert "have the best of a search with the twin" in " ".join(capsys.readouterr().out.split())
    manifest = read_bundle(bundle).manifest
    assert manifest["target"]["processor"]["source"] == "assumed of a Cortex-A9"
    assert all("assumed of a Cortex-A9" in each["reason"] for each in manifest["placements"] if each["where"] == "vta")
    trace = tmp_path / "trace.json"
    arguments = ["run", str(bundle), "--output", str(output), "--verify", "--json", "--perfetto", str(trace)]
    assert hilt(arguments) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["verified"]["tensors"] == 15 and np.load(output).shape == (1, 12)
    assert sum(layer["cycles"] for layer in facts["profile"]["layers"]) == pytest.approx(
        facts["profile"]["latency"]["vta"] * 100
    )
    assert {event["ph"] for event in json.loads(trace.read_text())["traceEvents"]} == {"M", "X"}


def test_a_campaign_of_a_quantised_model_ends_with_a_verified_inference(
    shared_home: Path, runner: BoardRunner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runner.close()
    model = tmp_path / "autoencoder.onnx"
    save_quantised("autoencoder", model, opened=True)
    sizes = ["--shape", "input=1,640"]
    arguments = ["campaign", str(model), *sizes, "--board", BOARD, "--budget", "24", "--output", str(tmp_path / "out")]
    assert hilt(arguments) == 0
    said = capsys.readouterr()
    assert "with the fallback schedules" in " ".join(said.out.split())
    assert "elements equal to the integer reference" in " ".join(said.err.split())
    manifest = read_bundle(tmp_path / "out" / "network.hilt").manifest
    assert {layer["schedule"] for layer in manifest["layers"]} == {"tuned"}
    assert "use of the multipliers" in (tmp_path / "out" / "report.html").read_text()


def test_trials_with_a_skip_connection_are_verified_and_the_same_seed_repeats_them(
    shared_home: Path, runner: BoardRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    runner.close()
    workload = "conv2d:n=1,ci=16,h=8,w=8,co=16,k=3x3,s=1x1,p=1x1,bias=1,epilogue=skip"
    records = []
    for _ in range(2):
        assert hilt(["tune", workload, "--board", BOARD, "--trials", "6", "--seed", "3", "--json"]) == 0
        uuid = json.loads(capsys.readouterr().out)["run"]
        with Store(database_path(shared_home)) as store:
            run, trials = store.run(uuid), store.trials(uuid)
        assert run.workload_spec["epilogue"] == "skip"
        assert {trial.outcome for trial in trials} <= {Outcome.OK, Outcome.REJECTED}
        assert sum(trial.verified for trial in trials) >= 3
        records.append([(trial.index, trial.outcome, trial.cycles) for trial in trials])
    assert records[0] == records[1]


def test_a_resumed_campaign_ends_with_the_bundle_too(
    shared_home: Path, runner: BoardRunner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runner.close()
    model = tmp_path / "autoencoder.onnx"
    save_quantised("autoencoder", model)
    assert hilt(["campaign", str(model), "--board", BOARD, "--budget", "24", "--detach"]) == 0
    model.unlink()  # the campaign has what it needs
    capsys.readouterr()
    assert hilt(["resume", "last", "--output", str(tmp_path / "out"), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["kind"] == "campaign"
    assert "elements equal to the integer reference" in " ".join(said.err.split())
    assert read_bundle(tmp_path / "out" / "network.hilt").manifest["name"] == "autoencoder"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "none.hilt"], 2, "none.hilt cannot be read: No such file"),
        (["compile", "none.onnx", "-o", "x.hilt"], 2, "none.onnx"),
        (["compile", "none.onnx", "-o", "no/folder/x.hilt"], 2, "its folder is missing"),
        (["eval", "none.hilt", "--data", "d.npz"], 2, "none.hilt cannot be read"),
    ],
)
def test_a_file_that_is_not_there_is_one_clear_line(
    arguments: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert hilt(arguments) == code
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and message in said[0]
    assert not list(tmp_path.iterdir())
