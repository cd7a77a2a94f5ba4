"""Which campaign an id stands for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt.campaign.launch import find
from hilt.store import AmbiguousRunError, Campaign, Store, UnknownRunError

BUDGETED, OTHER, PLAIN = "ab" + "0" * 30, "ac" + "1" * 30, "ab" + "2" * 30


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Two campaigns with a budget, and the newest, which is of `hilt tune`."""
    with Store(tmp_path / "hilt.db") as opened:
        for uuid, budget in ((BUDGETED, {"trials": 8}), (OTHER, {"seconds": 60.0}), (PLAIN, None)):
            opened.create_campaign(Campaign(uuid, "net", {}, {}, 1.0, budget))
        yield opened


@pytest.mark.parametrize(
    ("identifier", "uuid"),
    [(BUDGETED, BUDGETED), ("ab0", BUDGETED), ("AB", BUDGETED), ("ac", OTHER), ("last", OTHER)],
)
def test_an_id_is_looked_for_among_campaigns_with_a_budget_first(store: Store, identifier: str, uuid: str) -> None:
    assert find(store, identifier).uuid == uuid


@pytest.mark.parametrize(
    ("identifier", "kind", "words"),
    [
        ("a", AmbiguousRunError, "more than one campaign begins with 'a'"),
        ("ab2", UnknownRunError, "campaign ab222222 is of `hilt tune`.* `hilt resume ab222222` goes on with it"),
        (PLAIN, UnknownRunError, "is of `hilt tune`"),
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
    with Store(tmp_path / "hilt.db") as empty, pytest.raises(UnknownRunError, match="no campaign 'last'"):
        find(empty, "last")
