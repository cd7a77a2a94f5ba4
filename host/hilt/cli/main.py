"""`hilt`: the command line, and the exit code of each error."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from hilt.cli import exit_codes
from hilt.cli.commands import LazyGroup
from hilt.cli.interrupts import interrupts
from hilt.cli.narrow_encoding import allow_any_character
from hilt.cli.plain_text import plain_output

_ADVICE = "`hilt --help` and `hilt COMMAND --help` say how"

application = typer.Typer(
    name="hilt",
    help="Find the fastest schedules for a VTA accelerator by trying them on the board.\n\n"
    "First: `hilt tune resnet18.C5`, which needs no board: virtual:pynq is one.",
    epilog=exit_codes.HELP,
    no_args_is_help=True,
    cls=LazyGroup,
    pretty_exceptions_enable=False,
)


@application.callback(invoke_without_command=True)
def hilt(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Find the fastest schedules for a VTA accelerator by trying them on the board."""
    if version:
        from importlib import metadata

        typer.echo(f"hilt {metadata.version('hilt')}")
        raise typer.Exit


def main() -> None:
    """Run the command line and exit: see hilt.cli.exit_codes."""
    interrupts.begin()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started us (`hilt runs >&-`), who wants none of it
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115  # for good
        allow_any_character(getattr(sys, name))
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # `hilt best --json | head`: the interpreter's own flush at exit must not fail too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code. Every error is one line on standard error."""
    try:
        # The help is styled by Typer, and nothing in it comes from elsewhere.
        filtered = nullcontext() if not arguments or "--help" in arguments else plain_output()
        with filtered:
            return application(arguments, prog_name="hilt", standalone_mode=False) or 0
    except (typer.Abort, KeyboardInterrupt):
        return exit_codes.Exit.INTERRUPTED
    except SystemExit as ending:
        if isinstance(ending.__context__, BrokenPipeError):  # `hilt runs | head`; the 1 of Typer is a result here
            return exit_codes.Exit.OK
        raise
    except Exception as error:
        if hasattr(error, "format_message"):  # an error in the command line itself
            if message := _usage_words(error):  # a group without a command has printed its help
                exit_codes.say(message)
            return exit_codes.Exit.BAD_INPUT
        return exit_codes.report_error(error)
    finally:
        interrupts.end()


def _usage_words(error: Any) -> str:
    """Return the words of an error in the command line: hilt's own as they are, the parser's with an advice."""
    if isinstance(error, typer.BadParameter) and error.param is None and not error.param_hint:
        return " ".join(error.message.split())
    message = " ".join(error.format_message().split()).rstrip(".")
    return message if not message or message.endswith("?") else f"{message}; {_ADVICE}"
