"""Matplotlib, set up the same for every picture, and its pictures as SVG to put into a page or into files."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

from hilt.report.errors import MissingLibraryError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 4.9
"""Inches: at 390 pixels, a phone's width, its words of 9 points are still to be read."""
BEST, FALLBACK, FAILED, QUIET = "#1b6ca8", "#c2571a", "#b3261e", "#8a8f98"
_SETTINGS = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9.5,
    "figure.dpi": 110,
    "font.family": "sans-serif",
    "font.size": 9,
    "grid.color": "#e4e6ea",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "savefig.facecolor": "white",
    "svg.fonttype": "none",  # words stay words
    "text.parse_math": False,  # a dollar in a name is a dollar
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}
_REFERENCE = re.compile(r'(\bid="|url\(#|href="#)')


def new_figure(height: float) -> tuple[Figure, Axes]:
    """Return a figure WIDTH inches wide. Raises MissingLibraryError without Matplotlib."""
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingLibraryError("a report", "Matplotlib") from error
    matplotlib.rcParams.update(_SETTINGS)
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def inline_svg(figure: Figure, name: str, description: str) -> str:
    """Return an <svg> element for a page: no prologue, no metadata, and names that no other figure of the page has."""
    text = _svg(figure, name)
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = _REFERENCE.sub(rf"\g<1>{name}-", text)
    size = re.compile(r'<svg[^>]*?viewBox="([^"]+)"[^>]*>', re.DOTALL)
    label = description.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    head = rf'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="\1" role="img" aria-label="{label}">'  # noqa: E501  # fmt: skip
    return size.sub(lambda found: head.replace(r"\1", found[1]), text, count=1)


def save(figure: Figure, path: Path) -> None:
    """Write the figure as PNG or SVG, by the name's ending. Raises OSError."""
    if path.suffix == ".svg":
        path.write_text(_svg(figure, path.stem), encoding="utf-8")
    else:
        figure.savefig(path, dpi=160, metadata={"Software": None})


def _svg(figure: Figure, name: str) -> str:
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = name  # the same picture is the same text, whenever it is made
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return written.getvalue()
