"""`hilt run`: a compiled network on a board."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilt.cli import tables
from hilt.cli.bundle_text import write_page
from hilt.cli.files import check_folder
from hilt.cli.formatting import print_json
from hilt.cli.prose import say_text
from hilt.cli.run_options import Wait
from hilt.cli.work import CommandWork

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from hilt.measure.interfaces import BoardEvent, Listen
    from hilt.network.board_run import Inferences
    from hilt.network.profile import Profile
    from hilt.network.verify import Verified
    from hilt_runtime import Bundle


_INFERENCES = 2
"""Inferences without --repeat: a cold and a warm one."""


BundleFile = Annotated[Path, typer.Argument(metavar="MODEL.hilt", help="A bundle of `hilt compile`.")]
BoardName = Annotated[str, typer.Option(help="The board to run it on.")]
InputFile = Annotated[
    Path | None, typer.Option("--input", metavar="FILE.npy", help="The input; a .npz with all inputs by name.")
]
OutputFile = Annotated[
    Path | None, typer.Option("--output", metavar="FILE.npy", help="Where the output goes; .npz for several.")
]
Verify = Annotated[bool, typer.Option("--verify", help="Compare every tensor with the integer reference.")]
Profiled = Annotated[bool, typer.Option("--profile", help="Show where the time went.")]
TraceFile = Annotated[
    Path | None, typer.Option(metavar="FILE.json", help="Write a trace of the inference for ui.perfetto.dev.")
]
PageFile = Annotated[
    Path | None, typer.Option(metavar="FILE.html", help="Write a page: the graph and the inference's timeline.")
]
Repeat = Annotated[
    int,
    typer.Option(
        min=1,
        max=1 << 16,
        help="Inferences; the first is cold; from 4 on, one half is the latency, one half overlaps.",
    ),
]


def run_network(
    bundle: BundleFile,
    board: BoardName = "virtual:pynq",
    input_file: InputFile = None,
    output: OutputFile = None,
    verify: Verify = False,
    profiled: Profiled = False,
    perfetto: TraceFile = None,
    html: PageFile = None,
    repeat: Repeat = _INFERENCES,
    wait: Wait = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a compiled network on a board: one inference, verified and profiled where asked for."""
    from hilt.network.array_file import write_arrays
    from hilt.network.board_run import BoardRunner, open_bundle
    from hilt.network.graph_file import graph_of
    from hilt.network.inference_groups import run_repeatedly
    from hilt.network.kept_view import keep_view
    from hilt.network.network_view import network_view
    from hilt.network.processor_time import processor_time
    from hilt.network.profile import perfetto as trace_of
    from hilt.network.profile import profile
    from hilt.network.verified_inference import verify_inference
    from hilt_runtime.arrays import encode_arrays

    for path in filter(None, (output, perfetto, html)):
        check_folder(path)
    opened, data = open_bundle(str(bundle))
    inputs = inputs_for(opened, input_file)
    graph = graph_of(opened, data)
    with CommandWork(f"connecting to {board}", command=f"run {bundle.name}") as work:
        with BoardRunner(board, telling(work), wait=wait) as runner:
            advance = work.counter("running", "inference" if repeat == 1 else "inferences")
            answer = run_repeatedly(runner, opened, data, encode_arrays(inputs, {}), repeat, verify, advance)
        verified = verify_inference(graph, opened.manifest, inputs, answer.arrays, work) if verify else None
    if output is not None:
        write_arrays(output, {tensor["name"]: answer.arrays[tensor["name"]] for tensor in opened.outputs})
    board_time = processor_time(board, graph, opened.manifest, answer.engines)
    figures = profile(opened.manifest, answer.runs, board_time, answer.overlapped)
    view = network_view(graph, opened.manifest, figures, answer.engines) | {"board": board}
    keep_view(data, view)
    if html is not None:
        write_page(html, view)
    if perfetto is not None:
        write_json(perfetto, trace_of(opened.manifest, figures))
    shown = _Shown(opened.manifest["name"], board, figures, answer, verified)
    if as_json:
        print_json(shown.to_dict(), "inference")
    else:
        shown.print(profiled)


@dataclass(frozen=True)
class _Shown:
    """The results of a run that are printed."""

    network: str
    board: str
    figures: Profile
    answer: Inferences
    verified: Verified | None

    def to_dict(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"network": self.network, "board": self.board, "profile": self.figures.to_dict()}
        facts["engine"], facts["engines"] = self.answer.engine, dict(self.answer.engines)
        if self.verified is not None:
            facts["verified"] = asdict(self.verified)
        return facts

    def print(self, profiled: bool) -> None:
        from hilt.network.latency import latency_text, runs_text

        if profiled:
            print_profile(self.figures)
        if self.verified is not None:
            say_text(f"verified: {self.verified.text}")
        say_text(f"{self.network} on {self.board}: {latency_text(self.figures.latency)}")
        say_text(f"the processor's steps: {self.answer.engine}{_by_numpy(self.answer.engines)}")
        say_text(runs_text(self.figures.latency))


def _by_numpy(engines: Mapping[str, str]) -> str:
    """Return how many steps the native engine leaves to numpy, with the first of them, where it does."""
    left = {name: reason for name, reason in engines.items() if reason.startswith("numpy: ")}
    if not left or len(left) == len(engines):
        return ""
    name, reason = next(iter(left.items()))
    return f"; {len(left)} of {len(engines)} steps {reason} ({name})"


def inputs_for(bundle: Bundle, path: Path | None) -> dict[str, NDArray[Any]]:
    """Return the network's inputs by name, from a file, or random ones where there is none.

    Raises ArrayFileError for a file that cannot be read, BadParameter if it does not hold them.
    """
    from hilt.network.array_file import read_arrays
    from hilt.network.random_inputs import random_arrays

    wanted = bundle.inputs
    if path is None:
        say_text("no --input: the input is random (seed 0)", err=True)
        return random_arrays(wanted)
    arrays = read_arrays(path)
    if len(arrays) == len(wanted) == 1:
        arrays = {wanted[0]["name"]: next(iter(arrays.values()))}
    for tensor in wanted:
        if tensor["name"] not in arrays:
            names = ", ".join(tensor["name"] for tensor in wanted)
            raise typer.BadParameter(f"{path} has no input {tensor['name']}; the network's inputs are {names}")
        _check_input(tensor, arrays[tensor["name"]], path)
    return {tensor["name"]: arrays[tensor["name"]] for tensor in wanted}


def _check_input(tensor: Mapping[str, Any], array: NDArray[Any], path: Path) -> None:
    """Raise BadParameter unless an array has a tensor's shape and type, and no NaN."""
    import numpy as np

    if list(array.shape) != tensor["shape"] or str(array.dtype) != tensor["dtype"]:
        raise typer.BadParameter(
            f"input {tensor['name']} in {path} is {array.dtype} {tuple(array.shape)}, the network takes "
            f"{tensor['dtype']} {tuple(tensor['shape'])}"
        )
    if array.dtype.kind == "f" and (holes := int(np.isnan(array).sum())):
        raise typer.BadParameter(f"input {tensor['name']} in {path} holds NaN in {holes} of {array.size} elements")


def write_json(path: Path, value: object) -> None:
    """Write JSON, whole or not at all."""
    from hilt.atomic_write import atomic_write

    with atomic_write(path) as file:
        json.dump(value, file)
        file.write("\n")


def print_profile(figures: Profile) -> None:
    """Print VTA by layer and the processor by step."""
    table = tables.table("layer on VTA", "operation", ">cycles", ">µs", ">MAC use", ">% of bound", "schedule")
    for layer in figures.layers:
        table.add_row(
            layer.name,
            layer.op,
            f"{layer.cycles:,.0f}",
            f"{layer.microseconds:,.1f}",
            f"{100 * layer.utilisation:.1f}%" if layer.macs else "-",
            f"{100 * layer.bound_share:.1f}",
            layer.schedule,
        )
    table.add_row("all", "", "", f"{figures.vta:,.1f}", f"{100 * figures.utilisation:.1f}%", "", "")
    tables.console().print(table)
    steps = tables.table("step of the processor", "kind", ">µs")
    for step in figures.steps:
        steps.add_row(step.name, step.kind, f"{step.microseconds:,.1f}")
    latency = figures.latency
    steps.add_row("all", "", f"{latency.crossings + latency.processor:,.1f}")
    tables.console().print(steps)
    if latency.assumed:
        say_text(f"the processor's times: {latency.assumed}")
    if latency.starts:
        say_text(chain_text(figures))


def chain_text(figures: Profile) -> str:
    """Return how VTA's time compares with its layers one by one, and the share of skips and starts."""
    vta, start, count = figures.vta, figures.latency.start, figures.latency.starts
    starts = "1 start" if count == 1 else f"{count} starts"
    return (
        f"VTA {vta:,.1f} µs in {starts}; its layers one by one {figures.alone:,.1f} µs by the twin "
        f"({100 * (vta / figures.alone - 1):+.1f}%); of these the skip connections take {figures.residuals:,.1f} µs "
        f"({100 * figures.residuals / figures.alone:.2f}%); starts take {start:,.1f} µs and the time "
        f"between them {figures.between:,.1f} µs ({100 * (start + figures.between) / vta:.2f}% of VTA's "
        "time)"
    )


def telling(work: CommandWork) -> Listen:
    """Return a listener to a board: its way to the first inference is the phase of `work`, its faults are printed.

    The reason for waiting stays the phase while it tries again and again.
    """
    waits = False

    def listen(event: BoardEvent) -> None:
        nonlocal waits
        if event.state == "connecting" and (event.detail or not waits):
            work.begin(f"connecting to {event.board}{': ' if event.detail else ''}{event.detail}")
            waits = event.detail.startswith("waiting: ")
        tell(event)

    return listen


def tell(event: BoardEvent) -> None:
    """Print the board's state on standard error, if it is a fault or the board waits."""
    if event.detail and (event.state in ("lost", "recovering") or event.detail.startswith("waiting: ")):
        say_text(f"{event.board}: {event.state}: {event.detail}", err=True)
