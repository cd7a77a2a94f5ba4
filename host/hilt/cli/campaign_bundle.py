"""The end of a quantised model's campaign: the bundle of its schedules, run and verified on the board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from hilt.cli.compile import Compiled
    from hilt.network.board_run import Inferences
    from hilt.network.graph import Graph

NAME = "network.hilt"


def finish_with_bundle(campaign: str, model: Path, board: str, folder: Path, *, quiet: bool = False) -> None:
    """Compile a model with a campaign's schedules, write the bundle to a folder, run one verified inference.

    Print the network's latency with the campaign's fallback schedules and with its best ones. A model that is not
    quantised has no bundle; one line reports that. All of it goes to standard error if `quiet`. Raises the errors
    of compiling and running.
    """
    from hilt.cli.compile import schedules_of
    from hilt.network.board_run import target_of
    from hilt.network.bundle import write_bundle
    from hilt.network.compile import compile_network
    from hilt.network.graph import GraphError
    from hilt.network.onnx_graph import OnnxError
    from hilt.network.onnx_import import import_model

    try:
        graph = import_model(model)
    except (OnnxError, GraphError) as error:
        typer.echo(f"no bundle: {error}", err=quiet)
        return
    target = target_of(board)
    before = compile_network(graph, target, schedules_of(campaign, fallback=True))
    after = compile_network(graph, target, schedules_of(campaign))
    path = folder / NAME
    write_bundle(path, after.data)
    typer.echo(_latencies(graph, board, before, after), err=quiet)
    typer.echo(f"{path}: `hilt run {path} --board {board} --input x.npy` runs it", err=quiet)


def _latencies(graph: Graph, board: str, before: Compiled, after: Compiled) -> str:
    """Run both bundles with random inputs, verify every tensor of the second, and return their latencies as a line."""
    from hilt.cli.run_network import inputs_for, tell
    from hilt.network.board_run import BoardRunner
    from hilt.network.profile import profile
    from hilt.network.reference import evaluate
    from hilt.network.verify import compare
    from hilt_runtime import read_bundle
    from hilt_runtime.arrays import encode_arrays

    bundles = [read_bundle(compiled.data, graph.name) for compiled in (before, after)]
    inputs = inputs_for(bundles[0], None)
    answers: list[Inferences] = []
    with BoardRunner(board, tell) as runner:
        for bundle, compiled in zip(bundles, (before, after), strict=True):
            answers.append(runner.run(bundle, compiled.data, encode_arrays(inputs, {}), keep=True))
    verified = compare(answers[1].arrays, evaluate(graph, inputs))
    simulated = board.startswith("virtual:")
    first, second = (
        profile(bundle.manifest, answer.runs, simulated) for bundle, answer in zip(bundles, answers, strict=True)
    )
    return (
        f"{graph.name} on {board}, one inference: VTA {first.vta:,.1f} µs with the fallback schedules, "
        f"{second.vta:,.1f} µs with the best ones ({first.vta / second.vta:.2f} times as fast), "
        f"{100 * second.utilisation:.1f}% of its peak; the processor {second.processor:,.1f} µs; "
        f"verified: {verified.tensors} tensors, {verified.elements:,} elements equal to the integer reference"
    )
