"""`hilt explore`: the VTA parameters that run a network fastest, and their area."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilt import paths
from hilt.cli import tables
from hilt.cli.executors import executor
from hilt.cli.exit_codes import Exit
from hilt.cli.files import output_folder
from hilt.cli.formatting import print_json
from hilt.cli.prose import say_text
from hilt.cli.tables import column
from hilt.cli.work import CommandWork
from hilt.engine.durations import seconds_text

if TYPE_CHECKING:
    from hilt.explore.design import Design
    from hilt.explore.exploration import Evaluation, Task
    from hilt.explore.subject import Subject
    from hilt.explore.verify import DesignVerification

_AREAS = ("model", "yosys")


Network = Annotated[str, typer.Argument(help="A network of the catalogue (resnet18), or model.onnx.")]
SweepFile = Annotated[Path, typer.Option(help="Parameter sets to try, a TOML file (docs/explore.md).")]
Part = Annotated[str | None, typer.Option(help="Only designs that fit this part: 7z020, xczu3eg, xczu7ev or xczu9eg.")]
Area = Annotated[str, typer.Option(help="model (fitted to Yosys's counts), or yosys (minutes a design).")]
Verify = Annotated[
    int,
    typer.Option(min=0, help="Run the network on the RTL of so many designs: along the front, then the next."),
]
Jobs = Annotated[int, typer.Option(min=0, help="Processes on this machine; 0: one a core.")]
Cluster = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, such as tcp://host:8786, to do the work.")
]
Output = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Where results and page go; else HILT_HOME/explore/NETWORK.")
]
Json = Annotated[bool, typer.Option("--json", help="End with one JSON object; progress to standard error.")]


def explore(
    network: Network,
    sweep: SweepFile,
    part: Part = None,
    area: Area = "model",
    verify: Verify = 0,
    jobs: Jobs = 0,
    cluster: Cluster = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Compile a network for parameter sets: the whole inference's latency, throughput, area, Pareto front.

    Each design's result is kept; a sweep that was interrupted goes on where it was.
    """
    from hilt.explore import exploration
    from hilt.explore.page import exploration_page
    from hilt.explore.sweep import read_sweep

    _check_choices(area, part)
    swept = read_sweep(sweep)
    found = _subject(network)
    tasks = [exploration.Task(found, design, area) for design in swept.designs]
    folder = output_folder(output or paths.home() / "explore" / Path(network).stem)
    kept = output_folder(folder / "designs")
    for line in swept.refused:
        say_text(f"refused: {line}", err=True)
    started = time.monotonic()
    evaluations = _evaluate(tasks, kept, jobs, cluster)
    places = exploration.spread(evaluations, verify, part)
    shown = _verify(found, [evaluations[place].design for place in places], folder, jobs, cluster)
    explored = _Explored(
        found.name,
        part,
        evaluations,
        exploration.front(evaluations, part),
        swept.refused,
        dict(zip(places, shown, strict=True)),
        swept.base,
        folder / "designs.html",
    )
    page = exploration_page(found.name, evaluations, swept.refused, part, explored.verified_lines(), swept.base)
    _write(explored.page, page)
    if as_json:
        print_json(explored.to_dict(), "exploration")
    else:
        _print(explored)
        say_text(f"{seconds_text(time.monotonic() - started)}; page: {explored.page}")
    if not explored.is_good():
        raise typer.Exit(Exit.NOTHING_VERIFIED)


def _check_choices(area: str, part: str | None) -> None:
    from hilt.explore.area import PARTS

    if area not in _AREAS:
        raise typer.BadParameter(f"--area {area!r} is neither model nor yosys")
    if part is not None and part not in PARTS:
        raise typer.BadParameter(f"--part {part!r} is none of {', '.join(PARTS)}")


def _subject(network: str) -> Subject:
    from hilt.explore.subject import load_subject

    with CommandWork() as work:
        work.begin(f"reading {network}")
        found = load_subject(network)
    if found.note:
        say_text(f"{network}: {found.note}; VTA's layers alone are counted", err=True)
    return found


@dataclass(frozen=True)
class _Explored:
    """The designs of a sweep for a network: those on the front and those that ran on the RTL by their places."""

    name: str
    part: str | None
    evaluations: Sequence[Evaluation]
    on_front: Sequence[int]
    refused: Sequence[str]
    verified: Mapping[int, DesignVerification]
    base: int | None
    page: Path

    def verified_lines(self) -> list[str]:
        return [_verified_line(self.evaluations[place].design, shown) for place, shown in self.verified.items()]

    def is_good(self) -> bool:
        return bool(self.on_front) and all(shown.agrees for shown in self.verified.values())

    def to_dict(self) -> dict[str, Any]:
        return {
            "network": self.name,
            "part": self.part,
            "designs": [_values(evaluation) for evaluation in self.evaluations],
            "front": list(self.on_front),
            "base": self.base,
            "refused": list(self.refused),
            "verified": [{"design": place, **shown.to_dict()} for place, shown in self.verified.items()],
            "page": str(self.page),
        }


def _values(evaluation: Evaluation) -> dict[str, Any]:
    runs = not evaluation.inference.reason
    return evaluation.to_dict() | {
        "milliseconds": evaluation.microseconds / 1e3 if runs else None,
        "images_a_second": evaluation.images_a_second if runs else None,
    }


def _print(explored: _Explored) -> None:
    from hilt.explore.page import area_statement, summary

    _print_front(explored.evaluations, explored.on_front, explored.base)
    say_text(
        f"{summary(explored.name, explored.evaluations, explored.on_front)} {area_statement(explored.evaluations)}"
    )
    for line in explored.verified_lines():
        say_text(line)


def _evaluate(tasks: Sequence[Task], kept: Path, jobs: int, cluster: str | None) -> list[Evaluation]:
    from hilt.explore.exploration import explore

    with CommandWork(command="explore") as work, executor(min(jobs, len(tasks)) if jobs else 0, cluster) as workers:
        advance = work.counter("compiling for", "designs")
        advance(0, len(tasks))
        return explore(tasks, kept, workers, lambda done, total, newest: advance(done, total))


def _verify(
    subject: Subject, designs: Sequence[Design], folder: Path, jobs: int, cluster: str | None
) -> list[DesignVerification]:
    """Return each design's result on the RTL; a line to standard error for each that ran."""
    from hilt.explore.verify import verify

    if not designs:
        return []
    kept = output_folder(folder / "verified")
    with CommandWork(command="explore") as work, executor(min(jobs, len(designs)) if jobs else 0, cluster) as workers:
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


def _print_front(evaluations: Sequence[Evaluation], on_front: Sequence[int], base: int | None) -> None:
    from hilt.explore.page import latency_text, throughput_text, title, vta_text

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
            title(evaluation, place == base),
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
