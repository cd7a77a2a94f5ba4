"""`hilt tui`: the terminal interface."""

from __future__ import annotations

from typing import Annotated

import typer

from hilt import paths
from hilt.cli.starting import starting_line


def tui(
    identifier: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="A run or a campaign; the running or else the newest one unless given."),
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Serve it to a browser on this machine.")] = False,
    port: Annotated[int, typer.Option(help="Of the page, with --web.")] = 8000,
) -> None:
    """Watch and steer runs and campaigns in the terminal; closing it stops nothing."""
    if web:
        from hilt.tui.web import serve

        serve(identifier, port)
        return
    from hilt.tui import run as run_tui

    run_tui(paths.home(), identifier, starting_line.end)
