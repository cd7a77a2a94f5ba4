"""A network as a page: its graph, the timeline of one inference, and a table of its nodes; it needs no network.

The graph is laid out by dagre (host/hilt/report/vendor), which the page holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from hilt.atomic_write import atomic_write
from hilt.network.latency import Latency, latency_text, scaled
from hilt.plain_text import plain
from hilt.report.interactive import script_json

_LEGEND = (
    ("vta", "VTA"),
    ("native", "processor, native"),
    ("numpy", "processor, numpy"),
    ("float", "processor, float"),
    ("view", "a view: no time"),
    ("crossing", "crossing"),
    ("start", "start of VTA"),
    ("between", "between steps"),
)
_PART_OF_A_NAME = re.compile(r"([._/])(?=[^._/])")
_HINT = (
    "Width is time. Click a node, a bar or a row for its facts. Drag moves the graph, Shift and the wheel zoom it; "
    "drag over the timeline enlarges a part, a double click shows all of it."
)


def write_network_page(path: Path, view: Mapping[str, Any]) -> None:
    """Write the page of a network. Raises UnwritableFileError."""
    text = network_page(view)
    with atomic_write(path) as file:
        file.write(text)


def network_page(view: Mapping[str, Any]) -> str:
    """Return the page of hilt.network.network_view as HTML. Text of users is escaped."""
    latency = Latency.from_dict(view["latency"])
    title = f"{view['name']} on {view['board']}"
    tiles = "".join(
        f"<p><b>{_words(scaled(value))}</b><span>{_words(name)}</span></p>"
        for name, value in (("one inference", latency.total), *latency.parts)
    )
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_words(title)} – hilt</title>",
            f"<style>\n{_asset('templates/report.css')}</style>\n</head>\n<body>",
            f'<header><p class="kind">hilt network</p><h1>{_words(title)}</h1>',
            f'<div class="headline">{tiles}</div>',
            f"<p>{_words(latency_text(latency))}; {_words(view['runs'])}. VTA {_words(view['parameters'])} at "
            f"{view['clock_hz'] / 1e6:g} MHz, {100 * view['utilisation']:.1f}&nbsp;% of its peak.</p></header>",
            network_section(view),
            "</body>\n</html>\n",
        ]
    )


def network_section(view: Mapping[str, Any], *, static: bool = False) -> str:
    """Return the graph, the timeline and the table as HTML; a static one has the table alone, and no script."""
    style = f"<style>\n{_asset('templates/network.css')}</style>"
    if static:
        return f'{style}\n<div class="net" id="net">{_table(view)}</div>'
    used = {node["where"] for node in view["nodes"]} | {each["kind"] for each in view["slices"]}
    legend = "".join(
        f'<span><i style="background: var(--{kind})"></i>{words}</span>' for kind, words in _LEGEND if kind in used
    )
    return f"""{style}
<div class="net" id="net">
<h2>Graph</h2>
<div class="legend">{legend}</div>
<div class="panes">
<div class="canvas"><svg role="img" aria-label="the network's graph"></svg>
<div class="tools"><button class="in" title="larger">+</button><button class="out" title="smaller">−</button>
<button class="fit">whole</button></div></div>
<div class="facts" aria-live="polite"></div>
</div>
<h2>Timeline of one inference</h2>
<div class="time"><svg role="img" aria-label="processor and VTA over time"></svg></div>
<p class="note">{_HINT}</p>
{_table(view)}
</div>
<script>{_asset("vendor/dagre.min.js")}</script>
<script>{_asset("templates/network.js")}
hiltNetwork(document.getElementById("net"), {script_json(dict(view))});</script>"""


def _table(view: Mapping[str, Any]) -> str:
    """Return the nodes with their times, and the parts of the inference that no node has; they add up to it."""
    total = view["latency"]["total"] or 1.0
    rows = [_row(place, node, total) for place, node in enumerate(view["nodes"])]
    for kind, words in _LEGEND:
        rest = sum(each["microseconds"] for each in view["slices"] if each["node"] is None and each["kind"] == kind)
        if rest:
            rows.append(_part(words, kind, rest, total))
    rows.append(
        f'<tr><th scope="row">all</th><td></td><td>{total:,.1f}</td><td class="share"></td><td class="less"></td>'
        '<td class="less"></td></tr>'
    )
    return (
        '<h2>Nodes</h2><div class="scroll"><table><thead><tr><th>node</th><th class="words">runs on</th><th>µs</th>'
        '<th>share</th><th class="less">of bound</th><th class="less">signal to noise</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(place: int, node: Mapping[str, Any], total: float) -> str:
    bound = f"{100 * node['bound_share']:.1f}&nbsp;%" if node.get("bound_share") else "–"
    noise = f"{node['decibels']:.1f}&nbsp;dB" if node["decibels"] is not None else "–"
    where = {"vta": "VTA", "view": "view"}.get(node["where"], node["where"])
    return (
        f'<tr data-node="{place}"><th scope="row">{_name(node["name"])}</th><td class="words">{where}</td>'
        f"<td>{node['microseconds']:,.1f}</td>{_bar(node['where'], node['microseconds'] / total)}"
        f'<td class="less">{bound}</td><td class="less">{noise}</td></tr>'
    )


def _part(words: str, kind: str, microseconds: float, total: float) -> str:
    return (
        f'<tr><th scope="row">{words}</th><td></td><td>{microseconds:,.1f}</td>{_bar(kind, microseconds / total)}'
        '<td class="less"></td><td class="less"></td></tr>'
    )


def _bar(kind: str, share: float) -> str:
    style = f"width: {100 * share:.2f}%; background: var(--{kind})"
    return f'<td class="share"><span class="bar" style="{style}"></span></td>'


def _name(text: str) -> str:
    """Return a tensor's name that a narrow column breaks between its parts."""
    return _PART_OF_A_NAME.sub(r"\1<wbr>", _words(text))


def _words(text: str) -> str:
    return escape(plain(text))


def _asset(name: str) -> str:
    return resources.files("hilt.report").joinpath(*name.split("/")).read_text(encoding="utf-8")
