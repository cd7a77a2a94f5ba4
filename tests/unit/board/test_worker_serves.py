"""A worker at its socket: signs of life, answers in order, bitstreams that load or do not, and how it ends."""

from __future__ import annotations

import importlib
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hilt_board.home import Home, open_home
from hilt_board.protocol import (
    AgentFailure,
    Beat,
    BitstreamLoaded,
    FrameDecoder,
    LoadBitstream,
    Measure,
    Measured,
    NetworkRan,
    Ready,
    Record,
    Reset,
    ResetDone,
    RunNetwork,
    StopNetwork,
    encode_frame,
    from_frame,
    to_frame,
)

from .examples import CODE, DIGEST, MANIFEST, MEASURED, TRIAL

OTHER = "e" * 64
LOAD = LoadBitstream(DIGEST, MANIFEST, TRIAL, CODE)
RUN = RunNetwork(DIGEST, "model.hilt", 1.0)


@pytest.fixture(scope="module")
def module() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pynq", ModuleType("pynq"))
        yield importlib.import_module("hilt_board.worker")
        for name in ("worker", "networks", "execution", "memory", "driver"):
            sys.modules.pop(f"hilt_board.{name}", None)


class Device:
    """A driver, a memory and networks in one. It notes each request, and returns or raises the answer in `answers`."""

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.answers: dict[str, Any] = {}

    def act(self, name: str, *given: Any) -> Any:
        self.did.append((name, *given) if given else name)
        answer = self.answers.get(name)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.act(name, *(given if name in ("program", "remove_firmware") else ()))


class Bench:
    """A worker and the daemon's end of its socket."""

    def __init__(self, module: ModuleType, monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
        self.device = Device()
        self.module = module
        self.ours, theirs = socket.socketpair()
        active = SimpleNamespace(name="Pynq-Z2", tag="tag", time_scale=4.0)
        monkeypatch.setattr(module.pynq, "Device", SimpleNamespace(active_device=active), raising=False)
        monkeypatch.setattr(module, "Driver", lambda scale, beat: self.device)
        monkeypatch.setattr(module, "ContiguousMemory", lambda blobs: self.device)
        monkeypatch.setattr(module, "Networks", lambda *given: self.device)
        monkeypatch.setattr(module, "remove_firmware", lambda **given: self.device.act("remove_firmware", given))
        well = SimpleNamespace(outcome="ok", reason="")
        monkeypatch.setattr(module, "finish_only", lambda *given: self.device.act("finish") or well)
        monkeypatch.setattr(module, "run_trial", lambda *given: self.device.act("trial") or MEASURED)
        self.device.answers["trial"] = SimpleNamespace(outcome="ok", reason="")
        self.worker = module.Worker(theirs, home)

    def serve(self, *messages: Record) -> list[tuple[int, Record]]:
        """Send requests, numbered from 1, and the end; return the worker's lines until it ends."""
        for number, message in enumerate(messages, 1):
            self.ours.sendall(encode_frame(to_frame(message, number)))
        self.ours.shutdown(socket.SHUT_WR)
        try:
            self.worker.serve()
        finally:
            self.worker._connection.close()
            data = b""
            with suppress(ConnectionResetError):  # requests were left unread
                while more := self.ours.recv(1 << 20):
                    data += more
            self.said = [from_frame(frame) for frame in FrameDecoder().feed(data)]
            self.ours.close()
        return self.said


@pytest.fixture
def bench(module: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    monkeypatch.setenv("HILT_AGENT_HOME", str(tmp_path / "agent"))
    return Bench(module, monkeypatch, open_home())


def test_it_says_what_it_is_and_ends_with_its_daemon(bench: Bench, module: ModuleType) -> None:
    ((number, ready),) = bench.serve()
    assert isinstance(ready, Ready) and number == 0
    assert (ready.device, ready.time_scale, ready.numpy) == ("Pynq-Z2", 4.0, module.np.__version__)
    assert ready.python == module.platform.python_version() and ready.pynq == "unknown"


@pytest.mark.parametrize("length", [64, 65, 200])
def test_long_names_are_cut_to_what_the_protocol_holds(
    bench: Bench, module: ModuleType, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setattr(module.pynq.Device.active_device, "name", "n" * length)
    monkeypatch.setattr(module.pynq, "__version__", "3" * length, raising=False)
    ((_, ready),) = bench.serve()
    assert isinstance(ready, Ready) and (ready.device, ready.pynq) == ("n" * 64, "3" * 64)


def test_each_request_has_a_sign_of_life_before_its_answer(bench: Bench) -> None:
    bench.device.answers |= {"run": NetworkRan("ok"), "trial": Measured("run/1/0", "ok")}
    said = bench.serve(LOAD, StopNetwork(), RUN, Reset("reload"), Measure(TRIAL, CODE))
    assert [(number, type(message)) for number, message in said[1:]] == [
        *((0, Beat), (1, BitstreamLoaded), (0, Beat), (3, NetworkRan)),
        *((0, Beat), (4, ResetDone), (0, Beat), (5, Measured)),
    ]
    loaded = said[2][1]
    assert isinstance(loaded, BitstreamLoaded) and loaded.seconds >= 0
    assert (loaded.bitstream, loaded.clock_hz) == (DIGEST, MANIFEST.clock_hz)


def test_a_bug_is_told_and_ends_the_worker(bench: Bench) -> None:
    bench.device.answers["forget"] = KeyError("x" * 9000)
    with pytest.raises(KeyError):
        bench.serve(LOAD, LOAD)
    number, failure = bench.said[-1]
    assert isinstance(failure, AgentFailure) and (number, failure.code) == (1, "worker_failed")
    assert failure.message.startswith("worker failed: KeyError: 'xxx") and len(failure.message) == 4096
    assert len(bench.said) == 3, "no other request is begun"


def test_a_network_needs_a_bitstream(bench: Bench) -> None:
    failure = bench.serve(RUN)[-1][1]
    assert isinstance(failure, AgentFailure) and failure.code == "not_programmed" and bench.device.did == []


def test_memory_is_kept_for_the_same_bitstream_and_given_back_for_another(bench: Bench) -> None:
    bench.serve(LOAD, LOAD, LoadBitstream(OTHER, MANIFEST))
    steps = [step for step in bench.device.did if step in ("forget", "clear", "give_back", "finish", "trial")]
    assert steps == [
        *("forget", "give_back", "finish", "trial"),
        *("forget", "clear", "finish", "trial"),
        *("forget", "give_back", "finish"),
    ], "the last has no canary of its own"
    bitstreams = bench.worker._home.bitstreams
    programmed = [step[1:] for step in bench.device.did if step[0] == "program"]
    assert programmed == [(bitstreams / f"{each}.bit", MANIFEST) for each in (DIGEST, DIGEST, OTHER)]
    kept = [step[1] for step in bench.device.did if step[0] == "remove_firmware"]
    assert kept == [{"keep": DIGEST}, {"keep": DIGEST}, {"keep": OTHER}]


@pytest.mark.parametrize(
    ("step", "error", "code"),
    [
        ("program", "NotLoadedError", "board_broken"),
        ("program", "ValueError", "bitstream_refused"),
        ("trial", "OutOfContiguousMemoryError", "out_of_memory"),
        ("finish", "NotLoadedError", "board_broken"),
    ],
)
def test_a_bitstream_that_does_not_come_up_is_not_loaded(
    bench: Bench, module: ModuleType, step: str, error: str, code: str
) -> None:
    kind = getattr(module, error, ValueError)
    bench.device.answers[step] = kind("why it is so")
    said = bench.serve(LOAD, RUN)
    loading, running = said[2][1], said[4][1]
    assert isinstance(loading, AgentFailure) and loading.code == code and "why it is so" in loading.message
    assert isinstance(running, AgentFailure) and running.code == "not_programmed"


def test_a_canary_that_fails_is_named(bench: Bench) -> None:
    bench.device.answers["trial"] = SimpleNamespace(outcome="wrong_answer", reason="2 differ")
    failure = bench.serve(LOAD)[-1][1]
    assert isinstance(failure, AgentFailure) and failure.code == "board_broken"
    assert failure.message == "canary failed after loading: wrong_answer: 2 differ"


def test_a_trial_forgets_the_network_and_its_fault_is_an_answer(bench: Bench, module: ModuleType) -> None:
    bench.device.answers["trial"] = MEASURED
    assert bench.serve(Measure(TRIAL, CODE))[-1] == (1, MEASURED) and bench.device.did == ["forget", "trial"]


def test_a_trial_that_cannot_run_is_a_failure(bench: Bench, module: ModuleType) -> None:
    bench.device.answers["trial"] = module.NotLoadedError("gone")
    failure = bench.serve(Measure(TRIAL, CODE))[-1][1]
    assert isinstance(failure, AgentFailure) and (failure.code, failure.message) == ("board_broken", "gone")


def test_a_blob_gets_a_name_that_pynq_accepts_once(bench: Bench) -> None:
    blob = bench.worker._home.blobs / DIGEST
    blob.write_bytes(b"bits")
    path = bench.worker._bitstream_path(DIGEST)
    (path.with_suffix(".new")).write_text("left over")
    assert path.read_bytes() == b"bits" and path.name == f"{DIGEST}.bit"
    assert not path.readlink().is_absolute(), "the folder may move"
    made = path.lstat().st_ino
    assert bench.worker._bitstream_path(DIGEST) == path and path.lstat().st_ino == made
    path.unlink()
    assert bench.worker._bitstream_path(DIGEST).read_bytes() == b"bits"


def test_signs_of_life_are_not_more_than_needed(
    bench: Bench, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    sent: list[Any] = []
    monkeypatch.setattr(bench.worker, "_send", sent.append)
    for step in (0.0, 0.5 * module._BEAT_SECONDS, 0.4 * module._BEAT_SECONDS, 0.2 * module._BEAT_SECONDS):
        now += step
        bench.worker._beat()
    assert sent == [Beat(), Beat()]
    bench.worker._send_beat()
    assert len(sent) == 3


def test_the_daemons_word_ends_a_network(bench: Bench) -> None:
    assert not bench.worker._stop_asked()
    bench.ours.sendall(encode_frame(to_frame(StopNetwork())))
    assert bench.worker._stop_asked() and not bench.worker._stop_asked()
    bench.ours.close()
    assert not bench.worker._stop_asked(), "the end of the daemon is the end of the worker"
