"""The campaign or run that an id names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hilt.campaign.launch import find
from hilt.store import AmbiguousRunError, Campaign, Store, UnknownRunError
from hilt.store.identifiers import run_or_campaign
from tests.unit.store.examples import run

OLDER, NEWER = "ab" + "0" * 30, "ac" + "1" * 30


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Two campaigns."""
    with Store(tmp_path / "hilt.db") as opened:
        for uuid, created, budget in ((OLDER, 1.0, {"trials": 8}), (NEWER, 2.0, {"seconds": 60.0})):
            opened.create_campaign(Campaign(uuid, "net", {}, {}, created, budget))
        yield opened


@pytest.mark.parametrize(
    ("identifier", "uuid"),
    [(OLDER, OLDER), ("ab0", OLDER), ("AB", OLDER), ("ac", NEWER), ("last", NEWER)],
)
def test_the_beginning_of_an_id_names_a_campaign(store: Store, identifier: str, uuid: str) -> None:
    assert find(store, identifier).uuid == uuid
    assert run_or_campaign(store, identifier).uuid == uuid


@pytest.mark.parametrize(
    ("identifier", "kind", "words"),
    [
        ("a", AmbiguousRunError, "more than one campaign begins with 'a'"),
        ("b", UnknownRunError, "there is no campaign 'b'"),
        ("", UnknownRunError, "there is no campaign ''"),
        ("%", UnknownRunError, "there is no campaign '%'"),
    ],
)
def test_an_id_of_none_or_of_several_is_refused(
    store: Store, identifier: str, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words) as error:
        find(store, identifier)
    assert type(error.value) is kind


def test_the_newest_of_none_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path / "hilt.db") as empty:
        with pytest.raises(UnknownRunError, match="no campaign 'last'"):
            find(empty, "last")
        with pytest.raises(UnknownRunError, match="no runs yet"):
            run_or_campaign(empty, "last")


def test_last_is_the_newest_run_or_campaign(store: Store) -> None:
    store.create_run(replace(run("1" * 32), created=3.0))
    assert run_or_campaign(store, "last").uuid == "1" * 32
    store.create_run(replace(run("2" * 32), created=4.0, campaign=OLDER))
    assert run_or_campaign(store, "LAST").uuid == OLDER, "a layer's run stands for its campaign"
    store.create_campaign(Campaign("d" * 32, "net", {}, {}, 5.0, {"trials": 8}))
    assert run_or_campaign(store, "last").uuid == "d" * 32
