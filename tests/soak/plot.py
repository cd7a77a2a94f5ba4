"""Draws the samples of a soak: a column for each phase, a row for each kind of quantity."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.soak.recorder import ROLES, Series

_ROWS = {
    "memory, MiB": [f"{role} memory" for role in ROLES],
    "descriptors": [f"{role} descriptors" for role in ROLES],
    "disk, MiB": ["board disk", "journal"],
}


def draw(path: Path, phases: Sequence[tuple[str, Series]]) -> None:
    """Write an SVG file."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(_ROWS), len(phases), figsize=(10, 8), squeeze=False, sharex="col")
    for column, (title, series) in enumerate(phases):
        for row, (label, names) in enumerate(_ROWS.items()):
            axis = axes[row][column]
            for name in names:
                values = [(each["count"], each[name]) for each in series.rows if name in each]
                if values:
                    axis.plot(*zip(*values, strict=True), label=name)
            axis.set_ylim(bottom=0)
            axis.set_ylabel(label)
            axis.legend(loc="lower right", fontsize="small")
        axes[0][column].set_title(title)
        axes[-1][column].set_xlabel(title.split(" ", 1)[1])
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
