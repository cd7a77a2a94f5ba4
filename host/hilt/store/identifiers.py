"""Finds the run or the campaign that an id names."""

from __future__ import annotations

from hilt.did_you_mean import did_you_mean
from hilt.store.database import Store
from hilt.store.errors import AmbiguousRunError, UnknownRunError
from hilt.store.records import Campaign, Run

LAST = "last"
_SHORT = 8
"""Characters of an id that are said, as `hilt runs` has them; more if more were given."""
_NEWEST = 200
"""Runs whose ids and workloads may have been meant."""


def run_or_campaign(store: Store, identifier: str) -> Run | Campaign:
    """Return the run or campaign of this uuid, or the only one whose uuid begins with it; `last` is the newest.

    The newest run of a campaign stands for its campaign. Raises UnknownRunError, AmbiguousRunError.
    """
    if identifier.lower() == LAST:
        return _newest(store)
    campaign = store.campaign(identifier)
    try:
        run = store.run(identifier)
    except AmbiguousRunError:
        if campaign is None:
            raise
    except UnknownRunError:
        if campaign is not None:
            return campaign
        near = did_you_mean(identifier, _names(store, identifier), "`hilt runs` and `hilt campaigns` list them")
        text = f"there is no run or campaign {identifier!r}; {near}"
        raise UnknownRunError(text) from None
    else:
        if campaign is None:
            return run
    raise AmbiguousRunError(f"a campaign and a run begin with {identifier!r}; give more of its id")


def _names(store: Store, identifier: str) -> dict[str, str]:
    """Return identifiers that may have been meant: ids, and networks and workloads, each of its newest."""
    names = {LAST: LAST}
    known = [(each.uuid, each.name) for each in store.campaigns()]
    for uuid, name in known + [(each.uuid, each.workload) for each in store.runs(_NEWEST)]:
        short = uuid[: max(_SHORT, len(identifier))]
        names.setdefault(short, short)
        names.setdefault(name, f"{uuid[:_SHORT]} ({name})")
    return names


def _newest(store: Store) -> Run | Campaign:
    run = next(iter(store.runs(1)), None)
    campaign = next(iter(store.campaigns()), None)
    if run is None and campaign is None:
        raise UnknownRunError("there are no runs yet; begin one with `hilt tune`")
    if run is None or (campaign is not None and (run.campaign == campaign.uuid or campaign.created > run.created)):
        assert campaign is not None
        return campaign
    return (store.campaign(run.campaign) or run) if run.campaign else run
