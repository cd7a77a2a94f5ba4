"""`hilt glimpse`: the weights of the tuner glimpse: show their training data, or train them anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hilt.cli.experiments_extra import require_experiments
from hilt.cli.files import check_folder, replaceable
from hilt.cli.prose import say_text
from hilt.cli.work import CommandWork

application = typer.Typer(no_args_is_help=True, help="The trained weights of the tuner glimpse.")


class TrainingExtraError(ValueError):
    """PyTorch is not installed."""


@application.command()
def train(
    output: Annotated[Path, typer.Option(help="File to write, .npz.")],
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same weights on one machine.")] = 11,
    tasks: Annotated[int | None, typer.Option(min=8, help="Pairs of layer and accelerator to measure.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that measure.")] = 1,
) -> None:
    """Train Glimpse's networks on layers and VTA variants that no evaluation uses, measured by the twin.

    Needs PyTorch (pip install 'hilt[glimpse-training]') and takes about ten minutes of one core.
    """
    require_experiments("hilt glimpse train")
    from hilt.tune.glimpse.weights import save_weights

    check_folder(output)
    file = replaceable(output)
    try:
        from hilt_experiments.glimpse_training.train import TrainingPlan
        from hilt_experiments.glimpse_training.train import train as run
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise TrainingExtraError("training needs PyTorch: pip install 'hilt[glimpse-training]'") from None
    plan = TrainingPlan(seed=seed) if tasks is None else TrainingPlan(seed=seed, tasks=tasks)
    with CommandWork("measuring layers by the twin", command="glimpse train") as work:

        def report(line: str) -> None:
            say_text(line, err=True)
            work.begin(line)

        arrays, metadata = run(plan, report, jobs)
    save_weights(file, arrays, metadata)
    typer.echo(f"wrote {output}")


@application.command()
def show(
    weights: Annotated[
        Path | None, typer.Argument(help="A weights file; the one that ships with hilt unless given.")
    ] = None,
) -> None:
    """Show the data that weights were trained on, and the data they never saw."""
    from hilt.tune.glimpse.weights import SHIPPED, load_weights

    loaded = load_weights(weights or SHIPPED)
    found = loaded.metadata
    typer.echo(f"seed {found['seed']}, commit {found['commit'][:12]}, trained in {found['seconds']} s")
    typer.echo(f"Blueprint of {loaded.blueprint.size} components; {found['measurements']} measurements by the twin")
    typer.echo(found["statement"])
    typer.echo(f"layers ({len(found['layers'])}):")
    for layer in found["layers"]:
        typer.echo(f"  {layer}")
    typer.echo(f"accelerators ({len(found['accelerators'])}):")
    for accelerator in found["accelerators"]:
        typer.echo(f"  {accelerator}")
