"""A network's inference: where each node runs and how long, its signal to noise, and the timeline as one line each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import DataTable, Static

from hilt.network.latency import Latency, latency_text
from hilt.report.campaign_inference import CampaignInference, load_inference
from hilt.store import Store
from hilt.tui import formatting
from hilt.tui.event_lines import one_line
from hilt.tui.widgets.key_bar import KeyBar
from hilt.tui.widgets.navigation_bar import NavigationBar

_COLUMNS = {"node": 24, "runs on": 8, "µs": 10, "share": 7, "of it all": 10, "SNR dB": 8, "of bound": 9}
"""Narrow enough for 80 cells together, with the space between them."""
_WIDE_COLUMNS = {"operation": 24, "shape": 18}
_NUMBERS = ("µs", "share", "SNR dB", "of bound")
_WIDE = 120
_COLOURS = {
    "vta": "$primary",
    "native": "$success",
    "numpy": "$warning",
    "float": "$accent",
    "crossing": "$warning",
    "start": "$error",
    "between": "$panel-lighten-2",
}
_WORDS = {"vta": "VTA", "float": "float", "native": "native", "numpy": "numpy", "view": "view"}
_LEGEND = ("vta", "native", "numpy", "float", "crossing", "start", "between")


class NetworkScreen(Screen[None]):
    """The inference that a campaign of a quantised model ended with. Arrows and the mouse scroll its nodes."""

    BINDINGS: ClassVar[list[Any]] = []

    def __init__(self, home: Path, store: Store, uuid: str | None = None) -> None:
        super().__init__()
        self._store = store
        self._uuid = uuid
        self._inference: CampaignInference | None = None

    def compose(self) -> ComposeResult:
        yield NavigationBar("network")
        yield Static("reading the store ...", id="network-words")
        yield Static("", id="network-time")
        yield DataTable(cursor_type="row", zebra_stripes=True, cell_padding=0)
        yield Static("", id="network-why")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(DataTable).focus()
        self._read()

    def on_resize(self, event: Resize) -> None:
        if self._inference is not None:
            self._show(self._inference)

    @work(group="read", exclusive=True, exit_on_error=False)
    async def _read(self) -> None:
        try:
            self._inference = await asyncio.to_thread(self._load)
        except Exception as error:  # of the store: it names the fault in a line
            self.query_one("#network-words", Static).update(Content(one_line(str(error))))
            return
        if self._inference is None or "view" not in self._inference.values:
            self.query_one("#network-words", Static).update(
                Content("no inference yet: the campaign of a quantised model ends with one (`hilt campaign m.onnx`)")
            )
            return
        self._show(self._inference)

    def _load(self) -> CampaignInference | None:
        uuids = [self._uuid] if self._uuid else [campaign.uuid for campaign in self._store.campaigns()]
        return next((found for uuid in uuids if (found := load_inference(self._store, uuid)) is not None), None)

    def _show(self, inference: CampaignInference) -> None:
        view = inference.values["view"]
        name = f"{one_line(view['name'])} on {one_line(inference.board)}  "
        self.query_one("#network-words", Static).update(
            Content.assemble((name, "bold"), f"{latency_text(inference.after)}\n{one_line(view['runs'])}")
        )
        width = max(self.size.width - 14, 20)
        self.query_one("#network-time", Static).update(timeline_content(view, width))
        self._fill(view)

    def _fill(self, view: Mapping[str, Any]) -> None:
        columns = _COLUMNS | (_WIDE_COLUMNS if self.size.width >= _WIDE else {})
        table = self.query_one(DataTable)
        row = table.cursor_row
        table.clear(columns=True)
        for name, width in columns.items():
            title = name.rjust(width) if name in _NUMBERS else name if name == "node" else f" {name}"
            table.add_column(title, width=width)
        total = Latency.from_dict(view["latency"]).total or 1.0
        for node in view["nodes"]:
            cells = _cells(node, total)
            table.add_row(*(cells[name].rjust(columns[name]) if name in _NUMBERS else cells[name] for name in columns))
        table.move_cursor(row=row)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        if self._inference is None:
            return
        node = self._inference.values["view"]["nodes"][event.cursor_row]
        knobs = " ".join(f"{name}={value}" for name, value in node.get("knobs", {}).items())
        self.query_one("#network-why", Static).update(
            Content(one_line(f"{node['name']}: {node['reason']}{'; ' if knobs else ''}{knobs}"))
        )


def _cells(node: Mapping[str, Any], total: float) -> dict[str, str]:
    share = node["microseconds"] / total
    return {
        "node": _cut(one_line(str(node["name"])), _COLUMNS["node"] - 1),
        "runs on": f" {_WORDS.get(node['where'], one_line(str(node['where'])))}",
        "µs": f"{node['microseconds']:,.1f}",
        "share": f"{100 * share:.1f}%",
        "of it all": f" {formatting.bar(share, 8)}",
        "SNR dB": formatting.NONE if node["decibels"] is None else f"{node['decibels']:.1f}",
        "of bound": f"{100 * node['bound_share']:.1f}%" if node.get("bound_share") else formatting.NONE,
        "operation": f" {one_line(str(node['op']))}",
        "shape": f" {'x'.join(map(str, node['shape']))}",
    }


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def timeline_content(view: Mapping[str, Any], width: int) -> Content:
    """Return processor and VTA as two lines of `width` cells, each cell in the colour of its longest slice."""
    nodes, slices = view["nodes"], view["slices"]
    lines = [
        Content.assemble(f"{name:<11}", *_cells_of(nodes, slices, width, on_vta))
        for name, on_vta in (("processor", False), ("VTA", True))
    ]
    used = {kind_of(nodes, each) for each in slices}
    legend = [Content.assemble(("█ ", _COLOURS[kind]), f"{kind}  ") for kind in _LEGEND if kind in used]
    return Content("\n").join([*lines, Content("").join([Content(" " * 11), *legend])])


def kind_of(nodes: Sequence[Mapping[str, Any]], each: Mapping[str, Any]) -> str:
    """Return the kind of a slice: that of its node, else its own."""
    return str(nodes[each["node"]]["where"] if each["node"] is not None else each["kind"])


def _cells_of(
    nodes: Sequence[Mapping[str, Any]], slices: Sequence[Mapping[str, Any]], width: int, on_vta: bool
) -> list[tuple[str, str]]:
    end = max((each["began"] + each["microseconds"] for each in slices), default=0.0) or 1.0
    filled: list[dict[str, float]] = [{} for _ in range(width)]
    for each in slices:
        if (each["kind"] == "vta") != on_vta:
            continue
        kind = kind_of(nodes, each)
        first, last = each["began"] / end * width, (each["began"] + each["microseconds"]) / end * width
        for cell in range(int(first), min(int(last) + 1, width)):
            covered = min(last, cell + 1) - max(first, cell)
            filled[cell][kind] = filled[cell].get(kind, 0.0) + covered
    found = []
    for kinds in filled:
        kind = max(kinds, key=lambda name: kinds[name]) if kinds else ""
        found.append(("█", _COLOURS.get(kind, "$text")) if sum(kinds.values()) >= 0.5 else (" ", ""))
    return found
