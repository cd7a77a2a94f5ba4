"""`hilt`: the commands, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from hilt import paths
from hilt.cli import bitstream, boards, dataset, exit_codes, glimpse, log
from hilt.cli.bench import bench
from hilt.cli.campaign import campaign, campaigns
from hilt.cli.explain import explain
from hilt.cli.report import report
from hilt.cli.runs import best, runs, show
from hilt.cli.sim import sim
from hilt.cli.space import space
from hilt.cli.steering import pause, resume, skip, stop
from hilt.cli.trace import trace
from hilt.cli.tune import tune
from hilt.cli.tuners import tuners

application = typer.Typer(
    name="hilt",
    help="Finds the fastest schedules for a VTA accelerator by trying them on the board.\n\n"
    "First: `hilt tune resnet18.C5`, which needs no board: virtual:pynq is one.",
    epilog=exit_codes.HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@application.callback(invoke_without_command=True)
def hilt(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Finds the fastest schedules for a VTA accelerator by trying them on the board."""
    if version:
        typer.echo(f"hilt {metadata.version('hilt')}")
        raise typer.Exit


def tui(
    run: Annotated[
        str | None, typer.Argument(help="A run's id; the running or else the newest one unless given.")
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Serve it to a browser on this machine.")] = False,
    port: Annotated[int, typer.Option(help="Of the page, with --web.")] = 8000,
) -> None:
    """Watch and steer runs and campaigns in the terminal; closing it stops nothing."""
    from hilt.tui import run as run_tui
    from hilt.tui.web import serve

    if web:
        serve(run, port)
    else:
        run_tui(paths.home(), run)


_PANELS = {
    "Tuning": (tune, campaign, pause, resume, stop, skip, tui),
    "Results": (runs, campaigns, show, best, report),
    "Schedules and hardware": (space, explain, trace, sim),
    "Tuners and experiments": (tuners, bench),
}
for panel, listed in _PANELS.items():
    for command in listed:
        application.command(rich_help_panel=panel)(command)
application.add_typer(log.application, name="log", rich_help_panel="Results")
application.add_typer(boards.application, name="boards", rich_help_panel="Boards")
application.add_typer(bitstream.application, name="bitstream", rich_help_panel="Boards")
application.add_typer(dataset.application, name="dataset", rich_help_panel="Tuners and experiments")
application.add_typer(glimpse.application, name="glimpse", rich_help_panel="Tuners and experiments")


def main() -> None:
    """Runs the command line and exits: see hilt.cli.exit_codes."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started us (`hilt runs >&-`), who wants none of it
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115  # for good
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """One command. Every error is one line on standard error."""
    try:
        return application(arguments, prog_name="hilt", standalone_mode=False) or 0
    except (typer.Abort, KeyboardInterrupt):
        return exit_codes.Exit.INTERRUPTED
    except SystemExit as ending:
        if isinstance(ending.__context__, BrokenPipeError):  # `hilt runs | head`; the 1 of Typer is a result here
            return exit_codes.Exit.OK
        raise
    except Exception as error:
        if hasattr(error, "format_message"):  # what is wrong with the command line itself
            words = " ".join(error.format_message().split()).rstrip(".")
            if words:  # a group without a command has printed its help
                exit_codes.say(f"{words}; `hilt --help` and `hilt COMMAND --help` say how")
            return exit_codes.Exit.BAD_INPUT
        return exit_codes.report_error(error)
