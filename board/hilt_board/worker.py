"""The process that owns the device: one message at a time over a socket from the daemon. It may die."""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import platform
import select
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Callable, Dict, Optional, Tuple, Type

import numpy as np
import pynq

from .bitfile import BitfileError
from .driver import AddressError, ClockError, Driver, DriverError, IdentityMismatchError, NotLoadedError, StuckError
from .execution import InvalidProgramError, finish_only, run_trial
from .home import Home
from .leftovers import remove_firmware
from .memory import ContiguousMemory, OutOfContiguousMemoryError, TensorError
from .networks import Networks
from .protocol import (
    AgentFailure,
    Beat,
    BitstreamLoaded,
    LoadBitstream,
    Measure,
    Ready,
    Record,
    Reset,
    ResetDone,
    RunNetwork,
    StopNetwork,
    encode_frame,
    from_frame,
    read_frame,
    to_frame,
)

_LOG = logging.getLogger("hilt.worker")
_BEAT_SECONDS = 0.25
_CANARY_SECONDS = 0.01
"""Seconds of the device: a hundred thousand times the duration of one FINISH."""

# The most particular first.
_FAILURES: Tuple[Tuple[Type[Exception], str], ...] = (
    (IdentityMismatchError, "identity_mismatch"),
    (OutOfContiguousMemoryError, "out_of_memory"),
    (TensorError, "blob_missing"),
    (InvalidProgramError, "program_invalid"),
    (AddressError, "program_invalid"),
    (StuckError, "board_broken"),
    (NotLoadedError, "board_broken"),
    (ClockError, "bitstream_refused"),
)


class Worker:
    """Answers Program, Measure and Reset with the device that pynq found."""

    def __init__(self, connection: socket.socket, home: Home) -> None:
        self._connection = connection
        self._home = home
        self._last_beat = 0.0
        self._time_scale = float(getattr(pynq.Device.active_device, "time_scale", 1.0))
        self._driver = Driver(self._time_scale, self._beat)
        self._memory = ContiguousMemory(home.blobs)
        self._networks = Networks(self._driver, self._memory, home.blobs)
        self._sending = threading.Lock()
        self._program: Optional[LoadBitstream] = None
        self._loaded: Optional[str] = None
        """SHA-256 of the bitstream that was loaded last, whatever became of it."""
        self._handlers: Dict[Type[Record], Callable[..., Record]] = {
            LoadBitstream: self._load,
            Measure: self._measure,
            Reset: self._reset,
            RunNetwork: self._run_network,
        }

    def serve(self) -> None:
        """Serve until the daemon closes the connection."""
        device = pynq.Device.active_device
        self._send(
            Ready(
                device=str(getattr(device, "name", device.tag))[:64],
                python=platform.python_version(),
                pynq=str(getattr(pynq, "__version__", "unknown"))[:64],
                numpy=np.__version__,
                time_scale=self._time_scale,
            )
        )
        while True:
            frame = read_frame(self._connection.recv)
            if frame is None:
                return
            request, message = from_frame(frame)
            if isinstance(message, StopNetwork):
                continue  # the network has ended before
            self._send(Beat())
            try:
                reply = self._handlers[type(message)](message)
            except Exception as error:
                # A bug, or no memory left: nothing that the configuration did. A new worker starts from a clean state.
                text = "worker failed: {}: {}".format(type(error).__name__, error)
                self._send(AgentFailure(code="worker_failed", message=text[:4096]), request)
                raise
            self._send(reply, request)

    def _load(self, message: LoadBitstream) -> Record:
        """Load the bitstream; the canary then shows that it runs."""
        started = time.perf_counter()
        self._networks.forget()
        if self._loaded == message.bitstream:
            self._memory.clear()
        else:
            self._memory.give_back()
        self._program, self._loaded = None, message.bitstream
        try:
            self._driver.program(self._bitstream_path(message.bitstream), message.manifest)
        except DriverError as error:
            return _failure(error)
        except (BitfileError, RuntimeError, OSError, ValueError) as error:
            return _not_loaded(error)
        finally:
            remove_firmware(keep=message.bitstream)
        self._program = message
        try:
            reason = self._canary()
        except OutOfContiguousMemoryError as error:
            self._program = None
            return _failure(error)
        if reason:
            self._program = None
            return AgentFailure(code="board_broken", message="canary failed after loading: " + reason)
        return BitstreamLoaded(
            bitstream=message.bitstream,
            clock_hz=message.manifest.clock_hz,
            seconds=time.perf_counter() - started,
        )

    def _measure(self, message: Measure) -> Record:
        self._networks.forget()
        try:
            return run_trial(message.trial, message.code, self._driver, self._memory)
        except DriverError as error:
            return _failure(error)

    def _run_network(self, message: RunNetwork) -> Record:
        if self._program is None:
            return AgentFailure(code="not_programmed", message="no bitstream is loaded")
        return self._networks.run(message, self._send_beat, self._stop_asked)

    def _stop_asked(self) -> bool:
        """Return whether the daemon has asked for the end of the network that runs: it sends nothing else meanwhile."""
        ready, _, _ = select.select([self._connection], [], [], 0)
        return bool(ready) and read_frame(self._connection.recv) is not None

    def _reset(self, message: Reset) -> Record:
        started = time.perf_counter()
        self._networks.forget()
        try:
            if message.step == "soft":
                self._driver.soft_reset()
            else:
                self._memory.clear()
                self._driver.reload()
            reason = self._canary()
        except (DriverError, BitfileError, RuntimeError, OSError) as error:
            reason = str(error)
        if reason:
            _LOG.warning("canary failed after %s reset: %s", message.step, reason)
        return ResetDone(step=message.step, canary=not reason, seconds=time.perf_counter() - started)

    def _canary(self) -> str:
        """Run the small known program. Return the fault, or an empty string. Raises OutOfContiguousMemoryError."""
        assert self._program is not None
        try:
            run = finish_only(self._driver, self._memory, _CANARY_SECONDS)
            if run.outcome != "ok":
                return run.reason
            if self._program.canary is None:
                return ""
            measured = run_trial(self._program.canary, self._program.code, self._driver, self._memory)
        except OutOfContiguousMemoryError:
            raise
        except DriverError as error:
            return str(error)
        return "" if measured.outcome == "ok" else "{}: {}".format(measured.outcome, measured.reason)

    def _bitstream_path(self, sha256: str) -> Path:
        """Return the blob under a name that pynq accepts."""
        path = self._home.bitstreams / (sha256 + ".bit")
        if not path.exists():
            fresh = path.with_suffix(".new")
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(os.path.relpath(str(self._home.blobs / sha256), str(self._home.bitstreams)))
            fresh.replace(path)
        return path

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._last_beat > _BEAT_SECONDS:
            self._last_beat = now
            self._send(Beat())

    def _send_beat(self) -> None:
        self._send(Beat())

    def _send(self, message: Record, request: int = 0) -> None:
        with self._sending:
            self._connection.sendall(encode_frame(to_frame(message, request)))


def _failure(error: DriverError) -> AgentFailure:
    code = next(code for kind, code in _FAILURES if isinstance(error, kind))
    return AgentFailure(code=code, message=str(error)[:4096])


def _not_loaded(error: Exception) -> AgentFailure:
    """Return the cause of a bitstream that could not be loaded.

    A refused bitstream stays refused; a broken board may be well after the next step of the recovery ladder.
    """
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT):
        return AgentFailure(code="disk_full", message="the board's disk is full: {}".format(error)[:4096])
    # pynq's own OSErrors, such as "Root permissions required.", have no number.
    of_the_setup = isinstance(error, OSError) and number in (None, errno.EACCES, errno.EPERM, errno.ENOENT)
    if isinstance(error, (BitfileError, ValueError)) or of_the_setup:
        return AgentFailure(code="bitstream_refused", message=str(error)[:4096])
    return AgentFailure(code="board_broken", message="bitstream could not be loaded: {}".format(error)[:4096])


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the daemon dies: two workers must never own one device."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)


def run(descriptor: int, home: Home, kind: Type[Worker] = Worker) -> int:
    """Serve the daemon at the other end of a socket. Returns the exit code."""
    connection = socket.socket(fileno=descriptor)
    try:
        kind(connection, home).serve()
    finally:
        remove_firmware()
    return 0
