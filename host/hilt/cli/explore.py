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
from hilt.cli.prose import say_text
from hilt.cli.tables import column
from hilt.cli.work import CommandWork

if TYPE_CHECKING:
    from hilt.explore.design import Design
    from hilt.explore.exploration import Evaluation, Task
    from hilt.explore.subject import Subject
    from hilt.explore.verify import DesignVerification

_AREAS = ("model", "yosys")


def explore(
    network: Annotated[str, typer.Argument(help="A network of the catalogue (resnet18), or model.onnx.")],
    sweep: Annotated[Path, typer.Option(help="Parameter sets to try, a TOML file (docs/explore.md).")],
    part: Annotated[
        str | None, typer.Option(help="Only designs that fit this part: 7z020, xczu3eg, xczu7ev or xczu9eg.")
    ] = None,
    area: Annotated[str, typer.Option(help="model (fitted to Yosys's counts), or yosys (minutes a design).")] = "model",
    verify: Annotated[
        int,
        typer.Option(min=0, help="Run the network on the RTL of so many designs: along the front, then the next."),
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
    """Compile a network for parameter sets: the whole inference's latency, throughput, area, Pareto front.

    Each design's result is kept; a sweep that was interrupted goes on where it was.
    """
    from hilt.explore import exploration
    from hilt.explore.area import PARTS
    from hilt.explore.page import area_statement, exploration_page, summary
    from hilt.explore.subject import load_subject
    from hilt.explore.sweep import read_sweep

    if area not in _AREAS:
        raise typer.BadParameter(f"--area {area!r} is neither model nor yosys")
    if part is not None and part not in PARTS:
        raise typer.BadParameter(f"--part {part!r} is none of {', '.join(PARTS)}")
    swept = read_sweep(sweep)
    with CommandWork() as work:
        work.begin(f"reading {network}")
        found = load_subject(network)
    if found.note:
        say_text(f"{network}: {found.note}; VTA's layers alone are counted", err=True)
    tasks = [exploration.Task(found, design, area) for design in swept.designs]
    folder = output_folder(output or paths.home() / "explore" / Path(network).stem)
    kept = output_folder(folder / "designs")
    for line in swept.refused:
        say_text(f"refused: {line}", err=True)
    started = time.monotonic()
    evaluations = _evaluate(tasks, kept, jobs, cluster)
    on_front = exploration.front(evaluations, part)
    places = exploration.spread(evaluations, verify, part)
    chosen = [evaluations[place].design for place in places]
    verifications = dict(zip(places, _verify(found, chosen, folder, jobs, cluster), strict=True))
    lines = [_verified_line(evaluations[place].design, shown) for place, shown in verifications.items()]
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
                        "milliseconds": None if evaluation.inference.reason else evaluation.microseconds / 1e3,
                        "images_a_second": None if evaluation.inference.reason else evaluation.images_a_second,
                    }
                    for evaluation in evaluations
                ],
                "front": on_front,
                "refused": list(swept.refused),
                "verified": [{"design": place, **shown.to_dict()} for place, shown in verifications.items()],
                "page": str(page),
            },
            "exploration",
        )
    else:
        _print_front(evaluations, on_front)
        say_text(f"{summary(found.name, evaluations, on_front)} {area_statement(evaluations)}")
        for line in lines:
            say_text(line)
        say_text(f"{seconds_text(time.monotonic() - started)}; page: {page}")
    if not on_front or not all(shown.agrees for shown in verifications.values()):
        raise typer.Exit(Exit.NOTHING_VERIFIED)


def _evaluate(tasks: Sequence[Task], kept: Path, jobs: int, cluster: str | None) -> list[Evaluation]:
    from hilt.explore.exploration import explore

    with CommandWork() as work, executor(min(jobs, len(tasks)) if jobs else 0, cluster) as workers:
        advance = work.counter("compiling for", "designs")
        advance(0, len(tasks))
        return explore(tasks, kept, workers, lambda done, total, newest: advance(done, total))


def _verify(
    subject: Subject, designs: Sequence[Design], folder: Path, jobs: int, cluster: str | None
) -> list[DesignVerification]:
    """Return what each design showed on the RTL; a line to standard error for each that ran."""
    from hilt.explore.verify import verify

    if not designs:
        return []
    kept = output_folder(folder / "verified")
    with CommandWork() as work, executor(min(jobs, len(designs)) if jobs else 0, cluster) as workers:
        advance = work.counter("running on the RTL", "designs")

        def progress(done: int, total: int, newest: tuple[Design, DesignVerification] | None) -> None:
            advance(done, total)
            if newest is None:
                say_text(f"RTL: {total} designs to verify; {done} agreed before", err=True)
            else:
                say_text(f"RTL {done}/{total}: {_verified_line(*newest)}", err=True)

        return verify(subject, designs, kept, workers, progress)


def _verified_line(design: Design, shown: DesignVerification) -> str:
    return (
        f"{design.title}: {shown.name}: predicted {shown.predicted_cycles:,} cycles, "
        f"RTL {shown.rtl_cycles:,}, {'agree' if shown.agrees else 'DIFFER'}"
    )


def _print_front(evaluations: Sequence[Evaluation], on_front: Sequence[int]) -> None:
    from hilt.explore.page import latency_text, throughput_text, vta_text

    table = tables.table(
        "design",
        column(">latency ms"),
        column(">VTA ms"),
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
            vta_text(evaluation),
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
