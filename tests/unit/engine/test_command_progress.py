"""A command's progress: its line of text, and the file by which other processes see it until it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hilt.engine.command_progress import CommandFile, CommandProgress, last_stage, live_commands

_MOMENT = CommandProgress("compile net.onnx", "", "placing", 100.0, 5, 26, "nodes")
_PROGRAM = """
import sys, time
from pathlib import Path
from hilt.engine.command_progress import CommandFile, CommandProgress
with CommandFile(Path(sys.argv[1])) as file:
    file.put(CommandProgress("run net.hilt", "", "1 inference", 1.0))
    print("written", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("progress", "now", "text"),
    [
        (CommandProgress(), 9.0, ""),
        (CommandProgress(phase="reading", began=1.0), 1.5, "reading"),
        (CommandProgress(phase="reading", began=1.0), 91.0, "reading, 1 min 30 s"),
        (_MOMENT, 110.0, "placing: 5 of 26 nodes, 42 s left"),
        (CommandProgress("", "", "placing", 100.0, 0, 26, "nodes"), 110.0, "placing: 0 of 26 nodes, 10 s"),
        (CommandProgress("", "", "placing", 100.0, 26, 26, "nodes"), 100.4, "placing: 26 of 26 nodes"),
    ],
)
def test_a_moment_says_phase_count_and_time_left(progress: CommandProgress, now: float, text: str) -> None:
    assert progress.text(now) == text


def test_others_see_a_command_until_it_ends(tmp_path: Path) -> None:
    assert live_commands(tmp_path) == []
    with CommandFile(tmp_path) as first, CommandFile(tmp_path) as second:
        assert live_commands(tmp_path) == [], "nothing is written yet"
        second.put(CommandProgress("run net.hilt", "c" * 32, "1 inference", 7.0))
        first.put(_MOMENT)
        assert [each.command for each in live_commands(tmp_path)] == ["compile net.onnx", "run net.hilt"]
        assert last_stage(tmp_path, "c" * 32) == CommandProgress("run net.hilt", "c" * 32, "1 inference", 7.0)
        assert last_stage(tmp_path, "d" * 32) is None
    assert live_commands(tmp_path) == [] and not list((tmp_path / "commands").iterdir())


def test_the_count_of_a_phase_that_has_just_begun_is_seen(tmp_path: Path) -> None:
    """A phase begins without its count, which follows at once; the first inference may take a minute then."""
    with CommandFile(tmp_path) as file:
        file.put(CommandProgress("run net.hilt", "", "running", 7.0))
        file.put(CommandProgress("run net.hilt", "", "running", 7.0, 0, 40, "inferences"))
        file.put(CommandProgress("run net.hilt", "", "running", 7.0, 1, 40, "inferences"))
        (found,) = live_commands(tmp_path)
        assert (found.done, found.count) == (0, 40), "the second count comes too soon"


@pytest.mark.slow
def test_a_killed_command_is_seen_no_more(tmp_path: Path) -> None:
    words = [sys.executable, "-c", _PROGRAM, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"written\n"
        assert [each.phase for each in live_commands(tmp_path)] == ["1 inference"]
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert live_commands(tmp_path) == [] and not list((tmp_path / "commands").iterdir())


def test_a_long_command_keeps_a_short_file_and_its_latest_line(tmp_path: Path) -> None:
    with CommandFile(tmp_path) as file:
        for place in range(2000):
            file.put(CommandProgress("explore", "", f"phase {place} {'x' * 400}", 1.0))
        (path,) = (tmp_path / "commands").iterdir()
        assert path.stat().st_size < 70_000
        (found,) = live_commands(tmp_path)
        assert found.phase.startswith("phase 1999 x")


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b'{"command":"x"}', b"[" * 3000, b"\xff\xff",
     b'{"command":"x","campaign":"","phase":"p","began":NaN,"done":0,"count":0,"units":""}',
     b'{"command":"x","campaign":"","phase":"p","began":1,"done":-1,"count":0,"units":""}'],
)  # fmt: skip
def test_a_line_of_another_version_is_no_command(tmp_path: Path, line: bytes) -> None:
    with CommandFile(tmp_path) as file:
        file.put(_MOMENT)
        (path,) = (tmp_path / "commands").iterdir()
        path.write_bytes(line + b"\n")
        assert live_commands(tmp_path) == []


def test_text_of_a_line_reaches_no_terminal_raw(tmp_path: Path) -> None:
    with CommandFile(tmp_path) as file:
        file.put(CommandProgress("run \x1b]0;mine\x07", "", "\x9b2J", 1.0))
        (found,) = live_commands(tmp_path)
        assert "\x1b" not in found.command and "\x9b" not in found.phase


def test_a_home_that_cannot_be_written_stops_no_command(tmp_path: Path) -> None:
    (tmp_path / "commands").write_text("a file where the folder should be")
    with CommandFile(tmp_path) as file:
        file.put(_MOMENT)
    assert live_commands(tmp_path) == []
