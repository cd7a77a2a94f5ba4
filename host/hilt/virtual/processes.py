"""A process tree that goes dark like a board: it adopts its orphans and ends every descendant. Linux only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections import defaultdict
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Make descendants that lose their parent (daemons) children of this process, not of the system, from now on."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def end_descendants() -> None:
    """Kill everything below this process and return when nothing is left. The caller has called `adopt_orphans`."""
    while True:
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            # One has died when this returns; its orphans are our children by then, and the next round kills them.
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def descendants(ancestor: int) -> list[int]:
    """Process ids below `ancestor`, from /proc."""
    children = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                # "pid (name) state ppid ...": the name may hold spaces and parentheses.
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children[parent].append(int(entry.name))
    found: list[int] = []
    to_visit = [ancestor]
    while to_visit:
        below = children[to_visit.pop()]
        found += below
        to_visit += below
    return found
