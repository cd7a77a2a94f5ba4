"""The results of an older run that a run begun anew takes over: those that its board would give again.

The older run is named in the new one's versions, beside the digest of the twin: results depend on both.
"""

from __future__ import annotations

from dataclasses import replace

from hilt.store import Run, Store, Trial, UnknownRunError

CONTINUES = "continues"
TWIN = "twin"
_SAME = (
    *("workload_spec", "parameters", "isa", "clock_hz", "space", "space_kind", "orders", "checks"),
    *("repeat", "number", "seed", "output_elements"),
)
"""Facts of a run that its results depend on, beside the bitstream."""


def continuing(new: Run, old: Run) -> Run:
    """Return the new run as one that takes over the results of the old one, or as it is if they do not hold for it."""
    if not _results_hold(old, new):
        return new
    return replace(new, versions={**new.versions, CONTINUES: old.uuid})


def taken_over(store: Store, run: Run) -> dict[int, Trial]:
    """Return the verified trials of the runs that a run continues, by configuration; those of deleted runs are lost."""
    found: dict[int, Trial] = {}
    older = run.versions.get(CONTINUES)
    while older:
        try:
            before = store.run(older)
        except UnknownRunError:
            break
        for trial in store.trials(before.uuid):
            if trial.verified:
                found.setdefault(trial.index, trial)
        older = before.versions.get(CONTINUES)
    return found


def _results_hold(old: Run, new: Run) -> bool:
    """Return whether the board of the new run takes the cycles of the old one's.

    Its bitstream is the same, or its RTL has changed and the twin, which takes the same cycles as the RTL, has not.
    """
    if any(getattr(old, name) != getattr(new, name) for name in _SAME):
        return False
    twin = new.versions.get(TWIN, "")
    return old.bitstream == new.bitstream or (twin != "" and old.versions.get(TWIN) == twin)
