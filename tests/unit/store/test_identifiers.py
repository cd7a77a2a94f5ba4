"""The run or the campaign that an id names, and suggestions for one that names none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.store import AmbiguousRunError, Campaign, Store, UnknownRunError, database_path
from hilt.store.identifiers import run_or_campaign

from . import examples

OLDER, NEWER, LAYER = "3f2a91bc-0000-4", "3f7b0000-0000-4", "a1000000-0000-4"
CAMPAIGN = "c0ffee00-0000-4"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(database_path(tmp_path))
    store.create_run(examples.run(OLDER, workload="resnet18.C5", created=1.0))
    store.create_run(examples.run(NEWER, workload="resnet18.C5", created=2.0))
    store.create_campaign(Campaign(CAMPAIGN, "mobilenet", {"layers": []}, {}, 3.0, {"trials": 40}))
    store.create_run(examples.run(LAYER, workload="resnet18.C10", created=4.0, campaign=CAMPAIGN))
    return store


@pytest.mark.parametrize(
    ("text", "uuid"), [("3f2", OLDER), ("3F7B", NEWER), ("a1", LAYER), ("c0f", CAMPAIGN), ("Last", CAMPAIGN)]
)
def test_the_beginning_of_an_id_is_enough(store: Store, text: str, uuid: str) -> None:
    assert run_or_campaign(store, text).uuid == uuid


def test_a_beginning_of_two_is_none(store: Store) -> None:
    with pytest.raises(AmbiguousRunError):
        run_or_campaign(store, "3f")
    store.create_run(examples.run("c0ff0000-0000-4", created=5.0))
    with pytest.raises(AmbiguousRunError, match="a campaign and a run begin with 'c0f'; give more of its id"):
        run_or_campaign(store, "c0f")
    assert run_or_campaign(store, "last").uuid == "c0ff0000-0000-4"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("lastt", "did you mean last?"),
        ("3f2a91bd", "did you mean 3f2a91bc?"),
        ("3f2a91bc-0000-5", "did you mean 3f2a91bc-0000-4"),
        ("resnet18.c5", "did you mean 3f7b0000 (resnet18.C5) or a1000000 (resnet18.C10)?"),
        ("mobilenet", "did you mean c0ffee00 (mobilenet)?"),
        ("zzz", "`hilt runs` and `hilt campaigns` list them"),
    ],
)
def test_what_was_meant_is_proposed(store: Store, text: str, meant: str) -> None:
    with pytest.raises(UnknownRunError) as refused:
        run_or_campaign(store, text)
    assert str(refused.value).startswith(f"there is no run or campaign {text!r}; {meant}")


def test_an_empty_store_says_how_a_run_begins(tmp_path: Path) -> None:
    with Store(database_path(tmp_path)) as empty, pytest.raises(UnknownRunError, match="begin one with `hilt tune`"):
        run_or_campaign(empty, "last")
