"""The worker as the daemon sees it: a process group of its own, a socket to it, and a deadline on every answer."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Deque, Dict, List, Optional

from .leftovers import remove_sockets
from .log_lines import LogLines
from .protocol import (
    Beat,
    Frame,
    FrameDecoder,
    MessageError,
    ProtocolError,
    Ready,
    Record,
    encode_frame,
    from_frame,
    to_frame,
)

_LOG = logging.getLogger("hilt.worker")
_ROOT = Path(__file__).resolve().parents[1]
_END_SECONDS = 5.0
"""Seconds for a worker that has closed its connection to end: Python's own end takes a second and more on a busy
machine."""
START_SECONDS = 120.0
"""Importing pynq takes tens of seconds on a Zynq-7000 that has just booted."""


class WorkerError(Exception):
    """The worker gave no answer and is gone. The base of the errors below."""

    taken = False
    """A flag: the worker had begun with the request. If not, its end shows nothing about the request."""


class WorkerDiedError(WorkerError):
    """It ended by itself, or something killed it."""


class WorkerSilentError(WorkerError):
    """It was alive but late; it has been killed."""


def agent_command(*arguments: str) -> List[str]:
    """Return the command that runs this very agent again."""
    archive = agent_archive()
    return [sys.executable, *([str(archive)] if archive else ["-m", "hilt_board"]), *arguments]


def agent_environment() -> Dict[str, str]:
    """Return the environment for `agent_command`: a folder need not be the working directory to be found."""
    if agent_archive():
        return dict(os.environ)
    paths = [str(_ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def agent_archive() -> Optional[Path]:
    """Return the archive that this agent runs from; None if it runs from a folder."""
    return _ROOT if _ROOT.is_file() else None


class WorkerProcess:
    """One worker, from start to kill. Speaks one request at a time."""

    def __init__(self, process: "asyncio.subprocess.Process", connection: socket.socket) -> None:
        self._process = process
        self._connection = connection
        self._decoder = FrameDecoder()
        self._frames: List[Frame] = []
        self._request = 0
        self._last_lines: Deque[str] = collections.deque(maxlen=1)
        self._stderr = asyncio.ensure_future(self._log_lines())
        self.ready: Optional[Ready] = None
        self.working = False
        """A flag: the worker has begun with a request that it has not answered yet."""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    @classmethod
    async def start(cls) -> "WorkerProcess":
        """Start a worker that owns the device. Raises WorkerError with its last output, or OSError."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            process = await asyncio.create_subprocess_exec(
                *agent_command("worker", str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                env=agent_environment(),
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        worker = cls(process, ours)
        try:
            message = await worker._answer(START_SECONDS, START_SECONDS)
        except asyncio.CancelledError:  # the daemon stops: nobody else knows the worker yet
            await worker.kill()
            raise
        if not isinstance(message, Ready):
            await worker.kill()
            raise WorkerDiedError("worker began with {}".format(type(message).__name__))
        worker.ready = message
        return worker

    async def request(self, message: Record, seconds: float, silence: float) -> Record:
        """Send a request and return its answer.

        Raises WorkerSilentError when it takes more than `seconds` in all, or gives no sign of life for `silence`
        seconds; WorkerDiedError when it ends. After either it is gone.
        """
        try:
            return await self._request_once(message, seconds, silence)
        except WorkerError as error:
            error.taken = self.working
            raise
        finally:
            self.working = False

    async def _request_once(self, message: Record, seconds: float, silence: float) -> Record:
        self._request += 1
        try:
            frame = encode_frame(to_frame(message, self._request))
            await asyncio.wait_for(asyncio.get_event_loop().sock_sendall(self._connection, frame), seconds)
        except asyncio.TimeoutError:
            await self.kill()
            raise WorkerSilentError("worker took no request for {:g} s".format(seconds)) from None
        except OSError:
            raise WorkerDiedError(await self._how_it_ended()) from None
        return await self._answer(seconds, silence)

    def tell(self, message: Record) -> None:
        """Send a message that has no answer while a request runs. A worker that is ending does not get it."""
        with contextlib.suppress(OSError):  # a few bytes beside an empty queue: they never wait
            self._connection.send(encode_frame(to_frame(message)))

    def end(self) -> None:
        """End the worker's processes; the request that it carries out raises WorkerDiedError."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def kill(self) -> None:
        """End the worker and all it started."""
        self.end()
        try:
            await asyncio.wait_for(self._process.wait(), _END_SECONDS)
        except asyncio.TimeoutError:
            _LOG.error("worker %d does not end: a driver holds it in the kernel", self._process.pid)
        remove_sockets(self._process.pid)
        self._connection.close()
        # A process that it has started may hold its standard error open for ever.
        await asyncio.wait([self._stderr], timeout=_END_SECONDS)
        self._stderr.cancel()

    async def _answer(self, seconds: float, silence: float) -> Record:
        loop = asyncio.get_event_loop()
        deadline = loop.time() + seconds
        while True:
            left = deadline - loop.time()
            try:
                frame = await asyncio.wait_for(self._next_frame(), max(0.0, min(left, silence)))
            except asyncio.TimeoutError:
                await self.kill()
                waited = "no sign of life for {:g} s".format(silence) if left > silence else "no answer in time"
                raise WorkerSilentError("{} from the worker; it was killed".format(waited)) from None
            except (OSError, ProtocolError) as error:
                raise WorkerDiedError("{} ({})".format(await self._how_it_ended(), error)) from None
            if frame is None:
                raise WorkerDiedError(await self._how_it_ended())
            try:
                message = from_frame(frame)[1]
            except MessageError as error:
                await self.kill()
                raise WorkerDiedError("worker spoke nonsense: {}; it was killed".format(error)) from None
            if not isinstance(message, Beat):
                return message
            self.working = True

    async def _next_frame(self) -> Optional[Frame]:
        while not self._frames:
            data = await asyncio.get_event_loop().sock_recv(self._connection, 1 << 20)
            if not data:
                return None
            self._frames += self._decoder.feed(data)
        return self._frames.pop(0)

    async def _how_it_ended(self) -> str:
        """Wait for the end of the worker, or cause it, and describe it."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._process.wait(), _END_SECONDS)
        ended = self._process.returncode
        await self.kill()
        if ended is None:
            return "worker closed its connection; it was killed"
        if ended < 0:
            return "worker was ended by signal {} ({})".format(-ended, signal.Signals(-ended).name)
        return "worker ended with exit code {}: {}".format(ended, " ".join(self._last_lines))

    async def _log_lines(self) -> None:
        """Copy the standard error of the worker (and of its libraries) to the agent's log."""
        assert self._process.stderr is not None
        lines = LogLines()
        while True:
            data = await self._process.stderr.read(1 << 16)
            for line in lines.feed(data) if data else lines.end():
                _LOG.warning("%s", line)
                self._last_lines.append(line)
            if not data:
                return
