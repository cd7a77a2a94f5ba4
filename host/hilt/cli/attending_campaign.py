"""Attends to a campaign that has an engine or has finished: follows it, makes its files, prints its results."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from hilt.campaign.outputs import LOG, REPORT, SCHEDULE, folders_of, write_outputs
from hilt.cli import tables
from hilt.cli.attending import failure_to_begin, leave_alone, print_exit
from hilt.cli.exit_codes import Exit
from hilt.cli.following import follow
from hilt.cli.formatting import print_json, short
from hilt.cli.network_text import format_total, result_table, result_values
from hilt.cli.plain_console import PlainConsole
from hilt.cli.progress import campaign_view
from hilt.cli.prose import print_text, say_text
from hilt.cli.work import CommandWork
from hilt.engine.campaign_results import load_result
from hilt.engine.run_files import RunFiles
from hilt.network.latency import runs_text
from hilt.report.campaign_inference import load_inference
from hilt.run_choices import CheckLevel
from hilt.store import Campaign, RunState, Store, database_path
from hilt.store.labels import labels_of


def attend_campaign(
    home: Path, campaign: Campaign, *, detach: bool, as_json: bool, output: Path | None = None, wake: bool = False
) -> Exit:
    """Follow a campaign that has an engine or has finished, and print its results."""
    console = PlainConsole(stderr=as_json)
    if detach:
        leave_alone(home, campaign, console, wake)
        if as_json:
            _print_campaign(home, campaign, as_json)
        return Exit.OK
    ending = follow(home, campaign, campaign_view(campaign, console), wake=wake)
    if not wake and (failed := failure_to_begin(home, campaign, ending)) is not None:
        return failed
    solved = True
    if ending.finished is not None:
        solved = _finish(home, campaign, ending.finished.state, output, console, as_json)
    elif as_json:
        solved = _print_campaign(home, campaign, as_json)
    return print_exit(campaign, ending, solved, console)


def _finish(
    home: Path, campaign: Campaign, state: RunState, output: Path | None, console: Console, as_json: bool
) -> bool:
    """Write the files and the bundle, and print the results; return whether every layer has a verified schedule."""
    _write_missing(home, campaign, state, output, console)
    folder = output or RunFiles(home, campaign.uuid).directory
    try:
        _end_with_bundle(home, campaign, folder, state)
    finally:  # a board that is lost now takes no result of the tuning along
        solved = _print_campaign(home, campaign, as_json)
    if files := [str(folder / name) for name in (SCHEDULE, LOG, REPORT) if (folder / name).exists()]:
        print_text(console, f"schedules, AutoTVM's log and report: {' '.join(files)}")
    if not as_json:
        _print_for_tvm(home, campaign)
    return solved


def _write_missing(home: Path, campaign: Campaign, state: RunState, output: Path | None, console: Console) -> None:
    """Write the files of a campaign to `output`, or where its engine was killed before it wrote them."""
    directory = output or RunFiles(home, campaign.uuid).directory
    missing = state is RunState.FINISHED and not (directory / REPORT).exists()
    if output is None and not missing:
        return
    with CommandWork(f"writing the report to {directory}"), Store(database_path(home)) as store:
        written = write_outputs(store, campaign.uuid, directory)
    if missing or directory.resolve() not in folders_of(home, campaign.uuid):  # else its engine has told them
        for note in written.notes:
            print_text(console, note)


def _end_with_bundle(home: Path, campaign: Campaign, folder: Path, state: RunState) -> None:
    """Write the bundle of a quantised model's finished campaign, unless the folder has it."""
    if state is not RunState.FINISHED:
        return
    with CommandWork("reading the network", command=_words(campaign), campaign=campaign.uuid):
        from hilt.campaign.network_bundle import BUNDLE, has_graph

    if has_graph(home, campaign) and not (folder / BUNDLE).exists():
        _finish_with_bundle(home, campaign, folder)


def _finish_with_bundle(home: Path, campaign: Campaign, folder: Path) -> None:
    """Write the bundle of a campaign to a folder, run and verify its inference, and write the report anew.

    All of it goes to standard error. Raises the errors of compiling and running.
    """
    from hilt.campaign.network_bundle import end_with_bundle
    from hilt.cli.run_network import telling
    from hilt.engine.campaign_results import board_of
    from hilt.measure import board_names_of

    with Store(database_path(home)) as store, CommandWork(command=_words(campaign), campaign=campaign.uuid) as work:
        board = board_names_of(board_of(store, campaign))[0]
        ending = end_with_bundle(store, campaign, board, folder, work, telling(work))
        work.begin(f"writing the report to {folder}")
        write_outputs(store, campaign.uuid, folder)
    say_text(
        f"verified: {ending.verified.text}; VTA at {100 * ending.after.utilisation:.1f}% of its peak, "
        f"with {ending.chosen}\n"
        f"{runs_text(ending.after.latency)}\n"
        f"{ending.path}: `hilt run {ending.path} --board {board} --input x.npy` runs it, --profile says where its time "
        "goes",
        err=True,
    )


def _words(campaign: Campaign) -> str:
    return f"campaign {short(campaign.uuid)}"


def _print_campaign(home: Path, campaign: Campaign, as_json: bool) -> bool:
    """Print the results; return whether every layer has a verified schedule."""
    with Store(database_path(home)) as store:
        result = load_result(store, store.campaign(campaign.uuid) or campaign)
        labels, inference = labels_of(store, campaign.uuid), load_inference(store, campaign.uuid)
    if as_json:
        print_json(result_values(result, labels, inference), "campaign")
    else:
        tables.console().print(result_table(result))
        print_text(tables.console(), format_total(result, inference))
    return not result.unsolved


def _print_for_tvm(home: Path, campaign: Campaign) -> None:
    """Print the schedules that TVM gets from the log of a campaign that was made for it."""
    if campaign.settings["checks"] != CheckLevel.TVM or campaign.settings["orders"] != 1:
        return
    from hilt.campaign.tvm_layers import tvm_layers
    from hilt.cli.for_tvm import print_tvm_layers

    with Store(database_path(home)) as store:
        print_tvm_layers(tvm_layers(store, load_result(store, campaign)))
