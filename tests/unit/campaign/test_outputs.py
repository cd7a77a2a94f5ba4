"""The notes on a campaign's AutoTVM log: where TVM cannot use hilt's schedules; a campaign's end counts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.campaign.outputs import LOG, AutotvmLog, loss_of_log, write_outputs
from hilt.engine.campaign_results import CampaignResult, load_result
from hilt.store import Store, database_path
from tests.unit.report.campaign_store import make


@pytest.fixture
def result(tmp_path: Path) -> CampaignResult:
    """Two layers: 3 x 4,700.5 us and 1 x 350.75 us."""
    campaign, _ = make(tmp_path)
    with Store(database_path(tmp_path)) as store:
        return load_result(store, campaign)


def test_a_log_with_the_fallback_alone_for_a_layer_names_the_loss_in_tvm(result: CampaignResult) -> None:
    (note,) = loss_of_log(result, {"resnet18.C5": 4_700.5e-6, "resnet18.C10": 12_000e-6})
    assert "these 2 layers take 26.10 ms, with hilt's schedules 14.45 ms; slower are resnet18.C10;" in note


def test_a_log_with_the_best_schedules_needs_no_note(result: CampaignResult) -> None:
    assert loss_of_log(result, {"resnet18.C5": 4_700.5e-6, "resnet18.C10": 352e-6}) == []


@pytest.mark.parametrize(("notes", "lines"), [(0, []), (1, ["a note", "prints it"]), (3, ["3 notes", "prints them"])])
def test_the_end_of_a_campaign_counts_the_notes_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notes: int, lines: list[str]
) -> None:
    campaign, _ = make(tmp_path)
    log = AutotvmLog(9, {}, [f"conv2d:n=1,ci={each} is slower in TVM" for each in range(notes)])
    monkeypatch.setattr("hilt.campaign.outputs.write_autotvm_log", lambda *arguments: log)
    monkeypatch.setattr("hilt.report.html.write_campaign_report", lambda *arguments: None)
    with Store(database_path(tmp_path)) as store:
        found = write_outputs(store, campaign.uuid, tmp_path).notes
    assert len(found) == min(notes, 1) and all(words in found[0] for words in lines)
    assert not any("conv2d:" in note for note in found)


def test_a_campaign_on_a_board_without_a_target_ends_without_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign, _ = make(tmp_path)
    monkeypatch.setattr("hilt.report.html.write_campaign_report", lambda *arguments: None)
    with Store(database_path(tmp_path)) as store:
        written = write_outputs(store, campaign.uuid, tmp_path)
    assert not (tmp_path / LOG).exists() and tmp_path / LOG not in written.paths
    (note,) = written.notes
    assert note.startswith(f"for TVM's users: no {LOG}: no TVM target for board table:plain")
