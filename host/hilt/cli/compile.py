"""`hilt compile`: from a quantised ONNX model to one file that a board runs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilt.cli import tables
from hilt.cli.files import check_folder
from hilt.cli.formatting import print_json
from hilt.cli.input_options import Shapes, Values, read_shapes, read_values
from hilt.cli.prose import say_text
from hilt.cli.work import CommandWork
from hilt.run_choices import Aim

_ALTERNATIVES = 4
"""Schedules of a layer, all within 5 % of its best, among which the layer's neighbours decide."""

if TYPE_CHECKING:
    from hilt.network.compile import Compiled as Compiled
    from hilt.network.graph import Graph
    from hilt.network.partition import Tuned


def compile_model(
    model: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="A quantised model; `hilt quantize` makes one.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.hilt", help="The bundle to write.")],
    board: Annotated[str, typer.Option(help="The board that it is for.")] = "virtual:pynq",
    campaign: Annotated[
        str | None,
        typer.Option("--from", metavar="ID|FILE", help="Take the schedules of this campaign or schedule.json."),
    ] = None,
    aim: Annotated[
        Aim | None,
        typer.Option(
            "--for",
            help="Where a board has batch lanes: bands of one image in them, or the model's images. "
            "Without: bands where the board has them and the model has one image.",
        ),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the board's processor first; kept for later compilations.")
    ] = False,
    shape: Shapes = None,
    value: Values = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compile a network for a board: the parts on VTA, with their schedules, and the parts on the processor."""
    from hilt.atomic_write import atomic_write_bytes

    check_folder(output)
    fixed = read_shapes(shape), read_values(value)
    with CommandWork(f"reading {model}", command=f"compile {model.name}") as work:
        from hilt.network.board_run import target_of
        from hilt.network.compile import compile_network
        from hilt.network.gate import check_bundle
        from hilt.network.onnx_import import import_model
        from hilt.network.onnx_simplify import read_fixed
        from hilt.network.target import aimed

        graph = import_model(model, *fixed)
        if measure:
            work.begin("measuring the board's processor")
            _measure(board, work)
        target = aimed(target_of(board), graph, aim)
        tuned = {} if campaign is None else _tuned(campaign)
        compiled = compile_network(graph, target, tuned, work.begin, on_node=work.counter("placing", "nodes"))
        if find_spec("onnxruntime") is None:
            say_text("not compared with ONNX Runtime, which is not installed (`pip install hilt[networks]`)", err=True)
        else:
            work.begin("comparing with ONNX Runtime")
            check_bundle(compiled.data, graph.name, read_fixed(model, *fixed))
    atomic_write_bytes(output, compiled.data)
    if as_json:
        keys = ("name", "target", "memory", "layers", "placements")
        print_json({key: compiled.manifest[key] for key in keys}, "bundle")
        return
    print_compiled(compiled, graph)
    say_text(f"{output}: {len(compiled.data):,} bytes; `hilt run {output} --board {board} --input x.npy` runs it")


def _tuned(source: str) -> Tuned:
    """Return the knobs of a schedule file or of a campaign, by shape."""
    from hilt.report.schedule_file import read_schedule
    from hilt.schedule import convolution

    if not Path(source).is_file():
        return schedules_of(source)
    return {convolution(layer).schedule_shape: [knobs] for layer, knobs in read_schedule(Path(source)).items()}


def _measure(board: str, work: CommandWork) -> None:
    from hilt.cli.run_network import telling
    from hilt.network.board_run import BoardRunner
    from hilt.network.processor_speed import measure_processor

    with BoardRunner(board, telling(work)) as runner:
        speed = measure_processor(runner)
    say_text(f"the processor, {speed.source}: {speed.slower:.2f} times the model of a {speed.core.name}", err=True)


def schedules_of(identifier: str) -> Tuned:
    """Return the best knobs of a campaign's layers by shape. Raises UnknownRunError."""
    from hilt import paths
    from hilt.campaign import launch
    from hilt.campaign.network_bundle import tuned_schedules
    from hilt.store import Store, database_path

    with Store(database_path(paths.home())) as store:
        return tuned_schedules(store, launch.find(store, identifier), most=_ALTERNATIVES)


def print_compiled(compiled: Compiled, graph: Graph) -> None:
    """Print each node's place and the reason, and the predicted latency of the network."""
    manifest: dict[str, Any] = compiled.manifest
    layers = {layer["name"]: layer for layer in manifest["layers"]}
    peak = manifest["target"]["macs_per_cycle"]
    table = tables.table("node", "runs on", ">cycles", ">MAC use", "schedule", "why")
    for placement in manifest["placements"]:
        layer = layers.get(placement["node"])
        cells = (
            ("", "", "")
            if layer is None
            else (
                f"{layer['cycles']:,}",
                f"{100 * layer['macs'] / (layer['cycles'] * peak):.1f}%" if layer["macs"] else "-",
                layer["schedule"],
            )
        )
        table.add_row(f"{placement['node']} ({placement['op']})", placement["where"], *cells, placement["reason"])
    tables.console().print(table)
    for line in _sums(manifest, graph):
        say_text(line)


def _sums(manifest: dict[str, Any], graph: Graph) -> list[str]:
    from hilt.network.core_speed import node_work

    clock, memory = manifest["target"]["clock_hz"], manifest["memory"]
    cycles = sum(program["cycles"] for program in manifest["programs"])
    layers = {layer["name"] for layer in manifest["layers"]}
    work = {node.name: node_work(graph, node).macs for node in graph.nodes}
    on_vta = sum(macs for name, macs in work.items() if name in layers)
    searched = [layer["name"] for layer in manifest["layers"] if layer["schedule"] == "twin"]
    lines = [
        f"{manifest['name']}: {len(manifest['layers'])} layers on VTA in {len(manifest['programs'])} programs, "
        f"{100 * on_vta / max(sum(work.values()), 1):.1f}% of the multiply-accumulates; "
        f"{cycles:,} cycles = {cycles * 1e6 / clock:,.1f} µs by the twin"
    ]
    if searched:
        lines.append(
            f"{len(searched)} of {len(manifest['layers'])} layers have no tuned schedule; they have the best of a "
            "search with the twin (`hilt campaign` tunes them on the board, `--from` takes its result)"
        )
    total = memory["constants"] + memory["activations"]
    lines.append(f"contiguous memory: {total:,} bytes ({memory['constants']:,} of weights and micro-ops)")
    return lines
