"""Labels of runs and campaigns: kept, changed, refused, and gone with their record."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.store import Campaign, Store, UnknownRunError
from hilt.store.labels import LabelError, Labels, all_labels, labels_of, remove, set_labels

from .examples import run, trial

A, B, C = ("a" * 32, "b" * 32, "c" * 32)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A campaign C with the run A, and the run B by itself."""
    opened = Store(tmp_path / "hilt.db")
    opened.create_campaign(Campaign(C, "one", {"name": "one", "layers": [], "others": {}}, {}, 1.0, {"trials": 8}))
    opened.create_run(run(A, campaign=C))
    opened.create_run(run(B))
    for uuid in (A, B):
        opened.record(uuid, [trial(0, 0, 7.0), trial(1, 3, 6.0)])
    return opened


def test_labels_are_kept_and_changed(store: Store, tmp_path: Path) -> None:
    assert labels_of(store, A) == Labels()
    set_labels(store, A, Labels().tagged(add=["slow", "board-7"]).noted(" before the fan "))
    set_labels(store, A, labels_of(store, A).tagged(add=["slow"], remove=["board-7"]).put_away(True))
    store.close()
    with Store(tmp_path / "hilt.db") as again:
        assert all_labels(again) == {A: Labels(("slow",), "before the fan", True)}


@pytest.mark.parametrize("tag", ["", "two words", "a,b", "x" * 41, "esc\x1b[2J"])
def test_a_tag_is_one_short_word(tag: str) -> None:
    with pytest.raises(LabelError, match="is no tag"):
        Labels().tagged(add=[tag])


def test_labels_have_bounds() -> None:
    with pytest.raises(LabelError, match="33 tags are too many"):
        Labels().tagged(add=[f"t{number}" for number in range(33)])
    with pytest.raises(LabelError, match="4,001 characters"):
        Labels().noted("x" * 4001)
    labels = Labels().tagged(add=[f"t{number:02}" for number in range(32)] + ["t00"]).noted("x" * 4000)
    assert not labels.archived and len(labels.tags) == 32 and labels.tags[0] == "t00" and len(labels.note) == 4000
    assert Labels().tagged(add=["x" * 40]).tags == ("x" * 40,)


def test_a_campaign_goes_with_its_runs_trials_and_labels_and_nothing_else(store: Store) -> None:
    for uuid in (A, B, C):
        set_labels(store, uuid, Labels(("kept",)))
    campaign = store.campaign(C)
    assert campaign is not None and sorted(remove(store, campaign)) == [A, C]
    assert store.campaigns() == [] and [each.uuid for each in store.runs()] == [B]
    assert list(all_labels(store)) == [B] and len(store.trials(B)) == 2
    assert store.rows("SELECT count(*) FROM trials")[0][0] == 2, "no trials of nobody are left"
    with pytest.raises(UnknownRunError):
        store.run(A)
