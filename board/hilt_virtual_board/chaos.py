"""Injected faults, on virtual boards only: a worker that faults in the middle of some of its trials.

HILT_CHAOS names a directory outside of the board's disk. `settings.json` there holds the requested faults
(hilt.virtual.chaos describes each kind); without it nothing happens. `injected` has a line of JSON for each fault:
trial, kind, and time. The files `cut` and `gone` ask the board's SSH server for its part, `slow` its first process.
`clock` holds the offset of the board's clock, in seconds.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import pynq

from hilt_board import execution
from hilt_board.home import open_home
from hilt_board.protocol import Measured, Record
from hilt_board.worker import Worker
from hilt_runtime.registers import Register

from .chaos_clock import ENVIRONMENT, clock_offset

_DAY = 86400.0
_LARGEST_BUFFER, _PAGE = 1 << 28, 1 << 12
_LEAK: List[Any] = []
_ESCAPES = "\x1b\x07\x9b\r"
"""Control characters that a terminal obeys; without them the reason is unchanged."""
_FULL_SECONDS = 1.0
_END_SECONDS = 60.0
"""Whoever waits for its end has it long before."""


class Plan:
    """The plan of faults: a kind for each trial that gets one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._injected: Set[str] = set()
        with contextlib.suppress(FileNotFoundError):
            lines = (directory / "injected").read_text(encoding="ascii").splitlines()
            self._injected = {json.loads(line)["trial"] for line in lines}

    def settings(self) -> Optional[Dict[str, Any]]:
        try:
            return json.loads((self.directory / "settings.json").read_text(encoding="ascii"))  # type: ignore[no-any-return]
        except FileNotFoundError:
            return None

    def strike(self, key: str) -> Optional[str]:
        """Return the kind of fault that this attempt ("RUN/NUMBER/ATTEMPT") meets, which is noted; or None."""
        settings = self.settings()
        trial, _, attempt = key.rpartition("/")
        if settings is None or not (settings["again"] or (attempt == "0" and trial not in self._injected)):
            return None
        kind = choose(settings, trial.rpartition("/")[2])
        if kind is None:
            return None
        self._injected.add(trial)
        line = json.dumps({"trial": trial, "kind": kind, "at": time.time() - clock_offset(self.directory)}) + "\n"
        with (self.directory / "injected").open("a", encoding="ascii") as file:
            file.write(line)
        return kind


def choose(settings: Dict[str, Any], number: str) -> Optional[str]:
    """Return the fault of a trial, or None. It depends only on the seed and the trial's number."""
    digest = hashlib.sha256("{}/{}".format(settings["seed"], number).encode("ascii")).digest()
    if int.from_bytes(digest[:8], "big") >= settings["rate"] * 2**64:
        return None
    kinds = settings["kinds"]
    return str(kinds[int.from_bytes(digest[8:16], "big") % len(kinds)])


class ChaosWorker(Worker):
    """A worker that gets a fault now and then."""

    def __init__(self, connection: Any, home: Any) -> None:
        self._plan = Plan(Path(os.environ[ENVIRONMENT]))
        _make_room()
        super().__init__(connection, home)

    def _measure(self, message: Any) -> Record:
        kind = self._plan.strike(message.trial.key)
        if kind is None:
            return super()._measure(message)
        if kind == "out_of_memory":
            self._memory.give_back()
            _take_all_memory()
        with _injected(kind, self._plan):
            reply = super()._measure(message)
        if kind == "escape_sequences" and isinstance(reply, Measured):
            return replace(reply, reason=_ESCAPES + reply.reason)
        return reply


@contextlib.contextmanager
def _injected(kind: str, plan: Plan) -> Iterator[None]:
    if kind == "wrong_output":
        with _corrupted_once():
            yield
    elif kind == "full_disk":
        _fill_disk()
        yield
    elif kind in ("out_of_memory", "escape_sequences"):
        yield
    else:
        model = pynq.Device.active_device._model
        if kind == "hang":
            model.read_register = _standing_still(model.read_register, still=_PROGRESS)
        elif kind == "impossible_counter":
            model.read_register = _standing_still(model.read_register, still=_CYCLES)
        else:
            model.step = _first_step(kind, plan, model)
        try:
            yield
        finally:
            for name in ("read_register", "step"):
                model.__dict__.pop(name, None)


_CYCLES = (Register.CYCLES_LOW, Register.CYCLES_HIGH)
_PROGRESS = (Register.DONE_READ, *_CYCLES)


def _standing_still(read: Callable[[int], int], still: Tuple[int, ...]) -> Callable[[int], int]:
    """Return a register read in which these registers are 0, whatever happens."""
    return lambda offset: 0 if offset in still else read(offset)


def _first_step(kind: str, plan: Plan, model: Any) -> Callable[[int], Any]:
    """Return a replacement of the model's step: the program has been started, and is not done."""

    def step(cycles: int) -> Any:
        del model.step
        _ACTIONS[kind](plan)
        return model.step(cycles)

    return step


@contextlib.contextmanager
def _corrupted_once() -> Iterator[None]:
    """Flip a bit in the first output that is compared."""
    compare = execution.Placed.compare

    def corrupted(placed: execution.Placed) -> Any:
        setattr(execution.Placed, "compare", compare)  # noqa: B010
        placed.output[len(placed.output) // 2] ^= 1
        return compare(placed)

    setattr(execution.Placed, "compare", corrupted)  # noqa: B010
    try:
        yield
    finally:
        setattr(execution.Placed, "compare", compare)  # noqa: B010


def _crash_worker(plan: Plan) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _crash_daemon(plan: Plan) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(_END_SECONDS)  # the kernel kills the worker with its daemon


def _freeze(plan: Plan) -> None:
    os.kill(int(os.environ["HILT_INIT_PID"]), signal.SIGUSR2)
    time.sleep(_END_SECONDS)


def _reboot_slowly(plan: Plan) -> None:
    settings = plan.settings() or {}
    (plan.directory / "slow").write_text(str(settings.get("boot_seconds", 0.0)), encoding="ascii")
    os.kill(int(os.environ["HILT_INIT_PID"]), signal.SIGUSR1)
    time.sleep(_END_SECONDS)


def _jump(plan: Plan) -> None:
    offset = -_DAY if clock_offset(plan.directory) > 0 else _DAY
    (plan.directory / "clock").write_text(str(offset), encoding="ascii")


_ACTIONS: Dict[str, Callable[[Plan], None]] = {
    "worker_crash": _crash_worker,
    "daemon_crash": _crash_daemon,
    "link_drop": lambda plan: (plan.directory / "cut").touch(),
    "ssh_gone": lambda plan: (plan.directory / "gone").touch(),
    "freeze": _freeze,
    "slow_reboot": _reboot_slowly,
    "clock_jump": _jump,
    "forged_key": lambda plan: (plan.directory / "forge").touch(),
}
_IN_PLACE = {"hang", "wrong_output", "full_disk", "impossible_counter", "out_of_memory", "escape_sequences"}
KINDS = {*_IN_PLACE, *_ACTIONS}


def _take_all_memory() -> None:
    """Leak all free contiguous memory; the worker's end frees it."""
    size = _LARGEST_BUFFER
    while size >= _PAGE:
        try:
            _LEAK.append(pynq.allocate(shape=(size,), dtype="u1", cacheable=True))
        except (MemoryError, RuntimeError):
            size //= 2


def _fill_disk() -> None:
    """Keep the daemon's journal from growing for a while: the limit on the size of its files stands for the disk."""
    size = open_home().journal.stat().st_size
    hard = resource.prlimit(os.getppid(), resource.RLIMIT_FSIZE)[1]
    resource.prlimit(os.getppid(), resource.RLIMIT_FSIZE, (size, hard))
    timer = threading.Timer(_FULL_SECONDS, _make_room)
    timer.daemon = True
    timer.start()


def _make_room() -> None:
    hard = resource.prlimit(os.getppid(), resource.RLIMIT_FSIZE)[1]
    resource.prlimit(os.getppid(), resource.RLIMIT_FSIZE, (hard, hard))
