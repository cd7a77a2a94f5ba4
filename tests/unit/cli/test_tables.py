"""Tables on a narrow terminal: columns leave, and numbers and ids stay whole."""

from __future__ import annotations

import ast
import io
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from hilt.cli import tables
from hilt.cli.bundle_text import print_view
from hilt.cli.main import run as hilt
from hilt.cli.network_text import result_table
from hilt.cli.tables import column, table
from hilt.engine.campaign_results import CampaignResult, LayerResult
from hilt.schedule.onnx_model import Layer, Network
from hilt.store import Campaign, RunState, Store, database_path
from tests.unit.report.campaign_store import make
from tests.unit.report.views import long_view
from tests.unit.store.examples import run, trial


def printed(made: tables.Table, width: int) -> list[str]:
    """The lines that a terminal of that width gets."""
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=True, no_color=True, color_system=None).print(made)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def runs() -> tables.Table:
    made = table(
        "run", column("workload", cuts=True), column("board", drop=3), ">trials", ">best µs", column("begun", drop=4)
    )
    made.add_row("a18a1132", "conv2d:n=1,ci=64,h=56,w=56,co=64,kh=3,kw=3", "virtual:pynq", "400/400", "44,493.1",
                 "2026-01-01 10:00:00")  # fmt: skip
    made.add_row("b39eb4ff", "resnet18.C2", "virtual:pynq", "12/400", "6,107.6", "2026-01-01 10:00:00")
    return made


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_row_is_a_line_and_its_numbers_and_ids_are_whole(width: int) -> None:
    lines = printed(runs(), width)
    assert all(len(line) <= width for line in lines[:3])
    for line, whole in zip(
        lines[1:3], (("a18a1132", "400/400", "44,493.1"), ("b39eb4ff", "12/400", "6,107.6")), strict=True
    ):
        assert all(word in line.split() for word in whole), line


def test_the_column_of_highest_drop_leaves_first_and_is_named() -> None:
    at_68 = printed(runs(), 68)
    assert "begun" not in at_68[0]
    assert "board" in at_68[0]
    assert "no room for: begun" in " ".join(at_68[3:])
    assert "board, begun" in " ".join(printed(runs(), 45)[3:])
    assert not printed(runs(), 200)[3:]


def test_text_wraps_between_words_only() -> None:
    made = table("knob", column(">values"), column("", wraps=True))
    made.add_row("tile_h", "4", " ".join(str(1000 + number) for number in range(40)))
    words = " ".join(printed(made, 60)).split()
    assert [word for word in words if re.fullmatch(r"1\d{3}", word)] == [str(1000 + number) for number in range(40)]


def test_columns_without_a_place_are_those_from_the_right_unless_it_is_said() -> None:
    made = table("a", "b", "c")
    made.add_row("x" * 10, "y" * 10, "z" * 10)
    assert made.shown(40) == [0, 1, 2]
    assert made.shown(25) == [0, 1]
    assert made.shown(5) == [0]


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Standard output of a terminal of 80 columns."""
    file = io.StringIO()
    made = Console(
        file=file, width=80, force_terminal=True, no_color=True, color_system=None, highlight=False, markup=False
    )
    monkeypatch.setattr(tables, "console", lambda: made)
    return file


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["boards"],
        ["bitstream", "list"],
        ["space", "resnet18.C10"],
        ["space", "deepbench"],
        ["bench", "--list"],
        ["dataset", "list"],
    ],
    ids=" ".join,
)
def test_every_line_of_a_command_fits_80_columns(words: list[str], narrow: io.StringIO) -> None:
    assert hilt(words) == 0
    lines = narrow.getvalue().splitlines()
    assert not [line for line in lines if len(line.rstrip()) > 80]


def leaving(made: tables.Table) -> list[str]:
    """Return the titles of the columns that leave as the terminal gets narrower, in order."""
    left: list[str] = []
    for width in range(400, 0, -1):
        shown = made.shown(width)
        left += [
            info.title for place, info in enumerate(made._columns) if place not in shown and info.title not in left
        ]
    return left


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["runs"], "tags, begun, % of bound, valid, tuner, board, state, trials, best µs"),
        (["campaigns"], "budget, begun, tags, board, trials, state, gain, ms"),
        (["boards"], "hazards, parameters, bus, bitstream, clock, ISA"),
    ],
)
def test_the_most_needed_columns_of_a_list_leave_last(
    words: list[str], wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    make(tmp_path)
    printed: list[tables.Table] = []
    monkeypatch.setattr(tables, "console", lambda: SimpleNamespace(print=printed.append))
    assert hilt(words) == 0
    assert ", ".join(leaving(printed[0])) == wanted


def test_the_boards_bitstream_can_be_copied_at_80_columns(narrow: io.StringIO) -> None:
    assert hilt(["boards"]) == 0
    row = next(line for line in narrow.getvalue().splitlines() if line.startswith("virtual:pynq "))
    assert re.search(r"\b[0-9a-f]{12}\b", row)


@pytest.mark.parametrize("workload", ["resnet18.C11", "conv2d:n=1,ci=256,h=14,w=14,co=256,k=3x3,s=1x1,p=1x1"])
def test_a_runs_state_and_best_are_there_at_80_columns(
    workload: str, narrow: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    with Store(database_path(tmp_path)) as store:
        store.create_run(run("a" * 32, workload=workload))
        store.record("a" * 32, [trial(0, 7, 105_930.3)])
        store.set_state("a" * 32, RunState.FINISHED)
    assert hilt(["runs"]) == 0
    header, row, *_ = narrow.getvalue().splitlines()
    assert len(row.rstrip()) <= 80 and "state" in header
    assert {"aaaaaaaa", "105,930.3", "finished", "virtual:pynq"} <= set(row.split())


def test_a_models_layers_have_their_nodes_names_and_figures_at_80_columns(narrow: io.StringIO) -> None:
    spelled_out = "conv2d:n=1,ci=256,h=14,w=14,co=256,k=3x3,s=1x1,p=1x1"
    layers = (Layer(spelled_out, nodes=["/layer0/Conv", "/layer1/Conv"]), Layer("resnet18.C5", nodes=["c"]))
    campaign = Campaign("c" * 32, "net", {}, {}, 1.0, {"trials": 60})
    result = CampaignResult(campaign, Network("net", layers, {}), tuple(LayerResult(each, None) for each in layers))
    tables.console().print(result_table(result))
    lines = narrow.getvalue().splitlines()
    assert all(len(line.rstrip()) <= 80 for line in lines) and "best µs" in lines[0] and "gain" in lines[0]
    assert [line.split()[0] for line in lines[1:3]] == ["/layer0/Conv", "resnet18.C5"]


def test_a_campaigns_latency_and_gain_are_there_at_60_columns_and_its_budget_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    make(tmp_path)
    file = io.StringIO()
    made = Console(file=file, width=60, force_terminal=True, no_color=True, color_system=None)
    monkeypatch.setattr(tables, "console", lambda: made)
    assert hilt(["campaigns"]) == 0
    header, row, *_ = file.getvalue().splitlines()
    assert {"campaign", "ms", "gain", "state"} <= set(header.split()) and "budget" not in header
    assert len(row.rstrip()) <= 60 and re.search(r"\d\.\d\d +\d+\.\d\d", row), row


def test_what_tells_compared_rows_apart_is_there_at_60_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    with Store(database_path(tmp_path)) as store:
        for uuid, tuner, latency in (("a", "random", 9_000.0), ("b", "ga", 6_000.0)):
            store.create_run(run(uuid * 32, tuner=tuner))
            store.record(uuid * 32, [trial(0, 7, latency)])
    file = io.StringIO()
    made = Console(file=file, width=60, force_terminal=True, no_color=True, color_system=None)
    monkeypatch.setattr(tables, "console", lambda: made)
    assert hilt(["compare", "a", "b"]) == 0
    header, first, second, *_ = file.getvalue().splitlines()
    assert header.split()[:3] == ["layer", "differs", "in"] and "ratio" in header
    assert "random" in first and " ga " in second and "0.667" in second


def test_a_networks_nodes_have_their_shares_of_the_inference(capsys: pytest.CaptureFixture[str]) -> None:
    """Ten nodes of 100 us each."""
    print_view(long_view(10))
    shares = re.findall(r"100\.0 +([\d.]+%)", capsys.readouterr().out)
    assert shares == ["10.0%"] * 10


def test_the_columns_of_each_table_leave_in_an_order_that_is_written_down() -> None:
    """Of equals the rightmost left first, which nobody had chosen: each has a number of its own, from 1."""
    tables_seen = 0
    for path in sorted(Path(tables.__file__).parent.glob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in ("table", "tables.table"):
                drops = [
                    keyword.value.value
                    for each in ast.walk(call)
                    if isinstance(each, ast.Call)
                    for keyword in each.keywords
                    if keyword.arg == "drop" and isinstance(keyword.value, ast.Constant)
                ]
                assert sorted(drops) == list(range(1, len(drops) + 1)), f"{path.name}, line {call.lineno}: {drops}"
                tables_seen += bool(drops)
    assert tables_seen > 10
