"""Every command prints where the encoding of its output is ASCII."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hilt.cli.narrow_encoding import likeness
from hilt.store import Store, database_path
from tests.unit.store.examples import run as example_run
from tests.unit.store.examples import trial


def test_a_likeness_is_printed_for_what_is_known_and_a_question_mark_for_the_rest() -> None:
    text = "≈12 µs → ☃"
    found = "".join(likeness(UnicodeEncodeError("ascii", text, at, at + 1, "x"))[0] for at in (0, 4, 7, 9))
    assert found == "~u->?"
    with pytest.raises(UnicodeDecodeError):
        likeness(UnicodeDecodeError("ascii", b"\xff", 0, 1, "x"))


@pytest.mark.slow
@pytest.mark.parametrize("words", [["runs"], ["show", "last"], ["best"]])
def test_a_command_prints_in_ascii(tmp_path: Path, words: list[str]) -> None:
    with Store(database_path(tmp_path)) as store:
        made = example_run("e" * 32)
        store.create_run(made)
        store.record(made.uuid, [trial(0, 0, 5000.0)])
    done = subprocess.run(
        [sys.executable, "-c", "from hilt.cli.entry import main; main()", *words],
        env={**os.environ, "HILT_HOME": str(tmp_path), "PYTHONIOENCODING": "ascii"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii() and "us" in done.stdout
