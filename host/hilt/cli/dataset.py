"""`hilt dataset`: record the outcome of every configuration of a space, and show the records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilt.cli import tables
from hilt.cli.dataset_files import export_dataset, import_dataset, replay_dataset
from hilt.cli.executors import executor
from hilt.cli.experiments_extra import require_experiments
from hilt.cli.formatting import print_json, time_text
from hilt.cli.prose import say_text
from hilt.cli.tables import column
from hilt.cli.work import CommandWork
from hilt.engine.durations import seconds_text
from hilt.run_choices import SpaceName

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from hilt.measure.dataset import Dataset, DatasetKey, DatasetStore
    from hilt.measure.dataset.check import Sampling

application = typer.Typer(
    help="Datasets: the recorded outcome and cycles of a whole space. `--board dataset:NAME` tunes on one.",
    no_args_is_help=True,
)


application.command("export")(export_dataset)
application.command("import")(import_dataset)
application.command("replay")(replay_dataset)


@application.command()
def build(
    workload: Annotated[str | None, typer.Argument(help="A workload, or a group such as resnet18.")] = None,
    board_model: Annotated[
        str, typer.Option("--board-model", help="A board of `hilt boards` without virtual:, or a mismatched one.")
    ] = "pynq",
    checks: Annotated[str, typer.Option(help="compiler, strict, tvm or off.")] = "compiler",
    space: Annotated[str, typer.Option(help="autotvm or ml2.")] = "autotvm",
    orders: Annotated[int, typer.Option(help="Loop orders of the autotvm space: 1 or 4.")] = 4,
    everything: Annotated[bool, typer.Option("--all", help="All that `hilt bench` needs: about 300 datasets.")] = False,
    jobs: Annotated[int, typer.Option(min=0, help="Processes on this machine; 0: one a core.")] = 0,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, such as tcp://host:8786, to do the work.")
    ] = None,
    rtl_sample: Annotated[int, typer.Option(min=0, help="Configurations that also run on the RTL.")] = 4,
    golden_sample: Annotated[int, typer.Option(min=0, help="Configurations that also run on the golden model.")] = 8,
    sample_cycles: Annotated[int, typer.Option(min=1, help="Cycles that each model may run for in all.")] = 10_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample, and of its tensors.")] = 0,
) -> None:
    """Predict every configuration with the twin, check a sample on the RTL, and keep it.

    After an interruption it goes on where it was; a dataset that is there is not built again.
    """
    from hilt.measure.dataset import DatasetStore
    from hilt.measure.dataset.check import Sampling

    if everything == (workload is not None):
        raise typer.BadParameter("name a workload, or give --all")
    dataset_store = DatasetStore()
    if everything:
        require_experiments("hilt dataset build --all")
        from hilt_experiments.datasets import evidence

        groups = evidence()
    else:
        groups = [[subject] for subject in _subjects(str(workload), board_model, checks, space, orders)]

    def missing(group: list[DatasetKey]) -> list[DatasetKey]:
        return [subject for subject in group if not dataset_store.has(subject)]

    if not everything:
        for group in groups:
            if not missing(group):
                say_text(f"{group[0].name} is there already: {dataset_store.path_of(group[0])}")
    if not any(map(missing, groups)):
        return
    sampling = Sampling(rtl_sample, golden_sample, seed, sample_cycles)
    with executor(jobs, cluster) as workers:
        for number, group in enumerate(groups, 1):
            if wanted := missing(group):
                _build_group(wanted, dataset_store, workers, sampling, f"{number}/{len(groups)}")


def _build_group(
    subjects: list[DatasetKey], dataset_store: DatasetStore, workers: Executor, sampling: Sampling, place: str
) -> None:
    from hilt.measure.dataset.build import build as build_datasets

    with CommandWork(f"{place} {subjects[0].name}", command="dataset build") as work:
        advance = work.counter(f"{place} {subjects[0].name}", "parts")
        made = build_datasets(subjects, dataset_store, workers, sampling, advance)
    for dataset in made:
        say_text(_line(dataset))


def _line(dataset: Dataset) -> str:
    """Return a line about a dataset and the check of its sample."""
    valid = int(dataset.valid.sum())
    best = f"best {dataset.optimum:,.1f} µs" if valid else "none"
    return f"{dataset.name}: {len(dataset):,} configurations, {valid:,} valid, {best}; {_check_text(dataset)}"


def _check_text(dataset: Dataset) -> str:
    check: dict[str, Any] = dataset.metadata["check"]
    parts = []
    if "rtl" in check:
        rtl = check["rtl"]
        differ = f"{rtl['outcome']} of {rtl['run']} outcomes differ"
        parts.append(f"RTL: {differ}, largest error of cycles {100 * rtl['cycles_error']:.3g}%")
    if "golden" in check:
        parts.append(f"golden model: {check['golden']['outcome']} of {check['golden']['run']} outcomes differ")
    return "; ".join(parts) or "no sample was run"


def _subjects(workload: str, board: str, checks: str, kind: str, orders: int) -> list[DatasetKey]:
    from hilt.cli.space import orders_of
    from hilt.measure.dataset import DatasetKey
    from hilt.schedule import load_workload, workload_names
    from hilt.schedule.validity_summary import CHECK_LEVELS
    from hilt.virtual.mismatched_models import any_board_model

    level = next((known for known in CHECK_LEVELS if known == checks), None)
    if level is None:
        raise typer.BadParameter(f"--checks {checks!r} is none of {', '.join(CHECK_LEVELS)}")
    if kind not in ("autotvm", "ml2"):
        raise typer.BadParameter(f"--space {kind!r} is neither autotvm nor ml2")
    if kind == "ml2" and level == "tvm":
        raise typer.BadParameter("--checks tvm is about TVM's own space, not ml2")
    names = [name for name in workload_names() if name.startswith(f"{workload}.")] or [workload]
    return [
        DatasetKey.on(
            load_workload(name),
            any_board_model(board.removeprefix("virtual:")),
            checks=level,
            kind=SpaceName.ML2 if kind == "ml2" else SpaceName.AUTOTVM,
            orders=orders_of(orders),
        )
        for name in names
    ]


@application.command("list")
def list_datasets(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the recorded datasets by name."""
    from hilt.measure.dataset import Dataset, DatasetError, DatasetStore

    rows: list[dict[str, Any]] = []
    for path in DatasetStore().paths():
        try:
            dataset = Dataset.read(path)
        except DatasetError as error:
            say_text(f"hilt: {error}", err=True)
            continue
        rows.append(_row(dataset) | {"bytes": path.stat().st_size})
    if as_json:
        print_json(rows, "datasets")
        return
    if not rows:
        say_text("no datasets yet; `hilt dataset build WORKLOAD` records one")
        return
    table = tables.table(
        "dataset",
        column(">configurations", drop=2),
        column(">valid", drop=1),
        column(">best µs"),
        column(">kB", drop=4),
        column("made", drop=3),
        column("commit", drop=5),
    )
    for row in rows:
        best = "" if row["best_microseconds"] is None else f"{row['best_microseconds']:,.1f}"
        size = f"{row['bytes'] / 1000:.0f}"
        numbers = (f"{row['configurations']:,}", f"{row['valid']:,}", best, size)
        table.add_row(row["name"], *numbers, time_text(row["made"]["at"]), row["made"]["commit"])
    tables.console().print(table)


@application.command()
def show(
    name: Annotated[str, typer.Argument(help="Its name or key, or the beginning of one.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a dataset: its subject, outcomes, best configuration, and the check of its sample."""
    from hilt.measure.dataset import DatasetStore

    dataset = DatasetStore().find(name)
    row = _row(dataset) | {"outcomes": dataset.counts(), "check": dataset.metadata["check"]}
    if as_json:
        print_json(row | {"identity": dataset.identity}, "dataset")
        return
    made = dataset.metadata["made"]
    say_text(_line(dataset))
    for outcome, count in dataset.counts().items():
        say_text(f"  {count:>9,} {outcome}")
    if dataset.valid.any():
        say_text(f"best: configuration {dataset.best}, {int(dataset.cycles[dataset.best]):,} cycles")
    say_text(
        f"made {time_text(made['at'])} in {seconds_text(made['seconds'])} by hilt {made['hilt']} {made['commit']} "
        f"on {made['machine']}"
    )


def _row(dataset: Dataset) -> dict[str, Any]:
    valid = int(dataset.valid.sum())
    return {
        "name": dataset.name,
        "configurations": len(dataset),
        "valid": valid,
        "best_microseconds": dataset.optimum if valid else None,
        "best_index": dataset.best if valid else None,
        "made": dataset.metadata["made"],
    }
