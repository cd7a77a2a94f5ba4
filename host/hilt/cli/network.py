"""`hilt tune model.onnx`: every different layer of a network in a run of its own, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hilt.cli import tables
from hilt.cli.exits import Exit
from hilt.cli.following import exit_after, follow
from hilt.cli.progress import print_words
from hilt.cli.summary import summary_text
from hilt.cli.words import best_json, print_json, short
from hilt.engine.design import Settings
from hilt.schedule.onnx_model import Layer, Network, OnnxError
from hilt.store import Run, Store, Trial, database_path

Start = Callable[[Settings, Path], Run]


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


def tune_network(network: Network, settings: Settings, home: Path, start: Start, as_json: bool) -> Exit:
    """Tunes each supported layer with the budget of `settings`, in the order of the model. One that fails or is
    interrupted ends it; what was found until then is shown. Raises OnnxError where no layer is supported, and what
    `start` raises."""
    console = Console(stderr=as_json)
    print_words(console, listing(network))
    if not network.supported:
        raise OnnxError(f"{network.name} has no layer that VTA can run")
    tuned: list[Tuned] = []
    ending = Exit.OK
    for number, layer in enumerate(network.supported, start=1):
        print_words(console, f"\nlayer {number} of {len(network.supported)}: {layer.workload}, {layer.count} times")
        run = start(replace(settings, workload=layer.workload), home)
        ending = _attend(home, run, console)
        with Store(database_path(home)) as store:
            tuned.append(Tuned(layer, store.run(run.uuid), store.best(run.uuid)))
        if ending not in (Exit.OK, Exit.NOTHING_VERIFIED):
            break
    if as_json:
        print_json(_network_json(network, settings, tuned))
    else:
        tables.console().print(_sum(tuned))
        print_words(console, _total_words(network, tuned))
    if ending not in (Exit.OK, Exit.NOTHING_VERIFIED):
        return ending
    found_all = bool(tuned) and all(each.microseconds is not None for each in tuned)
    return Exit.OK if found_all else Exit.NOTHING_VERIFIED


def _attend(home: Path, run: Run, console: Console) -> Exit:
    """Follows one layer's run to its end and says what it found."""
    ending = follow(home, run, console)
    with Store(database_path(home)) as store:
        record = store.run(run.uuid)
        verified = store.best(run.uuid) is not None
        print_words(console, summary_text(store, record))
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


def _sum(tuned: list[Tuned]) -> Table:
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
    missing += [layer.workload for layer in network.supported[len(tuned) :]]
    words = f"{network.name}: {total_microseconds(tuned):,.1f} µs in all its layers on the board"
    return words + (f", without {', '.join(missing)}, for which nothing verified was found" if missing else "")


def _network_json(network: Network, settings: Settings, tuned: list[Tuned]) -> dict[str, object]:
    total = total_microseconds(tuned)
    return {
        "model": network.name,
        "board": settings.board,
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
