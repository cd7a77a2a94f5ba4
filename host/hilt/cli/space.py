"""`hilt space`: how large a space is, and how much of it the compiler takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hilt.cli import tables
from hilt.cli.formatting import print_json
from hilt.cli.tables import column
from hilt.cli.work import CommandWork
from hilt.run_choices import SpaceName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hilt.schedule import Space, Workload
    from hilt.schedule.checks import Checks
    from hilt.schedule.literature import PublishedSpace
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

    with CommandWork(f"checking {len(described):,} configurations"):
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
        _print_summary(summary)


def _print_summary(summary: ValiditySummary) -> None:
    """Print the share that a level of checks accepts, and a histogram of the reasons of the rest."""
    console = tables.console()
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

    counted = _GroupCounts(orders)
    with CommandWork() as work:
        advance = work.counter("checking", "workloads")
        for done, (name, text) in enumerate(group.items()):
            advance(done, len(group))
            try:
                counted.add(name, load_workload(text), accelerator, levels)
            except WorkloadError as error:
                counted.unsupported[name] = str(error)
    if as_json:
        print_json(counted.to_dict(published_spaces()), "spaces")
    else:
        counted.print(published_spaces())


class _GroupCounts:
    """Sizes and shares of valid configurations of the workloads of a group."""

    def __init__(self, orders: tuple[Orders, ...]) -> None:
        self._orders = orders
        self._sizes: dict[str, dict[Orders, int]] = {}
        self._ratios: dict[str, dict[str, float]] = {}
        self.unsupported: dict[str, str] = {}

    def add(self, name: str, workload: Workload, accelerator: Accelerator, levels: tuple[Checks, ...]) -> None:
        """Count a workload's spaces, of each number of loop orders, at each level."""
        from hilt.schedule.validity_summary import summarize_validity

        sizes, ratios = self._sizes.setdefault(name, {}), self._ratios.setdefault(name, {})
        for count in self._orders:
            described = space_of(workload, accelerator, "autotvm", count)
            sizes[count] = len(described)
            for level in levels:
                found = summarize_validity(workload, accelerator, described, level)
                if level == "tvm":
                    ratios[f"tvm compiles, {count}"] = found.compiled / found.size
                ratios[f"{level}, {count}"] = found.valid_ratio

    @property
    def _means(self) -> dict[str, float]:
        titles = list(next(iter(self._ratios.values()), {}))
        return {title: sum(row[title] for row in self._ratios.values()) / len(self._ratios) for title in titles}

    def to_dict(self, published: Mapping[str, PublishedSpace]) -> dict[str, object]:
        """Return plain values for JSON, beside the figures of the literature."""
        return {
            "workloads": [
                {
                    "workload": name,
                    "sizes": {str(count): size for count, size in sizes.items()},
                    "valid_ratios": self._ratios[name],
                    "published_size": published[name].size if name in published else None,
                    "published_valid_ratio": published[name].valid_ratio if name in published else None,
                }
                for name, sizes in self._sizes.items()
            ],
            "mean_valid_ratios": self._means,
            "unsupported": self.unsupported,
        }

    def print(self, published: Mapping[str, PublishedSpace]) -> None:
        """Print the table, beside the figures of the literature."""
        console, means = tables.console(), self._means
        console.print("configurations, and the share that is accepted, by level of checks and number of loop orders")
        known = [published[name] for name in self._sizes if name in published]
        beside = (">size, paper", ">valid, paper") if known else ()
        sizes_of = [column(f">size, {count}") for count in self._orders]
        shares_of = [column(f">{title}", drop=len(means) - place) for place, title in enumerate(means)]
        printed = [column(title, drop=len(means) + 1) for title in beside]
        table = tables.table("workload", *sizes_of, *printed[:1], *shares_of, *printed[1:])
        for name, sizes in self._sizes.items():
            row = published.get(name)
            size, valid = ([f"{row.size:,}"], [f"{row.valid_ratio:.3f}"]) if row else ([], [])
            ratios = [f"{ratio:.3f}" for ratio in self._ratios[name].values()]
            table.add_row(name, *(f"{each:,}" for each in sizes.values()), *size, *ratios, *valid)
        blank = [""] * (len(self._orders) + len(beside[:1]))
        mean = [f"{sum(row.valid_ratio for row in known) / len(known):.3f}"] if known else []
        table.add_row("mean", *blank, *(f"{value:.3f}" for value in means.values()), *mean)
        console.print(table)
        for words in self.unsupported.values():
            console.print(words)


def _summary_json(summarize_validity: ValiditySummary) -> dict[str, object]:
    return {
        "valid": summarize_validity.valid,
        "valid_ratio": summarize_validity.valid_ratio,
        "compiled": summarize_validity.compiled,
        "reasons": summarize_validity.reasons,
    }
