"""The figures of the README: `python -m tests.bench` (or `make bench`) measures and prints them."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from typing import TextIO

from rich.console import Console
from rich.table import Table

from tests.bench import (
    best_schedules,
    calibration,
    clock,
    engine,
    fleet,
    golden,
    roofline,
    rtl,
    scale,
    schedule,
    trials,
    tui,
    tuner,
    twin,
)
from tests.bench.figure import Sizes, Topic

TOPICS: dict[str, Topic] = {
    module.TOPIC.name: module.TOPIC
    for module in (
        golden,
        rtl,
        twin,
        schedule,
        roofline,
        clock,
        calibration,
        best_schedules,
        trials,
        fleet,
        tuner,
        scale,
        tui,
        engine,
    )
}
_COLUMNS = ("measured", "workload", "seed", "repeats", "value", "goal")


def main() -> None:
    arguments = _arguments()
    if arguments.list:
        for topic in TOPICS.values():
            print(f"{topic.name:14} {topic.title}")
        return
    sizes = Sizes(**{field.name: getattr(arguments, field.name) for field in fields(Sizes)})
    console = console_for(sys.stdout)
    for name in arguments.names or TOPICS:
        show(console, TOPICS[name], sizes)


def console_for(file: TextIO) -> Console:
    """Return the console for a file, 200 columns wide if the file is no terminal, so that no line is cut.

    Text in brackets, such as the name of an extra, is not markup.
    """
    return Console(file=file, width=None if file.isatty() else 200, markup=False)


def show(console: Console, topic: Topic, sizes: Sizes) -> None:
    table = Table(*_COLUMNS, title=f"{topic.name}: {topic.title}", title_justify="left", box=None)
    with console.status(f"measuring {topic.name} ..."):
        for figure in topic.figures(sizes):
            table.add_row(*(getattr(figure, column) for column in _COLUMNS))
    console.print(table)
    console.print()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TOPICS)}; without any, all of them")
    parser.add_argument("--list", action="store_true", help="list the measurements")
    for field in fields(Sizes):
        parser.add_argument(
            f"--{field.name.replace('_', '-')}", type=int, default=field.default, help="default: %(default)s"
        )
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in TOPICS:
            parser.error(f"no topic is called {name!r}; there are {', '.join(TOPICS)}")
    return arguments


if __name__ == "__main__":
    main()
