"""`hilt show` of a bundle: where each node runs, how long it takes, and the whole inference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from hilt.cli import tables
from hilt.cli.formatting import print_json
from hilt.cli.tables import column
from hilt.network.latency import Latency, latency_text

SUFFIX = ".hilt"


def view_of(path: Path) -> dict[str, Any]:
    """Return the view of a bundle: of its latest inference here, else as it is predicted. Raises BundleError."""
    from hilt.network.board_run import open_bundle
    from hilt.network.graph_file import graph_of
    from hilt.network.kept_view import kept_view
    from hilt.network.network_view import network_view
    from hilt.network.predicted import predicted_profile

    bundle, data = open_bundle(str(path))
    if (view := kept_view(data)) is not None:
        return view
    graph = graph_of(bundle, data)
    view = network_view(graph, bundle.manifest, predicted_profile(graph, bundle.manifest), {})
    return view | {"runs": f"predicted: it has not run yet (`hilt run {path}`)"}


def show_bundle(path: Path, html: Path | None, *, as_json: bool) -> None:
    """Print a bundle, or write its page. Raises BundleError, UnwritableFileError."""
    view = view_of(path)
    if html is not None:
        write_page(html, view)
    if as_json:
        print_json(view, "network")
    else:
        print_view(view)
    if html is not None:
        typer.echo(str(html), err=as_json)


def write_page(path: Path, view: Mapping[str, Any]) -> None:
    """Write the page of a network. Raises UnwritableFileError."""
    from hilt.report.network_page import write_network_page

    write_network_page(path, view)


def print_view(view: Mapping[str, Any]) -> None:
    """Print the nodes of a network with their times, and the whole inference."""
    latency = Latency.from_dict(view["latency"])
    table = tables.table(
        column("node", cuts=True),
        column("operation", cuts=True, drop=3),
        column("runs on", cuts=True),
        ">µs",
        ">share",
        column(">cycles", drop=5),
        column(">of bound", drop=4),
        column(">SNR dB", drop=2),
        column("why", cuts=True, drop=1),
    )
    for node in view["nodes"]:
        table.add_row(
            node["name"],
            node["op"],
            "VTA" if node["where"] == "vta" else node["where"],
            f"{node['microseconds']:,.1f}",
            f"{100 * node['microseconds'] / (latency.total or 1.0):.1f}%",
            f"{node['cycles']:,.0f}" if node.get("cycles") else "-",
            f"{100 * node['bound_share']:.1f}%" if node.get("bound_share") else "-",
            f"{node['decibels']:.1f}" if node["decibels"] is not None else "-",
            node["reason"],
        )
    tables.console().print(table)
    typer.echo(f"{view['name']} on {view['board']}: {latency_text(latency)}")
    typer.echo(view["runs"])
