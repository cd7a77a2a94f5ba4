"""`hilt tune model.onnx`: every different layer of a network in a run of its own, and what they come to. The runs are a
campaign: the same command again, or `hilt resume` of one of them, goes on with what is left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rich.console import Console

from hilt.cli import tables
from hilt.cli.exit_codes import Exit
from hilt.cli.following import exit_after, follow
from hilt.cli.formatting import best_json, print_json, short
from hilt.cli.live_view import print_text
from hilt.cli.summary import summary_text
from hilt.engine.campaigns import network_of, open_campaign, run_of_layer, spec_of, unfinished
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunSpec
from hilt.schedule.onnx_model import Layer, Network, OnnxError
from hilt.store import Campaign, Run, RunState, Store, Trial, database_path

_PATIENCE_SECONDS = 120.0
"""More than an engine takes to start."""


class Launcher(Protocol):
    """hilt.engine.launch is one."""

    def start(self, settings: RunSpec, home: Path, *, campaign: str | None = None) -> Run: ...

    def resume(self, identifier: str, home: Path, *, board: str | None = None) -> Run: ...


@dataclass(frozen=True)
class Tuned:
    """A layer's run and what it found."""

    layer: Layer
    run: Run
    best: Trial | None

    @property
    def microseconds(self) -> float | None:
        """Of all the equal layers together; None where nothing verified was found."""
        if self.best is None or self.best.microseconds is None:
            return None
        return self.layer.count * self.best.microseconds


def tune_network(network: Network, settings: RunSpec, home: Path, launcher: Launcher, as_json: bool) -> Exit:
    """Tunes each supported layer with the budget of `settings`, in the order of the model; goes on where the same
    network was begun with the same settings. Raises OnnxError where no layer is supported, and what `launcher`
    raises."""
    console = Console(stderr=as_json)
    print_text(console, listing(network))
    if not network.supported:
        raise OnnxError(f"{network.name} has no layer that VTA can run")
    with Store(database_path(home)) as store:
        campaign = open_campaign(store, network, settings)
    return tune_campaign(campaign, home, launcher, as_json)


def tune_campaign(campaign: Campaign, home: Path, launcher: Launcher, as_json: bool, board: str | None = None) -> Exit:
    """Tunes the layers that are not done yet, on `board` where one is given. One that fails or is interrupted ends it;
    what was found until then is shown. Raises what `launcher` raises."""
    console = Console(stderr=as_json)
    network = network_of(campaign)
    with Store(database_path(home)) as store:
        left = unfinished(store, campaign)
    done = len(network.supported) - len(left)
    already = f": {done} of {len(network.supported)} layers are done" if done else ""
    print_text(console, f"campaign {short(campaign.uuid)}{already}")
    ending = Exit.OK
    for number, layer in enumerate(network.supported, start=1):
        if layer not in left:
            continue
        print_text(console, f"\nlayer {number} of {len(network.supported)}: {layer.workload}, {layer.count} times")
        ending = _attend(home, _launch(campaign, layer, home, launcher, board), console)
        if ending not in (Exit.OK, Exit.NOTHING_VERIFIED):
            break
    with Store(database_path(home)) as store:
        tuned, left = _tuned(store, campaign), unfinished(store, campaign)
    if as_json:
        print_json(_network_json(campaign, tuned, left), "network")
    else:
        tables.console().print(_sum(tuned))
        print_text(console, _total_words(network, tuned))
    if ending not in (Exit.OK, Exit.NOTHING_VERIFIED):
        return ending
    found_all = len(tuned) == len(network.supported) and all(each.microseconds is not None for each in tuned)
    return Exit.OK if found_all else Exit.NOTHING_VERIFIED


def _launch(campaign: Campaign, layer: Layer, home: Path, launcher: Launcher, board: str | None) -> Run:
    """The layer's run goes on, or begins; one that has finished is as it is. Of two commands that come to a layer
    together, as those do that followed the one before, the first begins it and the other attaches."""
    with RunFiles(home, campaign.uuid).locked(_PATIENCE_SECONDS):
        with Store(database_path(home)) as store:
            run = run_of_layer(store, campaign, layer)
        if run is None:
            return launcher.start(spec_of(campaign, layer, board), home, campaign=campaign.uuid)
        return run if run.state is RunState.FINISHED else launcher.resume(run.uuid, home, board=board)


def _tuned(store: Store, campaign: Campaign) -> list[Tuned]:
    """Layers that have a run, in the order of the model."""
    runs = [(layer, run_of_layer(store, campaign, layer)) for layer in network_of(campaign).supported]
    return [Tuned(layer, run, store.best(run.uuid)) for layer, run in runs if run is not None]


def _attend(home: Path, run: Run, console: Console) -> Exit:
    """Follows one layer's run to its end and says what it found."""
    ending = follow(home, run, console, wake=True)
    with Store(database_path(home)) as store:
        record = store.run(run.uuid)
        verified = store.best(run.uuid) is not None
        print_text(console, summary_text(store, record, running=ending.finished is None))
    if ending.finished is None:
        return Exit.INTERRUPTED
    return exit_after(record, ending, verified)


def listing(network: Network) -> str:
    """What the model holds, and what of it VTA cannot run."""
    layers = sum(layer.count for layer in network.supported)
    lines = [f"{network.name}: {layers} convolutions and dense layers for VTA, {len(network.supported)} different"]
    lines += [f"  {layer.count:3} x {layer.workload}" for layer in network.supported]
    if network.unsupported:
        lines.append("not for VTA:")
        lines += [f"  {layer.count:3} x {layer.reason} ({', '.join(layer.nodes[:3])})" for layer in network.unsupported]
    if network.others:
        others = ", ".join(f"{operator} {count}" for operator, count in network.others.items())
        lines.append(f"left to the processor: {others}")
    return "\n".join(lines)


def total_microseconds(tuned: list[Tuned]) -> float:
    """Of all layers for which something verified was found."""
    return sum(each.microseconds or 0.0 for each in tuned)


def _sum(tuned: list[Tuned]) -> tables.Table:
    """A table of the layers with their shares of the sum."""
    total = total_microseconds(tuned) or 1.0
    table = tables.table("layer", ">times", ">best µs", ">all µs", ">share", ">% of bound", "run")
    for each in tuned:
        latency = each.best.microseconds if each.best is not None else None
        table.add_row(
            each.layer.workload,
            str(each.layer.count),
            f"{latency:,.1f}" if latency else "-",
            f"{each.microseconds:,.1f}" if each.microseconds else "-",
            f"{100 * each.microseconds / total:.1f}%" if each.microseconds else "-",
            f"{each.run.percent_of_bound(latency):.1f}" if latency else "-",
            short(each.run.uuid),
        )
    return table


def _total_words(network: Network, tuned: list[Tuned]) -> str:
    missing = [each.layer.workload for each in tuned if each.microseconds is None]
    begun = [each.layer for each in tuned]
    missing += [layer.workload for layer in network.supported if layer not in begun]
    words = f"{network.name}: {total_microseconds(tuned):,.1f} µs in all its layers on the board"
    return words + (f", without {', '.join(missing)}, for which nothing verified was found" if missing else "")


def _network_json(campaign: Campaign, tuned: list[Tuned], left: list[Layer]) -> dict[str, object]:
    total, network = total_microseconds(tuned), network_of(campaign)
    return {
        "model": network.name,
        "campaign": campaign.uuid,
        "board": campaign.settings["board"],
        "unfinished": [layer.workload for layer in left],
        "microseconds": total,
        "layers": [
            {
                "workload": each.layer.workload,
                "count": each.layer.count,
                "nodes": each.layer.nodes,
                "run": each.run.uuid,
                "best": best_json(each.run, each.best),
                "microseconds": each.microseconds,
                "share": each.microseconds / total if each.microseconds else None,
            }
            for each in tuned
        ],
        "unsupported": [
            {"reason": layer.reason, "count": layer.count, "nodes": layer.nodes} for layer in network.unsupported
        ],
        "other_operators": dict(network.others),
    }
