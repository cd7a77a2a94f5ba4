"""Ctrl-C and the import of C extensions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
from hilt.cli.interrupts import interrupt_between_extensions
interrupt_between_extensions()
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
    code = "import signal; from hilt.cli.interrupts import interrupt_between_extensions as begin; begin()"
    code += "; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    command = ["sh", "-c", 'trap "" INT; exec "$0" -c "$1"', sys.executable, code]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).stdout == "True\n"
