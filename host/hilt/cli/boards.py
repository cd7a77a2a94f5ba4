"""`hilt boards`: list boards; add, check, switch, read the log of, and release one."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilt.cli import tables
from hilt.cli.exit_codes import Exit
from hilt.cli.formatting import print_json
from hilt.cli.plain_text import plain
from hilt.cli.prose import say_text
from hilt.cli.tables import column
from hilt.cli.work import CommandWork, awaited

if TYPE_CHECKING:
    from hilt.measure import BoardDescription
    from hilt.measure.board_description import BoardTarget

application = typer.Typer(help="List boards; add, check, switch and release them.", invoke_without_command=True)
_NAME = Annotated[str, typer.Argument(help="A board of `hilt boards`.")]
_ADDRESS = re.compile(
    r"(?P<user>.+)@(?:\[(?P<bracketed>[^][]+)\]|(?P<host>[^][:]+|[^][]+:[^][]*:[^][]*|::[^][]*))(?::(?P<port>[0-9]+))?"
)
"""USER@HOST[:PORT]; a host with two colons and more is an IPv6 address without a port."""


class Switch(StrEnum):
    ON = "on"
    OFF = "off"
    CYCLE = "cycle"


@application.callback()
def boards(
    context: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """List boards: the real ones of boards.toml, and the virtual ones."""
    if context.invoked_subcommand is not None:
        return
    from hilt.link.errors import UnknownBoardError
    from hilt.link.labgrid_place import PlaceError
    from hilt.link.quarantine import quarantined
    from hilt.measure import describe_board
    from hilt.measure.board_description import board_names
    from hilt.virtual.errors import UnknownBoardModelError

    apart = quarantined()
    names = board_names()
    described = [describe_board(name) for name in names]
    for name in sorted(apart.keys() - set(names)):  # a virtual board's, or one that boards.toml has no more
        with contextlib.suppress(UnknownBoardError, UnknownBoardModelError, PlaceError):
            described.append(describe_board(name))
    if as_json:
        reasons = {name: why.reason for name, why in apart.items()}
        print_json([_values(board, reasons.get(board.name)) for board in described], "boards")
        return
    tables.console().print(_table(described))
    for name, why in apart.items():
        say_text(f"{name} is quarantined: {why.reason}; see to it, then `hilt boards release {name}`")


def _values(board: BoardDescription, quarantined: str | None) -> dict[str, Any]:
    return {
        "board": board.name,
        "parameters": board.accelerator.parameters.name,
        "isa": str(board.accelerator.isa),
        "bus_bits": board.accelerator.bus_bits,
        "read_ports": board.accelerator.read_ports,
        "hazards": board.accelerator.hazards,
        "clock_hz": board.clock_hz,
        "bitstream": board.bitstream,
        "deterministic": board.deterministic,
        "quarantined": quarantined,
    }


def _table(described: Sequence[BoardDescription]) -> tables.Table:
    table = tables.table(
        "board",
        column("parameters", drop=3),
        column("ISA", drop=1),
        column(">bus", drop=2),
        ">clock",
        column("hazards", drop=4),
        "bitstream",
    )
    for board in described:
        table.add_row(
            board.name,
            board.accelerator.parameters.name,
            str(board.accelerator.isa),
            board.accelerator.bus,
            f"{board.clock_hz / 1e6:g} MHz",
            board.accelerator.hazards,
            board.bitstream[:12],
        )
    return table


@application.command()
def add(
    name: Annotated[str, typer.Argument(help="Its name.")],
    address: Annotated[str, typer.Argument(metavar="USER@HOST[:PORT]", help="As for ssh.")],
    bitstream: Annotated[str, typer.Option(help="A name of `hilt bitstream list`.")],
    key: Annotated[
        str | None, typer.Option(help="A private key file; unless given, the SSH agent's keys and those of ~/.ssh.")
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="The Python on the board that imports pynq; that of PYNQ images unless given.")
    ] = None,
    sudo: Annotated[bool, typer.Option(help="Run the agent as root, which registers and memory need.")] = True,
    service: Annotated[bool, typer.Option("--service", help="Have systemd start the agent with the board.")] = False,
) -> None:
    """Add a real board: shows its key's fingerprint, and keeps the key when you say that it is the board's."""
    from hilt import bitstreams
    from hilt.cli.host_keys import confirm_host_key
    from hilt.link.board_registry import add_board, remove_board

    bitstreams.find(bitstream)
    values: dict[str, Any] = {**_address(address), "bitstream": bitstream}
    values |= {"key": key} if key else {}
    values |= {"python": python} if python else {}
    values |= {} if sudo else {"sudo": False}
    path = add_board(name, values)
    try:
        confirm_host_key(name)
    except BaseException:
        remove_board(name)  # nothing half-made: adding it again asks again
        raise
    say_text(f"{name} is in {path}; `hilt boards check {name}` says whether it is ready")
    if service:
        _on_board(name, "install-service")


@application.command("new-virtual")
def new_virtual(
    name: Annotated[str, typer.Argument(help="Call it virtual:NAME.")],
    parameters: Annotated[str, typer.Option(help="A TVM parameter file (.json), or a name such as pynq.")] = "pynq",
    base: Annotated[str, typer.Option(help="The board model whose other values it takes.")] = "pynq",
    bus_bits: Annotated[int | None, typer.Option(help="Bits of the memory bus: 64 or 128.")] = None,
    clock_mhz: Annotated[float | None, typer.Option(help="Clock, MHz.")] = None,
    read_latency: Annotated[int | None, typer.Option(help="Cycles from a read to its first data.")] = None,
    write_latency: Annotated[int | None, typer.Option(help="Cycles from a write to its acknowledgement.")] = None,
    bytes_per_cycle: Annotated[float | None, typer.Option(help="Most that the memory moves in a cycle.")] = None,
    jitter: Annotated[int | None, typer.Option(help="Most cycles that a memory access is late, at random.")] = None,
) -> None:
    """Add a virtual board with your own VTA parameters, bus, clock and memory."""
    from hilt.toml_text import toml_value
    from hilt.virtual import own_models
    from hilt.virtual.board_model import BOARD_MODELS

    place = str(Path(parameters).resolve()) if parameters.endswith(".json") else parameters
    values: dict[str, Any] = {"parameters": place, "base": base, "bus_bits": bus_bits, "clock_mhz": clock_mhz}
    values |= {"read_latency": read_latency, "write_latency": write_latency, "bytes_per_cycle": bytes_per_cycle}
    values |= {"jitter": jitter}
    lines = [f"{key} = {toml_value(value)}" for key, value in values.items() if value is not None]
    path = own_models.keep(name, "\n".join(lines) + "\n", BOARD_MODELS)
    say_text(f"virtual:{name} is in {path}; `hilt tune resnet18.C5 --board virtual:{name}` tunes on it")


@application.command()
def check(name: _NAME, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Check a board from SSH to the canary; each failure comes with its cause and the next step."""
    from dataclasses import asdict

    from hilt.cli.host_keys import confirm_host_key
    from hilt.measure.board_description import resolve
    from hilt.measure.doctor import check_board

    confirm_host_key(name)
    target = resolve(name)
    findings = []
    try:
        _prepare(target)
        for finding in awaited(check_board(target), f"checking {name}"):
            findings.append(finding)
            if not as_json:
                say_text(f"{'ok  ' if finding.well else 'FAIL'}  {finding.what}: {finding.found}")
                if not finding.well:
                    say_text(f"      {finding.mend}")
    finally:
        target.release()
    if as_json:
        print_json([asdict(finding) for finding in findings], "board_check")
    if not all(finding.well for finding in findings):
        raise typer.Exit(Exit.BOARD)


@application.command()
def selftest(
    name: _NAME,
    minutes: Annotated[float, typer.Option(min=0.0, help="For the drift of latencies that may move.")] = 5.0,
    layers: Annotated[int, typer.Option(min=0, max=10, help="Layers of ResNet-18 to run.")] = 10,
    output: Annotated[Path | None, typer.Option(help="Write the page here too; it holds no secrets.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a new board: buffers, hazards, memory, clock, drift, layers; ends with a page to attach to a report."""
    from dataclasses import asdict

    from hilt.atomic_write import atomic_write
    from hilt.cli.host_keys import confirm_host_key
    from hilt.link.board_registry import write_memory
    from hilt.measure.board_description import resolve
    from hilt.measure.selftest import LAYERS, Check, MemoryFit, SelftestSettings, page_text
    from hilt.measure.selftest import selftest as test_board

    confirm_host_key(name)
    target = resolve(name)
    checks: list[Check] = []

    def keep(fit: MemoryFit) -> None:
        if not target.virtual:  # whose memory is known
            path = write_memory(name, fit.values())
            say_text(f"      the memory that was found is in {path}", err=True)

    try:
        _prepare(target)
        for check in awaited(test_board(target, SelftestSettings(minutes, LAYERS[:layers]), keep), f"testing {name}"):
            checks.append(check)
            if not as_json:
                say_text(f"{'ok  ' if check.well else 'FAIL'}  {check.name}: {check.text}")
        page = page_text(target, checks)
    finally:
        target.release()
    if output is not None:
        with atomic_write(output) as file:
            file.write(page)
    if as_json:
        print_json([asdict(check) for check in checks], "selftest")
    else:
        typer.echo(f"\n{page}")
    if not all(check.well for check in checks):
        raise typer.Exit(Exit.BOARD)


@application.command()
def power(switch: Annotated[Switch, typer.Argument(help="on, off or cycle.")], name: _NAME) -> None:
    """Switch a board's power: on, off or cycle."""
    from hilt.link.errors import PowerError
    from hilt.measure.board_description import resolve

    target = resolve(name)
    driver = target.power()
    if driver is None:
        raise PowerError(f"board {name} has no power switch: give it a table `power` in boards.toml (docs/boards.md)")
    with CommandWork(f"switching {name}: power {switch.value}"):
        getattr(driver, switch.value)()
    say_text(f"{name}: power {switch.value}")


@application.command()
def logs(name: _NAME) -> None:
    """Print the end of the log of a board's agent."""
    _on_board(name, "log")


@application.command()
def release(name: _NAME) -> None:
    """Let a board be used again that is quarantined, or whose holder has ended. A holder that is alive keeps it."""
    from hilt.link.quarantine import release as release_board

    if release_board(name):
        say_text(f"{name} is released")
    elif (holder := _end_lease(name)) is not None:
        say_text(f"{name} is released: {holder}, which held it, has ended")
    else:
        say_text(f"{name} is free: it was not quarantined, and nothing held it")


def _end_lease(name: str) -> str | None:
    """Return the client that had ended and held the board, if one did. Raises BoardBusyError, LinkError."""
    from hilt.measure.board_description import resolve
    from hilt.measure.lease import end_lease

    target = resolve(name)
    try:
        _prepare(target)
        with CommandWork(f"asking {name} for its holder"):
            return end_lease(target)
    finally:
        target.release()


def _prepare(target: BoardTarget) -> None:
    """Start a virtual board; long phases have a line that stays."""
    with CommandWork(f"starting {target.description.name}") as work:

        def tell(text: str) -> None:
            say_text(text, err=True)
            work.begin(text)

        target.prepare(tell)


def _on_board(name: str, *words: str) -> None:
    """Run a command of the agent on the board and print its output. Raises LinkError."""
    from hilt.link.agent import run_agent
    from hilt.link.deadline import Deadline
    from hilt.measure.board_description import resolve

    target = resolve(name)
    try:
        with CommandWork(f"asking {name}: {' '.join(words)}"):
            text = run_agent(target.endpoint(), words, Deadline(60.0)).rstrip()
        typer.echo(plain(text))
    finally:
        target.release()


def _address(text: str) -> dict[str, Any]:
    """Return the user, the host and, if it is there, the port of USER@HOST[:PORT]."""
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not USER@HOST[:PORT]; an IPv6 address with a port stands in brackets")
    host = {"host": found["bracketed"] or found["host"], "user": found["user"]}
    return host if found["port"] is None else {**host, "port": int(found["port"])}
