"""`hilt`: the commands, and what becomes of their errors."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Annotated

import typer

from hilt import paths
from hilt.cli import bitstream, boards, exits, glimpse, landscape, log
from hilt.cli.bench import bench
from hilt.cli.campaign import campaign, campaigns
from hilt.cli.explain import explain
from hilt.cli.history import best, runs, show
from hilt.cli.report import report
from hilt.cli.sim import sim
from hilt.cli.space import space
from hilt.cli.trace import trace
from hilt.cli.tune import resume, tune
from hilt.cli.tuners import tuners

application = typer.Typer(
    name="hilt",
    help="Finds the fastest schedules for a VTA accelerator by trying them on the board.",
    epilog=exits.HELP,
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


@application.command()
def tui(
    run: Annotated[
        str | None, typer.Argument(help="A run's id; the running or else the newest one unless given.")
    ] = None,
) -> None:
    """Watch and steer a run in the terminal; closing it stops nothing."""
    from hilt.tui import run as run_tui

    run_tui(paths.home(), run)


for command in (tune, campaign, resume, campaigns, tuners, runs, show, report, best, space, explain, trace, sim, bench):
    application.command()(command)
application.add_typer(bitstream.application, name="bitstream")
application.add_typer(boards.application, name="boards")
application.add_typer(glimpse.application, name="glimpse")
application.add_typer(log.application, name="log")
application.add_typer(landscape.application, name="landscape")


def main() -> None:
    """Runs the command line and exits: see hilt.cli.exits."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """One command. Every error is one line on standard error."""
    try:
        return application(arguments, prog_name="hilt", standalone_mode=False) or 0
    except (typer.Abort, KeyboardInterrupt):
        return exits.Exit.INTERRUPTED
    except BrokenPipeError:  # `hilt runs | head`
        return exits.Exit.OK
    except Exception as error:
        if hasattr(error, "format_message"):  # what is wrong with the command line itself
            words = " ".join(error.format_message().split()).rstrip(".")
            exits.say(f"{words}; `hilt --help` and `hilt COMMAND --help` say how")
            return exits.Exit.BAD_INPUT
        return exits.complain(error)
