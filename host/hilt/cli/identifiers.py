"""What an id that may be of a run or of a campaign stands for."""

from __future__ import annotations

from hilt.store import AmbiguousRunError, Campaign, Run, Store, UnknownRunError


def run_or_campaign(store: Store, identifier: str) -> Run | Campaign:
    """That whose uuid it is, or the only one whose uuid begins with it; `last` is the newest run. Raises
    UnknownRunError, AmbiguousRunError."""
    campaign = store.campaign(identifier)
    try:
        run = store.run(identifier)
    except AmbiguousRunError:
        if campaign is None:
            raise
    except UnknownRunError:
        if campaign is not None:
            return campaign
        if identifier.lower() == "last":
            raise
        words = f"there is no run or campaign {identifier!r}; `hilt runs` and `hilt campaigns` list them"
        raise UnknownRunError(words) from None
    else:
        if campaign is None:
            return run
    raise AmbiguousRunError(f"a campaign and a run begin with {identifier!r}; give more of its id")
