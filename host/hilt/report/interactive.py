"""Interactive plots for pages: Plotly's JavaScript inlined once, and each plot as data, so a page needs no network."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from hilt.report.errors import MissingLibraryError
from hilt.report.figures import BEST, FAILED, FALLBACK

COLOURS = (BEST, FALLBACK, "#2e7d4f", "#7b4fa3", FAILED, "#6b6f00", "#00798c", "#8a5a00")
_LAYOUT: dict[str, Any] = {
    "autosize": True,
    "height": 380,
    "margin": {"l": 64, "r": 24, "t": 28, "b": 52},
    "font": {"family": "system-ui, DejaVu Sans, sans-serif", "size": 13},
    "hovermode": "closest",
    "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    "paper_bgcolor": "white",
    "plot_bgcolor": "white",
}
_AXIS = {"gridcolor": "#e4e6ea", "zerolinecolor": "#e4e6ea"}
_ON_WEBGL = ("parcoords",)
_DRAWN_IN_VIEW = (
    "new IntersectionObserver((seen) => { const place = seen[0].target; "
    "if (seen[seen.length - 1].isIntersecting) { if (!place.data) %(drawing)s; } "
    "else if (place.data) Plotly.purge(place); }).observe(document.getElementById(%(name)s))"
)
"""A browser draws some sixteen pictures with WebGL, three a plot, and blanks the oldest for one more."""


@dataclass(frozen=True)
class Plot:
    """One plot: Plotly's traces and layout, with a caption."""

    name: str
    caption: str
    traces: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any] = field(default_factory=dict)

    def html(self) -> str:
        """Return the element and the script that draws it. Text from users cannot end the script."""
        layout = _LAYOUT | dict(self.layout)
        for axis in [name for name in layout if name.startswith(("xaxis", "yaxis"))]:
            layout[axis] = _AXIS | dict(layout[axis])
        options = {"responsive": True, "displaylogo": False}
        arguments = ", ".join(script_json(value) for value in (list(self.traces), layout, options))
        identifier, drawing = escape(self.name, quote=True), f"Plotly.newPlot({script_json(self.name)}, {arguments})"
        if any(trace["type"] in _ON_WEBGL for trace in self.traces):
            drawing = _DRAWN_IN_VIEW % {"name": script_json(self.name), "drawing": drawing}
        return (
            f'<figure class="plot"><div id="{identifier}" style="min-height: {layout["height"]}px"></div>'
            f"<figcaption>{escape(self.caption)}</figcaption><script>{drawing};</script></figure>"
        )


def plotly_script() -> str:
    """Return Plotly's library as a script element. Raises MissingLibraryError without plotly."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingLibraryError("an interactive page", "plotly") from error
    return f"<script>{get_plotlyjs()}</script>"


def page(title: str, sections: Iterable[str]) -> str:
    """Return a whole page of HTML sections, with hilt's style and Plotly inlined. Raises MissingLibraryError."""
    from importlib import resources

    style = resources.files("hilt.report").joinpath("templates", "report.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)} – hilt</title>\n<style>\n{style}\n</style>",
            plotly_script(),
            f"</head>\n<body>\n<h1>{escape(title)}</h1>",
            *sections,
            "</body>\n</html>\n",
        ]
    )


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of text, which is escaped; see `html_cards`."""
    return html_cards([escape(title) for title in header], ([escape(cell) for cell in row] for row in rows))


def html_cards(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table that folds to cards on a narrow screen; titles and cells are HTML."""
    head = "".join(f"<th>{title}</th>" for title in header)
    body = "".join(
        f'<tr><th scope="row">{first}</th>'
        + "".join(f'<td data-label="{title}">{cell}</td>' for title, cell in zip(header[1:], rest, strict=True))
        + "</tr>\n"
        for first, *rest in rows
    )
    return f'<table class="cards">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>'


def script_json(value: object) -> str:
    """Return a value as JSON that cannot end the script that it stands in."""
    text = json.dumps(value, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\u2028", "\\u2028")
