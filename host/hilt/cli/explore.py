"""`hilt explore`: the VTA parameters that run a network fastest, and their area."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hilt import paths
from hilt.cli import tables
from hilt.cli.executors import executor
from hilt.cli.exit_codes import Exit
from hilt.cli.files import output_folder
from hilt.cli.formatting import print_json, seconds_text
from hilt.cli.space import orders_of
from hilt.cli.tables import column

if TYPE_CHECKING:
    from hilt.explore.design import Design
    from hilt.explore.exploration import Evaluation, Task
    from hilt.explore.schedules import LayerSchedule
    from hilt.explore.verify import LayerVerification

_AREAS = ("model", "yosys")


def explore(
    network: Annotated[str, typer.Argument(help="A network of the catalogue (resnet18), or model.onnx.")],
    sweep: Annotated[Path, typer.Option(help="Parameter sets to try, a TOML file (docs/explore.md).")],
    part: Annotated[
        str | None, typer.Option(help="Only designs that fit this part: 7z020, xczu3eg, xczu7ev or xczu9eg.")
    ] = None,
    area: Annotated[str, typer.Option(help="model (fitted to Yosys's counts), or yosys (minutes a design).")] = "model",
    orders: Annotated[int, typer.Option(help="Loop orders of the search: 1, as TVM, or 4.")] = 1,
    verify: Annotated[
        int,
        typer.Option(min=0, help="Run so many designs' schedules on the RTL: along the front, then the next."),
    ] = 0,
    verify_layers: Annotated[
        int, typer.Option(min=0, help="With --verify: only so many layers of each, the fastest; 0: all.")
    ] = 0,
    jobs: Annotated[int, typer.Option(min=0, help="Processes on this machine; 0: one a core.")] = 0,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, such as tcp://host:8786, to do the work.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where results and page go; else HILT_HOME/explore/NETWORK.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="End with one JSON object; progress to standard error.")
    ] = False,
) -> None:
    """Evaluate parameter sets on a network: latency and throughput by the twin's best schedules, area, Pareto front.

    Each design's result is kept; a sweep that was interrupted goes on where it was.
    """
    from hilt.explore import exploration
    from hilt.explore.area import PARTS
    from hilt.explore.page import area_statement, exploration_page, summary
    from hilt.explore.sweep import read_sweep
    from hilt.schedule.networks import load_network

    if area not in _AREAS:
        raise typer.BadParameter(f"--area {area!r} is neither model nor yosys")
    if part is not None and part not in PARTS:
        raise typer.BadParameter(f"--part {part!r} is none of {', '.join(PARTS)}")
    found, swept = load_network(network), read_sweep(sweep)
    tasks = [exploration.Task(found, design, orders_of(orders), area) for design in swept.designs]
    folder = output_folder(output or paths.home() / "explore" / Path(network).stem)
    kept = output_folder(folder / "designs")
    for line in swept.refused:
        typer.echo(f"refused: {line}", err=True)
    started = time.monotonic()
    evaluations = _evaluate(tasks, kept, jobs, cluster)
    on_front = exploration.front(evaluations, part)
    schedules = _schedules_of(evaluations, exploration.spread(evaluations, verify, part), verify_layers)
    verifications = _verify(evaluations, schedules, output_folder(folder / "verified"), jobs, cluster)
    lines = [
        _verified_line(evaluations[place].design, layer) for place, layers in verifications.items() for layer in layers
    ]
    page = folder / "designs.html"
    _write(page, exploration_page(found.name, evaluations, swept.refused, part, lines))
    if as_json:
        print_json(
            {
                "network": found.name,
                "part": part,
                "designs": [
                    evaluation.to_dict()
                    | {
                        "milliseconds": None if evaluation.schedule.reason else evaluation.microseconds / 1e3,
                        "images_a_second": None if evaluation.schedule.reason else evaluation.images_a_second,
                    }
                    for evaluation in evaluations
                ],
                "front": on_front,
                "refused": list(swept.refused),
                "verified": [
                    {"design": place, "layers": [layer.to_dict() for layer in layers]}
                    for place, layers in verifications.items()
                ],
                "page": str(page),
            },
            "exploration",
        )
    else:
        _print_front(evaluations, on_front)
        typer.echo(f"{summary(found.name, evaluations, on_front)} {area_statement(evaluations)}")
        for line in lines:
            typer.echo(line)
        typer.echo(f"{seconds_text(time.monotonic() - started)}; page: {page}")
    if not on_front or any(not layer.agrees for layers in verifications.values() for layer in layers):
        raise typer.Exit(Exit.NOTHING_VERIFIED)


def _evaluate(tasks: Sequence[Task], kept: Path, jobs: int, cluster: str | None) -> list[Evaluation]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from hilt.cli.plain_console import PlainConsole
    from hilt.explore.exploration import explore

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=PlainConsole(stderr=True), transient=True) as bar:
        shown = bar.add_task("designs", total=len(tasks))

        def progress(done: int, total: int, newest: Evaluation | None) -> None:
            bar.update(shown, completed=done, total=total)

        with executor(min(jobs, len(tasks)) if jobs else 0, cluster) as workers:
            return explore(tasks, kept, workers, progress)


def _schedules_of(
    evaluations: Sequence[Evaluation], places: Sequence[int], layers: int
) -> list[tuple[int, LayerSchedule]]:
    """Return (place, schedule) of each design's layers, the fastest first; at most `layers` of each, 0: all."""
    return [
        (place, layer)
        for place in places
        for layer in sorted(evaluations[place].schedule.layers, key=lambda layer: layer.cycles)[: layers or None]
    ]


def _verify(
    evaluations: Sequence[Evaluation], schedules: Sequence[tuple[int, LayerSchedule]], kept: Path,
    jobs: int, cluster: str | None,
) -> dict[int, list[LayerVerification]]:  # fmt: skip
    """Return, for each place, what its schedules showed on the RTL; a line to standard error for each that ran."""
    from hilt.explore.verify import verify

    def progress(done: int, total: int, newest: tuple[Design, LayerVerification] | None) -> None:
        if newest is None:
            typer.echo(f"RTL: {total} schedules to verify; {done} agreed before", err=True)
        else:
            typer.echo(f"RTL {done}/{total}: {_verified_line(*newest)}", err=True)

    verified: dict[int, list[LayerVerification]] = {}
    if not schedules:
        return verified
    pairs = [(evaluations[place].design, layer) for place, layer in schedules]
    with executor(min(jobs, len(pairs)) if jobs else 0, cluster) as workers:
        for (place, _), layer in zip(schedules, verify(pairs, kept, workers, progress), strict=True):
            verified.setdefault(place, []).append(layer)
    return verified


def _verified_line(design: Design, layer: LayerVerification) -> str:
    return (
        f"{design.title}: {layer.workload}: predicted {layer.predicted_cycles:,} cycles, "
        f"RTL {layer.rtl_cycles:,}, {'agree' if layer.agrees else 'DIFFER'}"
    )


def _print_front(evaluations: Sequence[Evaluation], on_front: Sequence[int]) -> None:
    from hilt.explore.page import latency_text, throughput_text

    table = tables.table(
        "design",
        column(">latency ms"),
        column(">images/s"),
        column(">LUT"),
        column(">FF", drop=2),
        column(">DSP", drop=1),
        column(">BRAM36"),
    )
    for place in on_front:
        evaluation = evaluations[place]
        area = evaluation.area
        table.add_row(
            evaluation.design.title,
            latency_text(evaluation),
            throughput_text(evaluation),
            f"{area.lut:,.0f}",
            f"{area.ff:,.0f}",
            f"{area.dsp:,.0f}",
            f"{area.bram36:,.1f}",
        )
    tables.console().print(table)


def _write(path: Path, text: str) -> None:
    from hilt.atomic_write import atomic_write

    with atomic_write(path) as file:
        file.write(text)
