"""A network and its campaign's results, as text and as JSON."""

from __future__ import annotations

from typing import Any

from hilt.campaign.budget import Budget
from hilt.cli import tables
from hilt.cli.formatting import best_json, labels_json, labels_text, print_json, short, state_text, time_text
from hilt.cli.prose import print_text
from hilt.engine.campaign_results import CampaignResult, Estimate, LayerResult, board_of, load_result
from hilt.network.latency import scaled
from hilt.network.workloads import coverage, coverage_text
from hilt.report.campaign_inference import CampaignInference, load_inference
from hilt.report.network_latency import layer_latency, layer_share, network_figure
from hilt.schedule.onnx_model import Network
from hilt.store import Campaign, RunState, Store, Trial
from hilt.store.labels import Labels, labels_of


def listing(network: Network) -> str:
    """Return the layers of a network, then the layers and operators that VTA cannot run."""
    layers = sum(layer.count for layer in network.supported)
    lines = [coverage_text(network)] if network.layers else []
    lines.append(f"{network.name}: {layers} convolutions and dense layers for VTA, {len(network.supported)} different")
    lines += [f"  {layer.count:3} x {layer.name}" for layer in network.supported]
    if network.unsupported:
        lines.append("not for VTA:")
        lines += [f"  {layer.count:3} x {layer.reason} ({', '.join(layer.nodes[:3])})" for layer in network.unsupported]
    if network.others:
        others = ", ".join(f"{operator} {count}" for operator, count in network.others.items())
        lines.append(f"left to the processor: {others}")
    return "\n".join(lines)


def show_campaign(store: Store, campaign: Campaign, running: bool, *, as_json: bool) -> None:
    """Print a campaign: its facts, its layers, and the network's latency."""
    result, labels = load_result(store, campaign), labels_of(store, campaign.uuid)
    inference = load_inference(store, campaign.uuid)
    if as_json:
        print_json(result_values(result, labels, inference), "campaign")
        return
    settings = campaign.settings
    facts = tables.table(header=False)
    for name, value in (
        ("campaign", campaign.uuid),
        ("network", f"{campaign.name}, {len(result.layers)} different layers for VTA"),
        ("board", board_of(store, campaign)),
        ("tuner", f"{settings['tuner']}, seed {settings['seed']}, slices of {settings['batch']}"),
        ("state", f"{state_text(campaign, running)}{', ' if campaign.detail else ''}{campaign.detail}"),
        ("begun", time_text(campaign.created)),
        *([("labels", text)] if (text := labels_text(labels)) else []),
        ("trials", f"{result.trials}, budget {Budget.from_dict(campaign.budget)}"),
    ):
        facts.add_row(name, value)
    console = tables.console()
    console.print(facts)
    console.print()
    console.print(result_table(result))
    print_text(console, format_total(result, inference))


def format_total(result: CampaignResult, inference: CampaignInference | None = None) -> str:
    """Return the network's latency now, and with the fallback schedules, in words."""
    figure, share = network_figure(result, inference), coverage(result.network)
    name = result.network.name
    if share < 1 and not figure.whole:
        name = f"{100 * share:.1f} % of {name}'s multiply-accumulates"
    words = f"{name}: {figure.text}"
    if figure.whole:
        fallback = scaled(figure.fallback or 0.0)
        words += f"; {fallback} with the fallback schedules: {figure.gain:.2f} times as fast"
    else:
        words += _layers_words(result, figure.legend)
    wanted = result.campaign.budget.get("trials", 0)
    if result.campaign.state is RunState.FINISHED and result.trials < wanted:
        words += f"\n{result.trials} of {wanted:.0f} trials: no tuner asked for more"
    if result.unsolved and result.campaign.state is RunState.FINISHED:
        words += f"; without {', '.join(layer.layer.name for layer in result.unsolved)}: nothing verified was found"
    return words


def _layers_words(result: CampaignResult, legend: str) -> str:
    """Return the meaning of a mark, and the gain over the layers that have a fallback."""
    words = f" ({legend})" if legend else ""
    if result.gain is not None:
        fallback = scaled(result.fallback_microseconds)
        words += f"; {fallback} with the fallback schedules: {result.gain:.2f} times as fast"
        if len(result.compared) < len(result.layers):
            words += f" (over the {len(result.compared)} of {len(result.layers)} layers that have both)"
    return words


def _estimate_values(estimate: Estimate, share: float) -> dict[str, Any]:
    return {
        "microseconds": estimate.microseconds,
        "complete": estimate.complete and share == 1,
        "coverage": share,
        "parts": {
            str(source): {"microseconds": value, "layers": estimate.layers_by[source]}
            for source, value in estimate.microseconds_by.items()
        },
    }


def result_table(result: CampaignResult) -> tables.Table:
    ordinals = (">times", ">trials", ">fallback µs", ">best µs", ">gain", ">all µs", ">share", ">% of bound")
    table = tables.table("layer", *ordinals, "run")
    for layer in result.layers:
        table.add_row(
            layer.layer.name,
            str(layer.layer.count),
            str(layer.trials),
            _latency(layer.fallback),
            layer_latency(layer),
            f"{layer.gain:.2f}" if layer.gain else "-",
            f"{layer.microseconds:,.1f}" if layer.microseconds else "-",
            _share(layer_share(layer, result)),
            _percent(layer),
            short(layer.run.uuid) if layer.run else "-",
        )
    return table


def _latency(trial: Trial | None) -> str:
    return f"{trial.microseconds:,.1f}" if trial is not None and trial.microseconds else "-"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}%"


def _percent(each: LayerResult) -> str:
    if each.run is None or each.best is None or each.best.microseconds is None:
        return "-"
    return f"{each.run.percent_of_bound(each.best.microseconds):.1f}"


def result_values(result: CampaignResult, labels: Labels, inference: CampaignInference | None = None) -> dict[str, Any]:
    """Return the results as `--json` prints them: the latency is that of the inference, if there was one."""
    figure = network_figure(result, inference)
    return {
        "inference": inference.after.to_dict() if inference is not None else None,
        "campaign": result.campaign.uuid,
        **labels_json(labels),
        "network": result.network.name,
        "state": str(result.campaign.state),
        "detail": result.campaign.detail,
        "budget": dict(result.campaign.budget),
        "spent_seconds": result.campaign.spent_seconds,
        "trials": result.trials,
        "microseconds": figure.microseconds if figure.whole or result.estimate.complete else None,
        "estimate": _estimate_values(result.estimate, coverage(result.network)),
        "fallback_microseconds": figure.fallback if figure.whole else result.fallback_microseconds,
        "gain": figure.gain if figure.whole else result.gain,
        "layers": [
            {
                "name": layer.layer.name,
                "workload": layer.layer.workload,
                "count": layer.layer.count,
                "run": layer.run.uuid if layer.run else None,
                "trials": layer.trials,
                "valid": layer.valid,
                "best": best_json(layer.run, layer.best, layer.confirmed) if layer.run else None,
                "fallback": best_json(layer.run, layer.fallback) if layer.run else None,
                "gain": layer.gain,
                "confidence": layer.confidence,
            }
            for layer in result.layers
        ],
    }
