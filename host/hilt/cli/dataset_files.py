"""`hilt dataset export`, `import` and `replay`: datasets in files of others, and tuners on records."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from hilt.cli import tables
from hilt.cli.experiments_extra import require_experiments
from hilt.cli.formatting import print_json
from hilt.cli.prose import say_text
from hilt.cli.tables import column
from hilt.cli.work import CommandWork
from hilt.run_choices import DatasetForm

_AS_JSON = typer.Option("--json", help="Print JSON.")


def export_dataset(
    name: Annotated[str, typer.Argument(help="Its name or key, or the beginning of one.")],
    file: Annotated[Path, typer.Argument(help="The file to write; FILE.card.md beside it is the data card.")],
    form: Annotated[DatasetForm, typer.Option(help="Kernel Tuner's cache (JSON), or CSV.")] = DatasetForm.CSV,
) -> None:
    """Write a dataset for other tools, with a data card."""
    from hilt.measure.dataset import DatasetStore
    from hilt.measure.dataset.exchange import export_recorded

    with CommandWork(f"writing {file}"):
        dataset = DatasetStore().find(name)
        card = export_recorded(dataset, file, form)
    say_text(f"{file}: {dataset.name}, {len(dataset):,} configurations, as {form}; {card}")


def import_dataset(
    file: Annotated[Path, typer.Argument(help="Kernel Tuner's cache (JSON), or CSV with a column microseconds.")],
    name: Annotated[str | None, typer.Option(help="The dataset's name; the file's unless given.")] = None,
) -> None:
    """Keep the records of any accelerator as a dataset that tuners run on (`hilt dataset replay`)."""
    from hilt.measure.dataset import DatasetStore
    from hilt.measure.dataset.exchange import import_recorded

    with CommandWork(f"reading {file}"):
        dataset = import_recorded(file, file.stem if name is None else name, DatasetStore())
    valid = int(dataset.valid.sum())
    best = f"best {dataset.optimum:,.3f} µs" if valid else "none"
    say_text(f"{dataset.name}: {len(dataset):,} configurations, {valid:,} valid, {best}")


def replay_dataset(
    name: Annotated[str, typer.Argument(help="Its name or key, or the beginning of one.")],
    tuner: Annotated[
        list[str] | None, typer.Option(help="A tuner's name, or FILE.py:CLASS; random unless given.")
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Configurations to try in each run.")] = 200,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each tuner.")] = 5,
    batch: Annotated[int, typer.Option(min=1, help="Trials asked of the tuner at a time.")] = 8,
    restricted: Annotated[
        bool, typer.Option("--restricted", help="Proposals that do not compile, or that the file lacks, are no trials.")
    ] = False,
    as_json: Annotated[bool, _AS_JSON] = False,
) -> None:
    """Run tuners on a dataset's records, an imported one's included: trials to 1 % of its best."""
    require_experiments("hilt dataset replay")
    from hilt.measure.dataset import DatasetError, DatasetStore
    from hilt_experiments.contenders import Contender
    from hilt_experiments.recorded_problems import replays
    from hilt_experiments.replay import Protocol

    dataset = DatasetStore().find(name)
    if not dataset.valid.any():
        raise DatasetError(f"{dataset.name} has no valid configuration")
    rows: list[dict[str, Any]] = []
    wanted = tuner or ["random"]
    with CommandWork(f"reading {dataset.name}") as work:
        for place, each in enumerate(wanted, 1):
            contender = Contender.of(each, each.rpartition(":")[2])
            advance = work.counter(f"{each}, tuner {place} of {len(wanted)}", "runs")
            rows += replays(dataset, contender, Protocol(trials, batch), seeds, advance, restricted=restricted)
    if as_json:
        print_json(rows, "replays")
        return
    table = tables.table("tuner", ">runs", column(">trials to 1%"), ">never", ">best off", column(">invalid", drop=1))
    for each in dict.fromkeys(row["tuner"] for row in rows):
        table.add_row(*_summary(each, [row for row in rows if row["tuner"] == each], trials))
    tables.console().print(table)
    say_text(f"{dataset.name}: best {dataset.optimum:,.3f} µs of {int(dataset.valid.sum()):,} valid configurations")


def _summary(tuner: str, rows: list[dict[str, Any]], trials: int) -> tuple[str, ...]:
    near = [row["to_1%"] for row in rows]
    middle = median(trials + 1 if found is None else found for found in near)
    offs = sorted(float("inf") if row["off"] is None else row["off"] for row in rows)
    invalid = sum(row["invalid"] for row in rows) / max(sum(row["trials"] for row in rows), 1)
    words = f">{trials}" if middle > trials else f"{middle:g}"
    return tuner, str(len(rows)), words, str(near.count(None)), f"{100 * median(offs):.1f}%", f"{100 * invalid:.0f}%"
