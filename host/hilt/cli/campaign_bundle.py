"""The end of a quantised model's campaign: the bundle of its schedules, run and verified on the board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from hilt.campaign.network_bundle import TunedInference
    from hilt.store import Campaign


def finish_with_bundle(home: Path, campaign: Campaign, folder: Path, *, quiet: bool = False) -> None:
    """Write the bundle of a campaign to a folder, run one verified inference, and write the report anew.

    Print the network's latency with the campaign's fallback schedules and with its best ones, layer by layer. All of
    it goes to standard error if `quiet`. Raises the errors of compiling and running.
    """
    from hilt.campaign.network_bundle import end_with_bundle
    from hilt.campaign.outputs import write_outputs
    from hilt.cli.run_network import print_profile, tell
    from hilt.engine.campaign_results import board_of
    from hilt.measure import board_names_of
    from hilt.store import Store, database_path

    with Store(database_path(home)) as store:
        board = board_names_of(board_of(store, campaign))[0]
        ending = end_with_bundle(store, campaign, board, folder, lambda line: typer.echo(f"{line} ...", err=True), tell)
        write_outputs(store, campaign.uuid, folder)
    if not quiet:
        print_profile(ending.after)
    typer.echo(_latencies(ending), err=quiet)
    typer.echo(f"{ending.path}: `hilt run {ending.path} --board {board} --input x.npy` runs it", err=quiet)


def _latencies(ending: TunedInference) -> str:
    first, second = ending.before, ending.after
    return (
        f"{ending.network} on {ending.board}, one inference: VTA {first.vta:,.1f} µs with the fallback schedules, "
        f"{second.vta:,.1f} µs with the best ones ({first.vta / second.vta:.2f} times as fast; {ending.chosen}), "
        f"{100 * second.utilisation:.1f}% of its peak; the processor {second.processor:,.1f} µs; "
        f"verified: {ending.verified.tensors} tensors, {ending.verified.elements:,} elements equal to the integer "
        "reference"
    )
