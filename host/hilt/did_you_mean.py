"""Near names for a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, names: Iterable[str], otherwise: str) -> str:
    """Return `did you mean A or B?` where `names` has near ones, else the sentence `otherwise`."""
    by_lower = {known.lower(): known for known in names}
    close = get_close_matches(name.lower(), by_lower, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(by_lower[match] for match in close)}?" if close else otherwise
