"""The rows of the list of runs: their cells, search and order."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hilt.engine.run_files import RunFiles
from hilt.store import Campaign, RunState, Store, database_path
from hilt.store.campaigns import set_campaign_state
from hilt.store.labels import labels_of, set_labels
from hilt.tui.run_list import RunRow, arrange, read_rows
from tests.unit.store.examples import run, trial

OLD, NEW, LAYER, OTHER, CAMPAIGN, EMPTY = (letter * 32 for letter in "abcdef")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Two runs by themselves, a campaign with two layers, and one without any."""
    with Store(database_path(tmp_path)) as opened:
        settings = {"board": "desk", "tuner": "hilt"}
        opened.create_campaign(Campaign(CAMPAIGN, "net", {"layers": []}, settings, 3.0, {"trials": 90}))
        opened.create_campaign(Campaign(EMPTY, "bare", {"layers": []}, {}, 0.5, {"seconds": 60.0}))
        opened.create_run(run(OLD, created=1.0))
        opened.create_run(run(NEW, created=2.0, tuner="ga", workload="resnet18.C2"))
        for uuid in (LAYER, OTHER):
            opened.create_run(run(uuid, created=3.0, campaign=CAMPAIGN))
        opened.record(OLD, [trial(0, 7, 9000.0), trial(1, 8, 4515.8)])
        opened.record(NEW, [trial(0, 7, 500.0)])
        opened.record(LAYER, [trial(number, number, 700.0 + number) for number in range(3)])
        opened.set_state(OLD, RunState.FINISHED)
        yield opened


def rows_of(store: Store, home: Path) -> dict[str, RunRow]:
    return {row.uuid: row for row in read_rows(store, home)}


def test_a_run_has_its_figures_and_one_without_an_engine_was_interrupted(store: Store, tmp_path: Path) -> None:
    store.set_state(NEW, RunState.RUNNING)
    with ExitStack() as engine:
        engine.enter_context(RunFiles(tmp_path, NEW).locked())
        assert rows_of(store, tmp_path)[NEW].cells["state"] == "running"
    rows = rows_of(store, tmp_path)
    assert rows[OLD].cells == {
        "run": "aaaaaaaa", "state": "finished", "trials": "2/64", "best": "4,515.8 µs", "workload": "resnet18.C5",
        "tuner": "random", "begun": time.strftime("%Y-%m-%d %H:%M", time.localtime(1.0)), "valid": "2",
        "board": "virtual:pynq", "tags": "", "note": "",
    }  # fmt: skip
    assert (rows[OLD].latency, rows[OLD].is_campaign, rows[OLD].layers) == (4515.8, False, ())
    assert rows[NEW].cells["state"] == "interrupted"


def test_a_campaign_stands_for_its_layers_in_the_order_of_their_making(store: Store, tmp_path: Path) -> None:
    rows = rows_of(store, tmp_path)
    assert list(rows) == [CAMPAIGN, NEW, OLD, EMPTY], "newest first, and no layer beside its campaign"
    found = rows[CAMPAIGN]
    assert found.is_campaign and [layer.uuid for layer in found.layers] == [LAYER, OTHER]
    assert found.layers[0].cells["trials"] == "3" and found.layers[1].cells["best"] == "–"
    assert found.layers[1].latency == float("inf") == found.latency
    cells = {name: found.cells[name] for name in ("state", "trials", "best", "workload", "tuner", "valid", "board")}
    assert cells == {
        **{"state": "interrupted", "trials": "3/90", "best": "", "workload": "net (2 layers)", "tuner": "random"},
        **{"valid": "3", "board": "desk"},
    }
    bare = rows[EMPTY].cells
    assert (bare["trials"], bare["workload"], bare["tuner"], bare["board"]) == ("0", "bare (0 layers)", "", "")


def test_a_campaign_goes_on_while_an_engine_has_it_or_a_layer_runs(store: Store, tmp_path: Path) -> None:
    set_campaign_state(store, CAMPAIGN, RunState.RUNNING)
    assert rows_of(store, tmp_path)[CAMPAIGN].cells["state"] == "interrupted"
    with RunFiles(tmp_path, CAMPAIGN).locked():
        assert rows_of(store, tmp_path)[CAMPAIGN].cells["state"] == "running"
    store.set_state(LAYER, RunState.RUNNING)
    with RunFiles(tmp_path, LAYER).locked():
        assert rows_of(store, tmp_path)[CAMPAIGN].cells["state"] == "running"


def test_tags_and_notes_are_in_one_line(store: Store, tmp_path: Path) -> None:
    set_labels(store, OLD, labels_of(store, OLD).tagged(add=["b", "a"]).noted("first\nsecond"))
    set_labels(store, NEW, labels_of(store, NEW).noted("old").put_away(True))
    rows = rows_of(store, tmp_path)
    assert sorted(rows[OLD].cells["tags"].split()) == ["a", "b"] and rows[OLD].cells["note"] == "first second"
    assert rows[NEW].cells["note"] == "(archived) old"


def shown(store: Store, home: Path, text: str = "", column: str = "begun", **options: bool) -> list[str]:
    return [row.uuid for row, _ in arrange(read_rows(store, home), text, column, options.get("reverse", False), ())]


def test_rows_are_sorted_by_what_a_column_means(store: Store, tmp_path: Path) -> None:
    assert shown(store, tmp_path, column="begun") == [CAMPAIGN, NEW, OLD, EMPTY]
    assert shown(store, tmp_path, column="begun", reverse=True) == [EMPTY, OLD, NEW, CAMPAIGN]
    assert shown(store, tmp_path, column="best")[:2] == [NEW, OLD], "by numbers, not by text"
    assert shown(store, tmp_path, column="trials") == [CAMPAIGN, OLD, NEW, EMPTY]
    assert shown(store, tmp_path, column="valid") == [CAMPAIGN, OLD, NEW, EMPTY]
    assert shown(store, tmp_path, column="workload")[0] == EMPTY
    assert shown(store, tmp_path, column="tuner")[0] == EMPTY


def test_a_text_is_looked_for_in_every_cell_and_in_layers(store: Store, tmp_path: Path) -> None:
    assert shown(store, tmp_path, "GA") == [NEW]
    assert shown(store, tmp_path, "cccccccc") == [CAMPAIGN], "a layer's id finds its campaign"
    assert shown(store, tmp_path, "nothing") == []


def test_unfolded_campaigns_show_their_layers_below_and_archived_ones_are_left_out(
    store: Store, tmp_path: Path
) -> None:
    found = arrange(read_rows(store, tmp_path), "", "begun", False, [CAMPAIGN, OLD])
    assert [(row.uuid, depth) for row, depth in found[:4]] == [(CAMPAIGN, 0), (LAYER, 1), (OTHER, 1), (NEW, 0)]
    set_labels(store, CAMPAIGN, labels_of(store, CAMPAIGN).put_away(True))
    rows = read_rows(store, tmp_path)
    assert [row.uuid for row, _ in arrange(rows, "", "begun", False, [CAMPAIGN])] == [NEW, OLD, EMPTY]
    assert arrange(rows, "", "begun", False, (), archived=True)[0][0].uuid == CAMPAIGN
