"""Near names for a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


def did_you_mean(name: str, names: Iterable[str] | Mapping[str, str], otherwise: str) -> str:
    """Return `did you mean A or B?` where `names` has near ones, else the sentence `otherwise`.

    A mapping has the words for each of its names.
    """
    words = names if isinstance(names, Mapping) else {known: known for known in names}
    by_lower = {known.lower(): word for known, word in words.items()}
    close = get_close_matches(name.lower(), by_lower, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(by_lower[match] for match in close)}?" if close else otherwise
