"""`hilt space`: how large a space is, and how much of it the compiler takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hilt.cli import tables
from hilt.cli.formatting import print_json
from hilt.cli.tables import column
from hilt.run_choices import SpaceName

if TYPE_CHECKING:
    from hilt.schedule import Space, Workload
    from hilt.schedule.checks import Checks
    from hilt.schedule.validity_summary import ValiditySummary
    from hilt.vta.accelerator import Accelerator

Orders = Literal[1, 4]


def space(
    workload: Annotated[
        str, typer.Argument(help="A workload, a group such as deepbench, a model.onnx, or a layer model.onnx:NODE.")
    ],
    checks: Annotated[
        str | None,
        typer.Option(help="Only this level: compiler, strict, tvm or off; all unless given. With --csv: compiler."),
    ] = None,
    kind: Annotated[
        str, typer.Option("--space", help="autotvm (TVM's knobs), ml2 (ML2Tuner's) or rows (row programs).")
    ] = "autotvm",
    orders: Annotated[
        int | None, typer.Option(help="Loop orders of the autotvm space: 4 unless given; 1 as TVM. A group shows both.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a row for each configuration: knobs, verdict, reason.")
    ] = None,
    board: Annotated[str, typer.Option(help="Whose accelerator: a board of `hilt boards`.")] = "virtual:pynq",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the size of a space, the share that each level of checks accepts, and why the rest is rejected."""
    from hilt.cli.model_layers import layers_of, workload_of
    from hilt.measure import describe_board
    from hilt.run_choices import CheckLevel
    from hilt.schedule import workload_names
    from hilt.schedule.onnx_model import SUFFIX
    from hilt.schedule.validity_summary import CHECK_LEVELS

    if checks is not None and checks not in CHECK_LEVELS:
        raise typer.BadParameter(f"--checks {checks!r} is none of {', '.join(CHECK_LEVELS)}")
    levels = CHECK_LEVELS if checks is None else (CheckLevel(checks),)
    accelerator = describe_board(board).accelerator
    group = {name: name for name in workload_names() if name.startswith(f"{workload}.")}
    if workload.endswith(SUFFIX):
        group = layers_of(workload)
    if group:
        if csv is not None or kind != "autotvm":
            raise typer.BadParameter(f"{workload} is a group of {len(group)}: --csv and --space take one workload")
        _group(group, accelerator, levels, (1, 4) if orders is None else (orders_of(orders),), as_json)
        return
    described = workload_of(workload)
    found = space_of(described, accelerator, kind, orders_of(4 if orders is None else orders))
    _one(described, found, accelerator, levels, csv, as_json)


def orders_of(count: int) -> Orders:
    if count == 1:
        return 1
    if count == 4:
        return 4
    raise typer.BadParameter(f"--orders is {count}; it may be 1 or 4")


def space_of(workload: Workload, accelerator: Accelerator, kind: str, orders: Orders) -> Space:
    """Return the space that the options name."""
    from hilt.schedule import space_for

    if kind == SpaceName.AUTOTVM:
        return space_for(workload, accelerator, orders=orders)
    if kind in tuple(SpaceName):
        return space_for(workload, accelerator, kind=SpaceName(kind))
    raise typer.BadParameter(f"--space {kind!r} is none of {', '.join(SpaceName)}")


def _one(
    workload: Workload,
    described: Space,
    accelerator: Accelerator,
    levels: tuple[Checks, ...],
    csv: Path | None,
    as_json: bool,
) -> None:
    from hilt.report.space_csv import write_space_csv
    from hilt.schedule.validity_summary import summarize_validity

    summaries = [summarize_validity(workload, accelerator, described, level) for level in levels]
    if csv is not None:
        write_space_csv(
            csv, described, next((summary for summary in summaries if summary.checks == "compiler"), summaries[0])
        )
    if as_json:
        print_json(
            {
                "workload": workload.name,
                "size": len(described),
                "knobs": {knob.name: list(knob.values) for knob in described.knobs},
                "levels": {summary.checks: _summary_json(summary) for summary in summaries},
            },
            "space",
        )
        return
    console = tables.console()
    console.print(f"{workload.name}: {len(described):,} configurations")
    knobs = tables.table("knob", column(">values"), column("", wraps=True))
    for knob in described.knobs:
        knobs.add_row(knob.name, str(len(knob.values)), _values_text(knob.values))
    console.print(knobs)
    for summary in summaries:
        console.print()
        compiled = "" if summary.compiled == summary.valid else f" (TVM compiles {summary.compiled:,})"
        accepted = f"{summary.valid:,} of {summary.size:,} accepted, {100 * summary.valid_ratio:.1f}%"
        console.print(f"checks {summary.checks}: {accepted}{compiled}")
        histogram = tables.table(
            column("reason", wraps=True), column(">configurations"), column(">share"), column("", drop=1)
        )
        largest = max(summary.reasons.values(), default=1)
        for reason, count in summary.reasons.items():
            bar = "█" * max(1, round(30 * count / largest))
            histogram.add_row(reason, f"{count:,}", f"{100 * count / summary.size:.1f}%", bar)
        if summary.reasons:
            console.print(histogram)


def _values_text(values: tuple[int, ...]) -> str:
    """Return the values as text: 1 2 4 8, or 1 to 56."""
    if len(values) > 2 and values == tuple(range(values[0], values[-1] + 1)):
        return f"{values[0]} to {values[-1]}"
    return " ".join(map(str, values))


def _group(
    group: dict[str, str],
    accelerator: Accelerator,
    levels: tuple[Checks, ...],
    orders: tuple[Orders, ...],
    as_json: bool,
) -> None:
    """Print a row for each workload of a group or a model, beside the figures of the literature."""
    from hilt.schedule import WorkloadError, load_workload
    from hilt.schedule.literature import published_spaces
    from hilt.schedule.validity_summary import summarize_validity

    published = published_spaces()
    sizes: dict[str, dict[Orders, int]] = {}
    ratios: dict[str, dict[str, float]] = {}
    unsupported: dict[str, str] = {}
    for name, text in group.items():
        try:
            workload = load_workload(text)
        except WorkloadError as error:
            unsupported[name] = str(error)
            continue
        sizes[name], ratios[name] = {}, {}
        for count in orders:
            described = space_of(workload, accelerator, "autotvm", count)
            sizes[name][count] = len(described)
            for level in levels:
                found = summarize_validity(workload, accelerator, described, level)
                if level == "tvm":
                    ratios[name][f"tvm compiles, {count}"] = found.compiled / found.size
                ratios[name][f"{level}, {count}"] = found.valid_ratio
    columns = list(next(iter(ratios.values()), {}))
    means = {title: sum(row[title] for row in ratios.values()) / len(ratios) for title in columns}
    if as_json:
        print_json(
            {
                "workloads": [
                    {
                        "workload": name,
                        "sizes": {str(count): size for count, size in sizes[name].items()},
                        "valid_ratios": ratios[name],
                        "published_size": published[name].size if name in published else None,
                        "published_valid_ratio": published[name].valid_ratio if name in published else None,
                    }
                    for name in sizes
                ],
                "mean_valid_ratios": means,
                "unsupported": unsupported,
            },
            "spaces",
        )
        return
    console = tables.console()
    console.print("configurations, and the share that is accepted, by level of checks and number of loop orders")
    known = [published[name] for name in sizes if name in published]
    beside = (">size, paper", ">valid, paper") if known else ()
    sizes_of = [column(f">size, {count}") for count in orders]
    shares_of = [column(f">{title}", drop=len(columns) - place) for place, title in enumerate(columns)]
    printed = [column(title, drop=len(columns) + 1) for title in beside]
    table = tables.table("workload", *sizes_of, *printed[:1], *shares_of, *printed[1:])
    for name in sizes:
        row = published.get(name)
        table.add_row(
            name,
            *(f"{size:,}" for size in sizes[name].values()),
            *((f"{row.size:,}",) if row else ()),
            *(f"{ratio:.3f}" for ratio in ratios[name].values()),
            *((f"{row.valid_ratio:.3f}",) if row else ()),
        )
    blank = [""] * (len(orders) + len(beside[:1]))
    mean = [f"{sum(row.valid_ratio for row in known) / len(known):.3f}"] if known else []
    table.add_row("mean", *blank, *(f"{value:.3f}" for value in means.values()), *mean)
    console.print(table)
    for words in unsupported.values():
        console.print(words)


def _summary_json(summarize_validity: ValiditySummary) -> dict[str, object]:
    return {
        "valid": summarize_validity.valid,
        "valid_ratio": summarize_validity.valid_ratio,
        "compiled": summarize_validity.compiled,
        "reasons": summarize_validity.reasons,
    }
