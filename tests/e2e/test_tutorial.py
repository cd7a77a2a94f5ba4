"""The tutorial of one's own network: its script runs, and so does each of its commands, in their order."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hilt.cli.main import run as hilt

PAGE = Path(__file__).parents[2] / "docs" / "tutorial-first-network.md"


def test_each_step_of_the_tutorial_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shared_home: Path
) -> None:
    pytest.importorskip("sklearn")
    text = PAGE.read_text(encoding="utf-8")
    (script,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits.py").write_text(script, encoding="utf-8")
    subprocess.run([sys.executable, "digits.py"], check=True, timeout=300)
    commands = re.findall(r"^(?:\$ )?hilt ((?:quantize|compile|run|eval|campaign|show) .*)$", text, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["quantize", "compile", "run", "eval", "campaign", "show"]
    printed = {}
    for command in commands:
        assert hilt(shlex.split(command)) == 0, command
        printed[command.split()[0]] = " ".join(capsys.readouterr().out.split())
    assert "verified: 6 tensors, 394 elements equal to the integer reference" in printed["run"]
    right, of = map(int, re.search(r"(\d+) of (\d+) right", printed["eval"]).groups())  # type: ignore[union-attr]
    assert of == 497 and right > 460
    assert "times as fast" in printed["campaign"]
    assert "<svg" in (tmp_path / "digits.html").read_text(encoding="utf-8")
