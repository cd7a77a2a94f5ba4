"""`hilt explain`: one configuration in depth, without running it."""

from __future__ import annotations

from typing import Annotated

import typer

from hilt.cli.configuration import configuration_of, memory_of_board
from hilt.cli.formatting import print_json
from hilt.cli.space import orders_of, space_of
from hilt.cli.work import CommandWork


def explain(
    workload: Annotated[str, typer.Argument(help="One layer, as for `hilt tune`, or model.onnx:NODE.")],
    configuration: Annotated[
        list[str], typer.Argument(metavar="CONFIG", help="An index, or knobs: tile_h=7 tile_w=14 ... (or with commas).")
    ],
    board: Annotated[str, typer.Option(help="Whose accelerator: a board of `hilt boards`.")] = "virtual:pynq",
    kind: Annotated[str, typer.Option("--space", help="Where the configuration is: autotvm, ml2 or rows.")] = "autotvm",
    orders: Annotated[int, typer.Option(help="Loop orders of the autotvm space: 4, or 1, as TVM.")] = 4,
    assembly: Annotated[bool, typer.Option("--asm", help="Disassemble the program.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain one configuration: loop nest, buffers, instructions, bytes, verdict and predicted cycles."""
    from hilt.cli.model_layers import workload_of
    from hilt.measure import describe_board
    from hilt.report.explanation import explain as explain_configuration
    from hilt.report.explanation_text import explanation_text, explanation_values

    described = workload_of(workload)
    accelerator = describe_board(board).accelerator
    space = space_of(described, accelerator, kind, orders_of(orders))
    chosen = configuration_of(configuration, space)
    with CommandWork("timing the program by the twin"):
        explained = explain_configuration(described, space, chosen, accelerator, memory_of_board(board))
    if as_json:
        print_json(explanation_values(explained, assembly=assembly), "explanation")
    else:
        typer.echo(explanation_text(explained, assembly=assembly))
