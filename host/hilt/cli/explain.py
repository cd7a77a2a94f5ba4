"""`hilt explain`: one configuration in depth, without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hilt.cli.words import print_json

if TYPE_CHECKING:
    from hilt.simulator.device import MemoryModel


def explain(
    workload: Annotated[str, typer.Argument(help="As for `hilt tune`.")],
    configuration: Annotated[
        list[str], typer.Argument(metavar="CONFIG", help="An index, or knobs: tile_h=7 tile_w=14 ... (or with commas).")
    ],
    board: Annotated[str, typer.Option(help="Whose accelerator: a board of `hilt boards`.")] = "virtual:pynq",
    assembly: Annotated[bool, typer.Option("--asm", help="Disassemble the program.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Loop nest, buffers, instructions, bytes, verdict and the twin's prediction of one configuration."""
    from hilt.measure import describe_board
    from hilt.report.explanation import explain as explain_configuration
    from hilt.report.explanation_text import explanation_text, explanation_values
    from hilt.schedule import load_workload, space_for

    described = load_workload(workload)
    accelerator = describe_board(board).accelerator
    single = {knob.name: knob.values[0] for knob in space_for(described, accelerator).knobs if len(knob.values) == 1}
    explained = explain_configuration(described, _configuration(configuration, single), accelerator, _memory(board))
    if as_json:
        print_json(explanation_values(explained, assembly=assembly))
    else:
        typer.echo(explanation_text(explained, assembly=assembly))


def _configuration(words: list[str], given: dict[str, int]) -> int | dict[str, int]:
    """An index, or knob values by name; those of `given` need not be named."""
    parts = [part for word in words for part in word.replace(",", " ").split()]
    if len(parts) == 1 and parts[0].isdecimal():
        return int(parts[0])
    knobs = dict(given)
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals or not value.isdecimal():
            raise typer.BadParameter(f"{part!r} is neither an index nor KNOB=NUMBER; `hilt space` lists the knobs")
        knobs[name] = int(value)
    return knobs


def _memory(board: str) -> MemoryModel:
    """A virtual board's memory; a real board's is taken to be that of a Zynq-7000, which is what MemoryModel is."""
    from hilt.simulator.device import MemoryModel
    from hilt.virtual.names import PREFIX, parse_virtual_name

    if not board.startswith(PREFIX):
        return MemoryModel()
    personality, _ = parse_virtual_name(board)
    return MemoryModel(
        read_latency=personality.read_latency,
        write_latency=personality.write_latency,
        bandwidth=(personality.bandwidth_numerator, personality.bandwidth_denominator),
        jitter=personality.jitter,
        seed=personality.seed,
    )
