"""A network's inference: where each node runs and how long, its signal to noise, and the timeline as one line each.

It is the inference that a campaign ended with, or the latest one of a bundle. A command that ends shows its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import DataTable, Static

from hilt.engine.run_files import RunFiles
from hilt.network.kept_view import kept_views, read_view
from hilt.network.latency import Latency, latency_text
from hilt.report.campaign_inference import INFERENCE, load_inference
from hilt.store import Store
from hilt.tui import formatting
from hilt.tui.event_lines import one_line
from hilt.tui.widgets.command_lines import CommandLines
from hilt.tui.widgets.key_bar import KeyBar
from hilt.tui.widgets.navigation_bar import NavigationBar

_COLUMNS = {"node": 24, "runs on": 8, "µs": 10, "share": 7, "of it all": 10, "SNR dB": 8, "of bound": 9}
"""Narrow enough for 80 cells together, with the space between them."""
_NOT_NARROW = ("of it all", "of bound")
"""Columns that a terminal of less than 80 cells has no room for."""
_WIDE_COLUMNS = {"operation": 24, "shape": 18}
_NUMBERS = ("µs", "share", "SNR dB", "of bound")
_NARROW, _WIDE = 80, 120
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
    """An inference, that of the campaign first. Arrows and the mouse scroll its nodes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "next_inference", "Next", tooltip="The inference before this one; after the first, the newest"),
    ]

    def __init__(self, home: Path, store: Store, uuid: str | None = None) -> None:
        super().__init__()
        self._home = home
        self._store = store
        self._uuid = uuid
        self._place = 0
        self._view: Mapping[str, Any] | None = None

    def compose(self) -> ComposeResult:
        yield NavigationBar("network")
        yield Static("reading the store ...", id="network-words")
        yield CommandLines(self._home)
        yield Static("", id="network-time")
        yield DataTable(cursor_type="row", zebra_stripes=True, cell_padding=0)
        yield Static("", id="network-why")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(DataTable).focus()
        self._read()

    def on_resize(self, event: Resize) -> None:
        if self._view is not None:
            self._show(self._view)

    def on_command_lines_ended(self, message: CommandLines.Ended) -> None:
        """Show the newest inference, which may be the one of the command that ended."""
        self._uuid, self._place = None, 0
        self._read()

    def action_next_inference(self) -> None:
        """Show the inference before this one."""
        self._place += 1
        self._read()

    @work(group="read", exclusive=True, exit_on_error=False)
    async def _read(self) -> None:
        try:
            view = await asyncio.to_thread(self._load)
        except Exception as error:  # of the store: it names the fault in a line
            self.query_one("#network-words", Static).update(Content(one_line(str(error))))
            return
        if view is None and self._view is None:
            self.query_one("#network-words", Static).update(
                Content("no inference yet: `hilt run` makes one, and the campaign of a quantised model ends with one")
            )
        elif view is not None:
            self._view = view
            self._show(view)

    def _load(self) -> Mapping[str, Any] | None:
        """Return the view at the place, counted from the newest; of a campaign with one, its own is the first."""
        distinct: list[Mapping[str, Any]] = []
        for view in _views(self._home, self._store, self._uuid):
            if view not in distinct:
                distinct.append(view)
            if len(distinct) > self._place:
                return view
        self._place = 0
        return distinct[0] if distinct else None

    def _show(self, view: Mapping[str, Any]) -> None:
        latency = Latency.from_dict(view["latency"])
        name = f"{one_line(view['name'])} on {one_line(view['board'])}  "
        self.query_one("#network-words", Static).update(
            Content.assemble((name, "bold"), f"{latency_text(latency)}\n{one_line(view['runs'])}")
        )
        width = max(self.size.width - 14, 20)
        self.query_one("#network-time", Static).update(timeline_content(view, width))
        self._fill(view)

    def _fill(self, view: Mapping[str, Any]) -> None:
        columns = _columns(self.size.width)
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
        if self._view is None:
            return
        node = self._view["nodes"][event.cursor_row]
        knobs = " ".join(f"{name}={value}" for name, value in node.get("knobs", {}).items())
        self.query_one("#network-why", Static).update(
            Content(one_line(f"{node['name']}: {node['reason']}{'; ' if knobs else ''}{knobs}"))
        )


def _views(home: Path, store: Store, campaign: str | None) -> Iterator[Mapping[str, Any]]:
    """Yield the campaign's inference, then all others, the newest first."""
    files = [(path.stat().st_mtime, path) for path in kept_views(home)]
    for each in store.campaigns():
        path = RunFiles(home, each.uuid).directory / INFERENCE
        if path.is_file():
            files.append((path.stat().st_mtime if each.uuid != campaign else inf, path))
    for _, path in sorted(files, reverse=True):
        view = _campaigns_view(store, path) if path.name == INFERENCE else read_view(path)
        if view is not None:
            yield view


def _campaigns_view(store: Store, path: Path) -> Mapping[str, Any] | None:
    inference = load_inference(store, path.parent.name)
    if inference is None or "view" not in inference.values:
        return None
    return {**inference.values["view"], "board": inference.board}


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


def _columns(width: int) -> dict[str, int]:
    """Return the columns, with their widths, of a terminal of so many cells."""
    if width < _NARROW:
        return {name: cells for name, cells in _COLUMNS.items() if name not in _NOT_NARROW}
    return _COLUMNS | (_WIDE_COLUMNS if width >= _WIDE else {})
