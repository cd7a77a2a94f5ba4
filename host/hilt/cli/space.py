"""`hilt space`: how large a space is, and how much of it the compiler takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hilt.cli import tables
from hilt.cli.words import print_json

if TYPE_CHECKING:
    from hilt.schedule.checks import Checks
    from hilt.schedule.survey import Survey
    from hilt.vta.accelerator import Accelerator


def space(
    workload: Annotated[str, typer.Argument(help="A workload, or a group of the catalogue such as deepbench.")],
    checks: Annotated[
        str | None, typer.Option(help="Only this level of the compiler's checks; else all. With --csv: compiler.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a row for each configuration: knobs, verdict, reason.")
    ] = None,
    board: Annotated[str, typer.Option(help="Whose accelerator: a board of `hilt boards`.")] = "virtual:pynq",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Size of a space, the share of it that each level of checks accepts, and why the rest is rejected."""
    from hilt.measure import describe_board
    from hilt.schedule import workload_names
    from hilt.schedule.survey import CHECK_LEVELS

    if checks is not None and checks not in CHECK_LEVELS:
        raise typer.BadParameter(f"--checks {checks!r} is none of {', '.join(CHECK_LEVELS)}")
    levels = CHECK_LEVELS if checks is None else (checks,)
    accelerator = describe_board(board).accelerator
    group = [name for name in workload_names() if name.startswith(f"{workload}.")]
    if group:
        if csv is not None:
            raise typer.BadParameter(f"--csv takes one workload, and {workload} is a group of {len(group)}")
        _group(group, accelerator, levels, as_json)
    else:
        _one(workload, accelerator, levels, csv, as_json)


def _one(text: str, accelerator: Accelerator, levels: tuple[Checks, ...], csv: Path | None, as_json: bool) -> None:
    from hilt.report.space_csv import write_space_csv
    from hilt.schedule import load_workload, space_for
    from hilt.schedule.survey import survey

    workload = load_workload(text)
    described = space_for(workload, accelerator)
    surveys = [survey(workload, accelerator, described, level) for level in levels]
    if csv is not None:
        write_space_csv(csv, described, next((one for one in surveys if one.checks == "compiler"), surveys[0]))
    if as_json:
        print_json(
            {
                "workload": text,
                "size": len(described),
                "knobs": {knob.name: list(knob.values) for knob in described.knobs},
                "levels": {one.checks: _survey_json(one) for one in surveys},
            }
        )
        return
    console = tables.console()
    console.print(f"{text}: {len(described):,} configurations")
    knobs = tables.table("knob", ">values", "")
    for knob in described.knobs:
        knobs.add_row(knob.name, str(len(knob.values)), " ".join(map(str, knob.values)))
    console.print(knobs)
    for one in surveys:
        console.print()
        console.print(f"checks {one.checks}: {one.valid:,} of {one.size:,} accepted, {100 * one.valid_ratio:.1f}%")
        histogram = tables.table("reason", ">configurations", ">share", "")
        largest = max(one.reasons.values(), default=1)
        for reason, count in one.reasons.items():
            bar = "█" * max(1, round(30 * count / largest))
            histogram.add_row(reason, f"{count:,}", f"{100 * count / one.size:.1f}%", bar)
        if one.reasons:
            console.print(histogram)


def _group(names: list[str], accelerator: Accelerator, levels: tuple[Checks, ...], as_json: bool) -> None:
    """A row for each workload, beside what the literature prints."""
    from hilt.schedule import WorkloadError, load_workload, space_for
    from hilt.schedule.literature import published_spaces
    from hilt.schedule.survey import survey

    published = published_spaces()
    sizes: dict[str, int] = {}
    ratios: dict[str, dict[str, float]] = {}
    unsupported: dict[str, str] = {}
    for name in names:
        try:
            workload = load_workload(name)
        except WorkloadError as error:
            unsupported[name] = str(error)
            continue
        described = space_for(workload, accelerator)
        sizes[name] = len(described)
        ratios[name] = {level: survey(workload, accelerator, described, level).valid_ratio for level in levels}
    means = {level: sum(each[level] for each in ratios.values()) / len(ratios) for level in levels} if ratios else {}
    if as_json:
        print_json(
            {
                "workloads": [
                    {
                        "workload": name,
                        "size": sizes[name],
                        "valid_ratio": ratios[name],
                        "published_size": published[name].size if name in published else None,
                        "published_valid_ratio": published[name].valid_ratio if name in published else None,
                    }
                    for name in sizes
                ],
                "mean_valid_ratio": means,
                "unsupported": unsupported,
            }
        )
        return
    table = tables.table("workload", ">size", ">size, paper", *(f">{level}" for level in levels), ">valid, paper")
    for name, size in sizes.items():
        row = published.get(name)
        table.add_row(
            name,
            f"{size:,}",
            f"{row.size:,}" if row else "-",
            *(f"{ratios[name][level]:.3f}" for level in levels),
            f"{row.valid_ratio:.3f}" if row else "-",
        )
    rows = [published[name].valid_ratio for name in sizes if name in published]
    mean = f"{sum(rows) / len(rows):.3f}" if rows else "-"
    table.add_row("mean", "", "", *(f"{means[level]:.3f}" for level in means), mean)
    console = tables.console()
    console.print(table)
    for words in unsupported.values():
        console.print(words)


def _survey_json(survey: Survey) -> dict[str, object]:
    return {"valid": survey.valid, "valid_ratio": survey.valid_ratio, "reasons": survey.reasons}
