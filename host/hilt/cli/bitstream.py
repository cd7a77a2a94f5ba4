"""`hilt bitstream list|verify|add|fetch`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from hilt import bitstreams
from hilt.bitstreams import Bitstream
from hilt.cli.files import in_text
from hilt.cli.formatting import print_json
from hilt.cli.prose import say_text
from hilt.cli.tables import column, console, table
from hilt.cli.work import CommandWork
from hilt.vta.accelerator import bus_text

application = typer.Typer(help="Bitstreams: list, verify, add, fetch.", no_args_is_help=True)
_NAME = Annotated[str, typer.Argument(help="A name of `hilt bitstream list`.")]
_MOST_MHZ = 10_000
_FILE = Annotated[Path, typer.Argument(help="A .bit file.", exists=True, dir_okay=False, readable=True)]


@application.command("list")
def list_entries(as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False) -> None:
    """The bitstreams that hilt knows, and which of them are here."""
    entries = bitstreams.load_manifest().values()
    if as_json:
        print_json([dataclasses.asdict(entry) | {"here": _is_here(entry)} for entry in entries], "bitstreams")
        return
    listing = table(
        "name",
        column("board", drop=2),
        column("part", drop=5),
        column("parameters", drop=6),
        column("ISA", drop=3),
        column(">bus", drop=4),
        column(">clock", drop=1),
        column("hazards", drop=7),
        column("file"),
    )
    for entry in entries:
        where = "here" if _is_here(entry) else "to fetch" if entry.source else "to build"
        bus = bus_text(entry.bus_bits, entry.read_ports)
        hardware = (entry.isa, bus, f"{entry.clock_hz / 1e6:g} MHz", entry.hazards)
        listing.add_row(entry.name, entry.board, entry.part, entry.parameters, *hardware, where)
    console().print(listing)


@application.command()
def verify(name: _NAME, file: _FILE) -> None:
    """Check that a .bit file is the named bitstream: header, part, length and sha256."""
    entry = bitstreams.find(name)
    bitfile, digest = bitstreams.verify(entry, file)
    say_text(f"{file.name}: {bitfile.name} for {bitfile.part}, built {bitfile.date} {bitfile.time}, sha256 {digest}")
    say_text("it is the manifest's" if entry.sha256 else "the manifest has no sha256 for it: part and length agree")


@application.command()
def add(
    file: _FILE,
    like: Annotated[str, typer.Option("--like", help="The entry it is a build of: board, part, registers.")],
    name: Annotated[str, typer.Option(help="Its own name; that of --like when left out.")] = "",
    parameters: Annotated[str, typer.Option(help="VTA parameter file, where they are not those of --like.")] = "",
    clock_mhz: Annotated[float, typer.Option(help="Clock, where it is not that of --like.")] = 0.0,
) -> None:
    """Check a .bit file and keep it under a name."""
    entry = bitstreams.find(like)
    changes: dict[str, object] = {}
    if name and name != like:
        changes |= {"name": name, "sha256": "", "source": "", "built": f"added from {in_text(file.name)}"}
    if parameters:
        changes["parameters"] = parameters
    if clock_mhz:
        if not 0 < clock_mhz <= _MOST_MHZ:
            raise typer.BadParameter(f"--clock-mhz is {clock_mhz:g}; it must be above 0 and at most {_MOST_MHZ:,}")
        changes["clock_hz"] = round(clock_mhz * 1e6)
    wanted = dataclasses.replace(entry, **changes)  # type: ignore[arg-type]
    wanted.accelerator()
    known = bitstreams.add(file, wanted)
    say_text(f"{known.name}: kept, sha256 {known.sha256}")


@application.command()
def fetch(name: _NAME) -> None:
    """Download a bitstream from its source, check it and keep it."""
    with CommandWork(f"downloading {name}"):
        known = bitstreams.fetch(bitstreams.find(name))
    say_text(f"{known.name}: fetched, sha256 {known.sha256}")


def _is_here(entry: Bitstream) -> bool:
    try:
        bitstreams.path_of(entry)
    except bitstreams.BitstreamError:
        return False
    return True
