"""Attends to a run or a campaign that has an engine: follows it, prints its results, returns the exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from hilt.campaign.outputs import LOG, REPORT, SCHEDULE, folders_of, write_outputs
from hilt.cli import tables
from hilt.cli.exit_codes import Exit, exit_of, say
from hilt.cli.following import Ending, Record, exit_after, follow, name_of
from hilt.cli.following import wake as wake_up
from hilt.cli.formatting import print_json, run_json, short
from hilt.cli.network_text import format_total, result_table, result_values
from hilt.cli.plain_console import PlainConsole
from hilt.cli.progress import campaign_view, run_view
from hilt.cli.prose import print_text, say_text
from hilt.cli.summary import summary_text
from hilt.cli.work import CommandWork
from hilt.engine.campaign_results import load_result
from hilt.engine.run_files import RunFiles
from hilt.measure import DATASET_PREFIX
from hilt.network.latency import runs_text
from hilt.report.campaign_inference import load_inference
from hilt.run_choices import CheckLevel
from hilt.store import Campaign, Run, RunState, Store, database_path
from hilt.store.campaigns import discard_campaign
from hilt.store.labels import labels_of
from hilt.trial import Outcome


def attend_run(home: Path, launched: Callable[[], Run], *, detach: bool, as_json: bool, wake: bool = False) -> Exit:
    """Give a run an engine by `launched`, follow it unless detached, and print how it ended."""
    with CommandWork("starting the engine"):
        run = launched()  # only now: until it is followed Ctrl-C has nobody to stop it
    console = PlainConsole(stderr=as_json)
    if detach:
        _leave_alone(home, run, console, wake)
        _print_run(home, run, console, as_json, ended=False)
        return Exit.OK
    limit = f"{run.limit_seconds * 1e3:,.0f} ms by the board's clock"
    compared = "nothing is" if run.board.startswith(DATASET_PREFIX) else "its whole output is"
    print_text(console, f"a program may run for {limit}; {compared} compared with the reference")
    ending = follow(home, run, run_view(run, console), wake=wake)
    if not wake and (failed := _never_began(home, run, ending)) is not None:
        return failed
    verified = _print_run(home, run, console, as_json, ended=ending.finished is not None)
    return _exit(run, ending, verified, console)


def attend_campaign(
    home: Path, campaign: Campaign, *, detach: bool, as_json: bool, output: Path | None = None, wake: bool = False
) -> Exit:
    """Follow a campaign that has an engine or has finished, and print its results."""
    console = PlainConsole(stderr=as_json)
    if detach:
        _leave_alone(home, campaign, console, wake)
        if as_json:
            _print_campaign(home, campaign, as_json)
        return Exit.OK
    ending = follow(home, campaign, campaign_view(campaign, console), wake=wake)
    if not wake and (failed := _never_began(home, campaign, ending)) is not None:
        return failed
    if ending.finished is not None:
        _write_missing(home, campaign, ending.finished.state, output, console)
    solved = True
    directory = output or RunFiles(home, campaign.uuid).directory
    try:
        if ending.finished is not None:
            _end_with_bundle(home, campaign, directory, ending.finished.state)
    finally:  # a board that is lost now takes no result of the tuning along
        if as_json or ending.finished is not None:
            solved = _print_campaign(home, campaign, as_json)
    if ending.finished is not None:
        files = [str(directory / name) for name in (SCHEDULE, LOG, REPORT) if (directory / name).exists()]
        if files:
            print_text(console, f"schedules, AutoTVM's log and report: {' '.join(files)}")
        if not as_json:
            _print_for_tvm(home, campaign)
    return _exit(campaign, ending, solved, console)


def _print_for_tvm(home: Path, campaign: Campaign) -> None:
    """Print the schedules that TVM gets from the log of a campaign that was made for it."""
    if campaign.settings["checks"] != CheckLevel.TVM or campaign.settings["orders"] != 1:
        return
    from hilt.campaign.tvm_layers import tvm_layers
    from hilt.cli.for_tvm import print_tvm_layers

    with Store(database_path(home)) as store:
        print_tvm_layers(tvm_layers(store, load_result(store, campaign)))


def _end_with_bundle(home: Path, campaign: Campaign, folder: Path, state: RunState) -> None:
    """Write the bundle of a quantised model's finished campaign, unless the folder has it."""
    from hilt.campaign.network_bundle import BUNDLE, has_graph

    if state is RunState.FINISHED and has_graph(home, campaign) and not (folder / BUNDLE).exists():
        _finish_with_bundle(home, campaign, folder)


def _leave_alone(home: Path, record: Record, console: Console, wake: bool) -> None:
    if wake:
        wake_up(home, record.uuid)
    name = short(record.uuid)
    text = f"{name_of(record)} goes on by itself; `hilt tui {name}` or `hilt resume {name}` attaches to it"
    print_text(console, text)


def _never_began(home: Path, record: Record, ending: Ending) -> Exit | None:
    """Remove a new run or campaign that failed before its first trial; return the exit code, None for any other."""
    if ending.finished is None or ending.finished.failure is None:
        return None
    with Store(database_path(home)) as store:
        is_campaign = isinstance(record, Campaign)
        removed = discard_campaign(store, record.uuid) if is_campaign else store.discard_run(record.uuid)
    if not removed:
        return None
    say(ending.finished.detail)
    return exit_of(ending.finished.failure)


def _print_run(home: Path, run: Run, console: Console, as_json: bool, *, ended: bool) -> bool:
    """Print the results; return whether a verified configuration was found."""
    with Store(database_path(home)) as store:
        now = store.run(run.uuid)
        if as_json:
            print_json(run_json(store, now, RunFiles(home, run.uuid).is_running()), "run")
        elif ended:
            print_text(console, summary_text(store, now))
        # A dataset answers from records: nothing is verified, and a run with a valid answer is a success.
        recorded = run.board.startswith(DATASET_PREFIX) and store.counts(run.uuid).get(Outcome.OK, 0) > 0
        return recorded or store.best(run.uuid) is not None


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


def _write_missing(home: Path, campaign: Campaign, state: RunState, output: Path | None, console: Console) -> None:
    """Write the files of a campaign to `output`, or where its engine was killed before it wrote them."""
    directory = output or RunFiles(home, campaign.uuid).directory
    missing = state is RunState.FINISHED and not (directory / REPORT).exists()
    if output is None and not missing:
        return
    with Store(database_path(home)) as store:
        written = write_outputs(store, campaign.uuid, directory)
    if missing or directory.resolve() not in folders_of(home, campaign.uuid):  # else its engine has told them
        for note in written.notes:
            print_text(console, note)


def _exit(record: Record, ending: Ending, verified: bool, console: Console) -> Exit:
    if ending.finished is None:
        name = short(record.uuid)
        print_text(console, f"left {name_of(record)}, which stops when the board is done; `hilt resume {name}` goes on")
        return Exit.INTERRUPTED
    return exit_after(record, ending, verified)


def _finish_with_bundle(home: Path, campaign: Campaign, folder: Path) -> None:
    """Write the bundle of a campaign to a folder, run and verify its inference, and write the report anew.

    All of it goes to standard error. Raises the errors of compiling and running.
    """
    from hilt.campaign.network_bundle import end_with_bundle
    from hilt.cli.run_network import telling
    from hilt.engine.campaign_results import board_of
    from hilt.measure import board_names_of

    named = f"campaign {short(campaign.uuid)}"
    with Store(database_path(home)) as store, CommandWork(command=named, campaign=campaign.uuid) as work:
        board = board_names_of(board_of(store, campaign))[0]
        ending = end_with_bundle(store, campaign, board, folder, work, telling(work))
        work.begin("writing the report")
        write_outputs(store, campaign.uuid, folder)
    say_text(
        f"verified: {ending.verified.text}; VTA at {100 * ending.after.utilisation:.1f}% of its peak, "
        f"with {ending.chosen}\n"
        f"{runs_text(ending.after.latency)}\n"
        f"{ending.path}: `hilt run {ending.path} --board {board} --input x.npy` runs it, --profile says where its time "
        "goes",
        err=True,
    )
