"""Networks on the agent: residence in memory, repeats, replies and refusals."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hilt_board.protocol import AgentFailure, NetworkRan, Record, RunNetwork
from hilt_runtime import InferenceError, MemoryNeededError, NetworkError
from hilt_runtime.arrays import decode_arrays, encode_arrays

BUNDLE, OTHER = "b" * 64, "c" * 64


@pytest.fixture(scope="module")
def networks() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pynq", ModuleType("pynq"))
        yield importlib.import_module("hilt_board.networks")
        for name in ("networks", "execution", "memory", "driver"):
            sys.modules.pop(f"hilt_board.{name}", None)


class Network:
    """A network that doubles its input; each inference has the number of its turn as seconds."""

    made: list[Network]
    error: Exception | None = None

    def __init__(self, bundle: Any, device: Any, keep: bool) -> None:
        Network.made.append(self)
        self.bundle, self.device, self.keep = bundle, device, keep
        self.ran: list[str] = []
        self.closed = False
        self.engine = SimpleNamespace(reason="native")

    def engines(self) -> dict[str, int]:
        return {"native": 1}

    def close(self) -> None:
        self.closed = True

    def run(self, inputs: dict[str, Any], how: str = "alone") -> Any:
        if self.error is not None:
            raise self.error
        self.ran.append(how)
        outputs = {"y": 2 * inputs["x"]}
        tensors = {"x": inputs["x"], **outputs} if self.keep else {}
        return SimpleNamespace(seconds=float(len(self.ran)), steps=[("conv", 0.5)], outputs=outputs, tensors=tensors)

    def run_each(self, given: list[dict[str, Any]]) -> Iterator[Any]:
        return (self.run(inputs, "overlapped") for inputs in given)


class Agent:
    """The networks of a board whose bundles are their own names."""

    def __init__(self, networks: ModuleType, monkeypatch: pytest.MonkeyPatch, blobs: Path) -> None:
        self.cleared = 0
        self.beats = 0
        self.made: list[Network] = []
        monkeypatch.setattr(Network, "made", self.made, raising=False)
        monkeypatch.setattr(Network, "error", None)
        monkeypatch.setattr(networks, "Network", Network)
        monkeypatch.setattr(networks, "read_bundle", lambda path, name: (path, name))
        names = ("parameters", "isa", "table", "window", "bands", "clock_hz")
        manifest = SimpleNamespace(**{name: f"its {name}" for name in names})
        self.driver = SimpleNamespace(manifest=manifest, run=lambda *given: given)
        self.memory = SimpleNamespace(clear=self._clear, scratch=lambda name, size: (name, size))
        self.networks = networks.Networks(self.driver, self.memory, blobs)
        self.blobs = blobs

    def _clear(self) -> None:
        self.cleared += 1

    def _beat(self) -> None:
        self.beats += 1

    def run(self, x: Any, stopped: Any = lambda: False, **changes: Any) -> Record:
        values = {"bundle": BUNDLE, "name": "model.hilt", "limit_seconds": 1.0}
        inputs = encode_arrays({"x": np.asarray(x)}, {})
        done: Record = self.networks.run(RunNetwork(**{**values, "inputs": inputs, **changes}), self._beat, stopped)
        return done

    def result(self, x: Any, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        done = self.run(x, **changes)
        assert isinstance(done, NetworkRan) and done.outcome == "ok", done
        outputs, facts = decode_arrays(done.result)
        return {name: value.tolist() for name, value in outputs.items()}, facts

    def refusal(self, x: Any = 1, **changes: Any) -> tuple[str, str]:
        done = self.run(x, **changes)
        assert isinstance(done, AgentFailure), done
        return done.code, done.message


@pytest.fixture
def agent(networks: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Agent:
    return Agent(networks, monkeypatch, tmp_path)


def test_an_inference_answers_with_its_outputs_and_times(agent: Agent) -> None:
    outputs, facts = agent.result([1, 2])
    assert outputs == {"y": [2, 4]}
    assert facts["runs"] == [{"seconds": 1.0, "steps": [["conv", 0.5]]}]
    assert (facts["engine"], facts["engines"], facts["overlapped"]["images"]) == ("native", {"native": 1}, 0)
    assert agent.made[0].bundle == (agent.blobs / BUNDLE, "model.hilt") and not agent.made[0].keep


def test_every_tensor_comes_where_it_is_asked_for(agent: Agent) -> None:
    assert agent.result([1, 2], keep=True)[0] == {"x": [1, 2], "y": [2, 4]}


def test_the_network_that_ran_last_stays_until_another_is_run(agent: Agent) -> None:
    for changes in ({}, {}, {"keep": True}, {"keep": True}, {"bundle": OTHER, "keep": True}):
        agent.result([1], **changes)
    assert [len(made.ran) for made in agent.made] == [2, 2, 1] and agent.cleared == 3
    assert [made.closed for made in agent.made] == [True, True, False]
    agent.networks.forget()
    agent.networks.forget()
    assert agent.made[2].closed
    agent.result([1], bundle=OTHER, keep=True)
    assert len(agent.made) == 4


@pytest.mark.parametrize(
    ("images", "repeat", "alone"), [(1, 3, 3), (1, 4, 2), (3, 1, 3), (2, 3, 3), (5, 1, 2), (2, 32, 32), (2, 40, 32)]
)
def test_of_many_inferences_some_run_overlapped(agent: Agent, images: int, repeat: int, alone: int) -> None:
    x = [[image, 10 * image] for image in range(images)] if images > 1 else [7, 70]
    outputs, facts = agent.result(x, images=images, repeat=repeat)
    count = images * repeat
    assert agent.made[0].ran == ["alone"] * alone + ["overlapped"] * (count - alone)
    assert [run["seconds"] for run in facts["runs"]] == [float(number + 1) for number in range(alone)]
    assert facts["overlapped"]["images"] == count - alone and facts["overlapped"]["seconds"] >= 0
    if images == 1:
        assert outputs == {"y": [14, 140]}
    else:
        assert outputs == {f"{image}/y": [2 * image, 20 * image] for image in range(images)}


def test_a_client_that_goes_ends_its_network_after_the_inference(agent: Agent) -> None:
    assert agent.refusal([1], repeat=50, stopped=lambda: len(agent.made[0].ran) >= 3) == (
        "network_refused",
        "the client is gone: its network was ended",
    )
    assert len(agent.made[0].ran) == 3


@pytest.mark.parametrize("x", [[[1], [2]], 5, [[1]]])
def test_inputs_of_fewer_images_than_are_said_are_refused(agent: Agent, x: Any) -> None:
    code, message = agent.refusal(x, images=3)
    assert code == "network_refused" and "x" in message and "3 images" in message
    assert not agent.made[0].ran


def test_bytes_that_are_no_inputs_are_refused(agent: Agent) -> None:
    code, message = agent.refusal(inputs=b"no zip")
    assert code == "network_refused" and "hold no arrays" in message


@pytest.mark.parametrize(
    ("error", "answer", "kept"),
    [
        (MemoryNeededError("too large"), AgentFailure("out_of_memory", "too large"), False),
        (MemoryError(), AgentFailure("network_refused", "run fewer images at once"), False),
        (NetworkError("it has no input z"), AgentFailure("network_refused", "it has no input z"), True),
        (InferenceError("DECERR", "bus_error"), NetworkRan("bus_error", "DECERR"), False),
    ],
)
def test_a_network_that_fails_is_told_and_dropped_where_memory_may_be_in_doubt(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, error: Exception, answer: Any, kept: bool
) -> None:
    agent.result([1])
    monkeypatch.setattr(Network, "error", error)
    done = agent.run([1])
    assert type(done) is type(answer)
    if isinstance(answer, AgentFailure):
        assert isinstance(done, AgentFailure) and done.code == answer.code and answer.message in done.message
    else:
        assert isinstance(done, NetworkRan) and done.outcome == answer.outcome and answer.reason in done.reason
    monkeypatch.setattr(Network, "error", None)
    agent.result([1])
    assert len(agent.made) == (1 if kept else 2)


def test_an_error_of_any_length_fits_into_an_answer(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "error", NetworkError("x" * 9000))
    assert agent.refusal() == ("network_refused", "x" * 4096)


def test_results_that_no_reply_holds_are_refused_with_a_way_out(
    agent: Agent, networks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(agent.run([1]).result)  # type: ignore[attr-defined]
    monkeypatch.setattr(networks, "MAX_BODY_BYTES", size + 100)
    agent.result([1])
    code, message = agent.refusal(list(range(1000)))
    assert code == "network_refused" and f"a reply holds {size + 100}: run fewer images at once" in message


def test_a_network_that_takes_long_gives_signs_of_life(
    agent: Agent, networks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    beaten = threading.Event()
    monkeypatch.setattr(networks, "_BEAT_SECONDS", 0.001)
    monkeypatch.setattr(agent, "_beat", beaten.set)
    agent.result([1], stopped=lambda: not beaten.wait(60))
    threads = threading.active_count()
    agent.result([1])
    assert threading.active_count() == threads


def test_its_device_is_the_agents(networks: ModuleType, agent: Agent) -> None:
    device = networks.AgentDevice(agent.driver, agent.memory)
    for name in ("parameters", "isa", "table", "window", "bands", "clock_hz"):
        assert getattr(device, name) == f"its {name}"
    assert [device.allocate(size) for size in (10, 20)] == [("network 1", 10), ("network 2", 20)]
    assert device.run("words", 3, 0.5) == ("words", 3, 0.5, 0.0)
    assert device.run("words", 3, 0.5, 0.1) == ("words", 3, 0.5, 0.1)


@pytest.mark.parametrize(
    ("free", "kernel", "known"),
    [(4096, None, ", 4096 bytes are free"), (None, 8192, ", 8192 bytes are free"), (None, None, ""), (0, 8, ", 0 b")],
)
def test_memory_that_is_not_there_is_told_with_what_is(
    networks: ModuleType,
    agent: Agent,
    monkeypatch: pytest.MonkeyPatch,
    free: int | None,
    kernel: int | None,
    known: str,
) -> None:
    def fail(name: str, size: int) -> None:
        raise networks.OutOfContiguousMemoryError("full")

    device = SimpleNamespace() if free is None else SimpleNamespace(contiguous_bytes_free=free)
    monkeypatch.setattr(networks.pynq, "Device", SimpleNamespace(active_device=device), raising=False)
    monkeypatch.setattr(networks, "_kernel_bytes_free", lambda: kernel)
    agent.memory.scratch = fail
    with pytest.raises(MemoryNeededError) as error:
        networks.AgentDevice(agent.driver, agent.memory).allocate(999)
    text = str(error.value)
    assert text.startswith(f"the network needs 999 bytes of contiguous memory{known}") and "cma= at boot" in text


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("CmaTotal: 1 kB\nCmaFree:  12 kB\n", 12288),
        ("MemFree: 5 kB\n", None),
        ("CmaFree:\n", None),
        ("CmaFree: x", None),
    ],
)
def test_the_kernel_says_how_much_contiguous_memory_is_free(
    networks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, free: int | None
) -> None:
    monkeypatch.setattr(networks, "Path", lambda path: tmp_path / "meminfo")
    assert networks._kernel_bytes_free() is None
    (tmp_path / "meminfo").write_text(text)
    assert networks._kernel_bytes_free() == free
