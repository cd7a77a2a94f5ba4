"""Text of boards, files and logs reaches no terminal raw, whichever command prints it."""

from __future__ import annotations

import ast
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs
from rich.table import Table

from hilt import paths
from hilt.cli.main import run
from hilt.cli.plain_console import PlainConsole
from hilt.link.quarantine import quarantine
from hilt.schedule import load_workload
from hilt.store import Store, database_path
from hilt.trial import Outcome
from tests.unit.store.examples import run as example_run
from tests.unit.store.examples import trial

EVIL = "\x1b]0;mine\x07\x1b[31m\x9b2J\u202ered"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")
CLI = Path(paths.__file__).parent / "cli"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def evil_run(home: Path) -> str:
    uuid = "e" * 32
    with Store(database_path(home)) as store:
        spec = load_workload("resnet18.C5").to_dict()
        made = example_run(uuid, board=f"virtual:{EVIL}", tuner_options={"x": EVIL}, workload_spec=spec)
        store.create_run(made)
        bad = replace(trial(0, 0, 1.0), outcome=Outcome.WRONG_ANSWER, reason=EVIL, microseconds=None, cycles=None)
        store.record(uuid, [bad, replace(trial(1, 1, 5000.0), knobs={EVIL: 1})])
    return uuid


@pytest.mark.parametrize("words", [["show", "last"], ["runs"], ["best"], ["show", "nobody\x1b[2J"], ["show", "--json"]])
def test_no_command_prints_terminal_escapes(
    evil_run: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run(words)
    printed = capsys.readouterr()
    assert printed.out + printed.err
    assert not CONTROL.search(printed.out + printed.err)


def test_the_reason_of_a_quarantine_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    quarantine("virtual:pynq", EVIL)
    assert run(["boards"]) == 0
    printed = capsys.readouterr().out
    assert "]0;mine" in printed and not CONTROL.search(printed)


@pytest.mark.parametrize("name", [EVIL, "a b", "virtual:pynq", "a\\nb", "x" * 33, ""])
def test_a_table_name_that_is_no_board_is_refused_without_its_escapes(
    home: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    quoted = "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in name)
    (home / "boards.toml").write_text(f'["{quoted}"]\nhost = "board"\nbitstream = "pynq"\n')
    assert run(["boards"]) == 2
    printed = capsys.readouterr()
    assert "cannot name a board: take up to 32 letters" in printed.err
    assert not CONTROL.search(printed.out + printed.err)


@pytest.mark.parametrize("text", ["x = " + "[" * 20_000, "x = " + "{a=" * 20_000])
def test_a_table_that_is_nested_too_deep_is_no_fault_of_hilts(
    home: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "boards.toml").write_text(text)
    assert run(["boards"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "fault of hilt" not in said and "boards.toml" in said


def test_a_console_keeps_its_own_styles_only() -> None:
    stream = io.StringIO()
    console = PlainConsole(file=stream, force_terminal=True, color_system="standard", width=80)
    table = Table("board")
    table.add_row(EVIL, style="green")
    console.print(table)
    console.print(EVIL, markup=False)
    printed = stream.getvalue()
    assert "\x1b[32m" in printed, "the row's own colour"
    assert "\x07" not in printed and "\x1b]" not in printed and "\x1b[31m" not in printed and "\x9b" not in printed


def test_nothing_in_the_command_line_prints_past_the_filter() -> None:
    for path in sorted(CLI.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("Console", "rich.console.Console", "rich.print"), f"{path.name}: {called}"
                assert not called.startswith(("sys.__stdout__", "sys.__stderr__")), f"{path.name}: {called}"
                assert not called.endswith("buffer.write"), f"{path.name}: {called}"


@pytest.mark.slow
def test_a_report_holds_no_escape_sequences(evil_run: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert run(["report", "last", "--html", str(path)]) == 0
    page = path.read_text(encoding="utf-8").replace(get_plotlyjs(), "")  # the library has control characters in strings
    assert "]0;mine" in page and not CONTROL.search(page)
