"""Ctrl-C where it would be lost: it is repeated until it has been heard."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_SECRETS = """
import os, random, signal
os.kill(os.getpid(), signal.SIGINT)
for _ in range(1000):
    pass
randbits = random.getrandbits
"""
"""In place of the module `secrets`, which numpy's extension `bit_generator` imports as it is initialised."""
_PROGRAM = """
import signal
from hilt.cli.interrupts import interrupts
interrupts.begin()
try:
    import numpy.random
    print("imported", flush=True)
    signal.pause()
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_inside_the_import_of_an_extension_comes_after_it(tmp_path: Path) -> None:
    (tmp_path / "secrets.py").write_text(_SECRETS)
    done = subprocess.run([sys.executable, "-c", _PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("imported\ninterrupted\n", 0), done.stderr


def test_elsewhere_it_is_a_keyboard_interrupt_at_once(tmp_path: Path) -> None:
    program = _PROGRAM.replace("import numpy.random", "import secrets")
    (tmp_path / "secrets.py").write_text(_SECRETS)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("interrupted\n", 0), done.stderr


def test_an_ignored_interrupt_stays_ignored() -> None:
    code = "import signal; from hilt.cli.interrupts import interrupts; interrupts.begin()"
    code += "; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    command = ["sh", "-c", 'trap "" INT; exec "$0" -c "$1"', sys.executable, code]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).stdout == "True\n"


_LOSERS = {
    "the end of an object": """
class Ended:
    def __del__(self):
        press()
Ended()
""",
    "the callback of a weak reference": """
class Ended:
    pass
ended = Ended()
reference = weakref.ref(ended, lambda _: press())
del ended
""",
    "a generator that is thrown away": """
def generator():
    try:
        yield
    finally:
        press()
next(generator())
""",
    "a callback of a C library": """
ctypes.CFUNCTYPE(None)(press)()
""",
    "C code that clears errors": """
class Raw(io.RawIOBase):
    def close(self):
        press()
Raw()
""",
}
_LOST = """
import ctypes, io, os, signal, weakref
from hilt.cli.interrupts import interrupts
interrupts.begin()
def press():
    os.kill(os.getpid(), signal.SIGINT)
try:
    {loser}
    signal.pause()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    signal.pause()  # a repeat, which is no second press
    print("handled")
finally:
    interrupts.end()
"""


@pytest.mark.parametrize("loser", _LOSERS.values(), ids=_LOSERS)
def test_an_interrupt_that_is_lost_comes_again(loser: str) -> None:
    program = _LOST.format(loser=loser.strip().replace("\n", "\n    "))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\nhandled\n", "", 0)


def test_a_second_press_ends_what_the_first_one_began() -> None:
    program = _LOST.format(loser="press()").replace("signal.pause()  #", "while True: press()  #")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted\n"
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")


def test_an_interrupt_that_is_lost_ends_a_block_that_waits_for_one() -> None:
    """A block that holds presses back gives a repeat to us."""
    loser = "with ctrl_c_later():\n        signal.pause()"
    program = _LOST.replace("import ctypes", "from hilt.processes import ctrl_c_later\nimport ctypes")
    program = program.format(loser=_LOSERS["the end of an object"].strip().replace("\n", "\n    ") + "\n    " + loser)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\nhandled\n", "", 0)
