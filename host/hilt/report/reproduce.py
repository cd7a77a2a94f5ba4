"""The commands, versions, seeds and hashes that reproduce a report."""

from __future__ import annotations

import hashlib
import json
import shlex

from hilt.engine.campaign_results import network_of
from hilt.report.facts import Facts, RunFacts
from hilt.schedule.networks import network_names
from hilt.schedule.onnx_model import SUFFIX
from hilt.store import Campaign, Run


def commands(facts: Facts) -> list[str]:
    """Return the commands that make these trials again: of a campaign, or of a run."""
    campaign = facts.result.campaign if facts.result else None
    if campaign is not None:
        return [_campaign_command(campaign, facts.runs[0].run)] if facts.runs else []
    return [_run_command(run.run) for run in facts.runs]


def origin_rows(facts: Facts) -> list[tuple[str, str]]:
    """Return (name, value) of everything that the trials depend on."""
    if not facts.runs:
        return []
    run = facts.runs[0].run
    rows = [
        ("VTA parameters", run.parameters),
        ("ISA", run.isa),
        ("clock", f"{run.clock_hz / 1e6:g} MHz"),
        ("bitstream", run.bitstream),
        ("tuner", f"{run.tuner} {json.dumps(dict(run.tuner_options), sort_keys=True)}"),
        ("seed", str(run.seed)),
        ("checks", run.checks),
        ("space", f"{run.space_kind}, {run.orders} loop order{'s' if run.orders > 1 else ''}"),
        ("each latency", _figures(run)),
        *((f"version of {name}", version) for name, version in sorted(run.versions.items())),
    ]
    if facts.result is not None:
        plain = json.dumps(network_of(facts.result.campaign).to_dict(), sort_keys=True)
        rows.append(("sha256 of the network's layers", hashlib.sha256(plain.encode()).hexdigest()))
        rows.append(("campaign", facts.result.campaign.uuid))
    else:
        rows.append(("run", run.uuid))
    rows.append(("sha256 of the records", records_digest(facts.runs)))
    return rows


def records_digest(runs: tuple[RunFacts, ...]) -> str:
    """Return the SHA-256 of the records that a deterministic board repeats exactly.

    They are workload, configuration, outcome, reason and cycles of every trial in order.
    """
    digest = hashlib.sha256()
    for run in runs:
        for trial in run.trials:
            fact = [run.name, trial.ordinal, trial.index, str(trial.outcome), trial.reason, trial.cycles]
            digest.update(json.dumps(fact).encode() + b"\n")
    return digest.hexdigest()


def _figures(run: Run) -> str:
    if run.repeat == run.number == 1:
        return "of one run of the program"
    return f"median of {run.repeat}, each the mean of {run.number} runs of the program"


def _campaign_command(campaign: Campaign, run: Run) -> str:
    budget = campaign.budget
    spend = str(int(budget["trials"])) if "trials" in budget else f"{budget['seconds']:g}s"
    network = campaign.name if campaign.name in network_names() else f"{campaign.name}{SUFFIX}"
    return shlex.join(["hilt", "campaign", network, *_boards(run), "--budget", spend, *_options(run)])


def _run_command(run: Run) -> str:
    return shlex.join(["hilt", "tune", run.workload, *_boards(run), "--trials", str(run.budget), *_options(run)])


def _boards(run: Run) -> list[str]:
    return [word for board in run.board.split(",") for word in ("--board", board)]


def _options(run: Run) -> list[str]:
    """Return all options that differ from the defaults or may do so one day."""
    words = ["--tuner", run.tuner, "--seed", str(run.seed), "--batch", str(run.batch), "--space", run.space_kind]
    words += ["--orders", str(run.orders)] if run.space_kind == "autotvm" else []
    words += ["--checks", run.checks]
    if run.rounds is None or run.repeat > 1:
        words += ["--repeat", "auto" if run.rounds is None else str(run.repeat)]
    words += ["--number", str(run.number)] if run.number > 1 else []
    for name, value in sorted(run.tuner_options.items()):
        if value is not None:
            words += ["--tuner-option", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return words
