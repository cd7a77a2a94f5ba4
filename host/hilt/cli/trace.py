"""`hilt trace`: when each instruction of one configuration is executed, and every signal while it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hilt.atomic_write import atomic_write
from hilt.cli.configuration import configuration_of, memory_of_board
from hilt.cli.files import check_folder
from hilt.cli.prose import say_text
from hilt.cli.space import orders_of, space_of
from hilt.cli.work import CommandWork

if TYPE_CHECKING:
    from hilt.schedule import Workload
    from hilt.simulator.device import MemoryModel
    from hilt.vta.accelerator import Accelerator
    from hilt.vta.program import Program


LayerName = Annotated[str, typer.Argument(help="One layer, as for `hilt tune`, or model.onnx:NODE.")]
Configuration = Annotated[
    list[str], typer.Argument(metavar="CONFIG", help="An index, or knobs: tile_h=7 tile_w=14 ... (or with commas).")
]
BoardName = Annotated[str, typer.Option(help="Whose accelerator: a board of `hilt boards`.")]
Kind = Annotated[str, typer.Option("--space", help="Where the configuration is: autotvm, ml2 or rows.")]
Orders = Annotated[int, typer.Option(help="Loop orders of the autotvm space: 4, or 1, as TVM.")]
TimelineFile = Annotated[
    Path | None, typer.Option(metavar="FILE.json", help="The stages' timeline by the twin, for ui.perfetto.dev.")
]
WavesFile = Annotated[
    Path | None, typer.Option(metavar="FILE.fst", help="Every signal of the RTL as it runs the program (slow).")
]


def trace(
    workload: LayerName,
    configuration: Configuration,
    board: BoardName = "virtual:pynq",
    kind: Kind = "autotvm",
    orders: Orders = 4,
    perfetto: TimelineFile = None,
    waves: WavesFile = None,
) -> None:
    """Write a timeline of one configuration's program, waves of it, or both."""
    from hilt.cli.model_layers import workload_of
    from hilt.measure import describe_board
    from hilt.schedule import lower

    if perfetto is None and waves is None:
        raise typer.BadParameter("nothing to write; give --perfetto FILE.json, --waves FILE.fst or both")
    if waves is not None:
        check_folder(waves)
    described = workload_of(workload)
    accelerator, memory = describe_board(board).accelerator, memory_of_board(board)
    space = space_of(described, accelerator, kind, orders_of(orders))
    chosen = configuration_of(configuration, space)
    program = lower(described, space.knobs_at(chosen) if isinstance(chosen, int) else chosen, accelerator)
    if perfetto is not None:
        _write_timeline(perfetto, f"{described.name} on {board}", program, accelerator, memory)
    if waves is not None:
        _write_waves(waves, described, program, accelerator, memory)


def _write_timeline(path: Path, title: str, program: Program, accelerator: Accelerator, memory: MemoryModel) -> None:
    from hilt.report.perfetto import stage_timeline
    from hilt.simulator.twin import Twin

    with CommandWork("timing the program by the twin") as work:
        twin = Twin(accelerator)
        fetch = int(twin.predict([program], memory)["fetch"]["busy"][0])
        timeline = stage_timeline(title, program.instructions, accelerator, twin.timeline(program, memory), fetch)
        work.begin(f"writing {path}")
        with atomic_write(path) as file:
            file.write(json.dumps(timeline) + "\n")
    say_text(f"{path}: {len(program.instructions)} instructions; open it at ui.perfetto.dev")


def _write_waves(
    path: Path, workload: Workload, program: Program, accelerator: Accelerator, memory: MemoryModel
) -> None:
    from hilt.schedule import make_tensors
    from hilt.simulator.build import build
    from hilt.simulator.program_run import run_program

    with CommandWork("compiling the RTL that writes waves, once: a minute or two") as work:
        library = build(accelerator, "rtl", "trace")
        work.begin(f"running {len(program.instructions):,} instructions")
        inputs = make_tensors(workload, accelerator, seed=1).inputs
        execution = run_program(library, program, inputs, memory=memory, waves=path).execution
    say_text(f"{path}: {execution.status.name.lower()} after {execution.cycles:,} cycles")
