"""A network's schedules as one JSON file (docs/campaign.md documents it)."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

from hilt.atomic_write import atomic_write
from hilt.engine.campaign_results import CampaignResult, LayerResult
from hilt.schedule import Workload, load_workload, workload_of
from hilt.schedule.workload_syntax import format_workload
from hilt.store import Trial

FORMAT = "hilt-schedule"
VERSION = 2
"""1 (hilt 0.1): a layer's knobs are its `configuration`."""


class ScheduleFileError(ValueError):
    """A file that is no schedule file of this version or an older one."""


def schedule_values(result: CampaignResult) -> dict[str, Any]:
    """Return plain values. A layer without a verified schedule has null for it."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "network": result.network.name,
        "campaign": result.campaign.uuid,
        "hilt": metadata.version("hilt"),
        "board": _board_values(result),
        "total": {
            "microseconds": result.microseconds,
            "fallback_microseconds": result.fallback_microseconds,
            "gain": result.gain,
            "complete": not result.unsolved and not result.network.unsupported,
        },
        "layers": [_layer_values(layer) for layer in result.layers],
        "unsupported": [{"reason": group.reason, "nodes": group.nodes} for group in result.network.unsupported],
        "other_operators": dict(result.network.others),
    }


def _board_values(result: CampaignResult) -> dict[str, Any]:
    """Return the board of the first run; its name alone before there is one."""
    run = next((layer.run for layer in result.layers if layer.run is not None), None)
    values: dict[str, Any] = {"name": result.campaign.settings["board"] if run is None else run.board}
    return values | {key: getattr(run, key, None) for key in ("parameters", "isa", "bitstream", "clock_hz")}


def write_schedule(path: Path, result: CampaignResult) -> None:
    """Write the file whole or not at all. Raises UnwritableFileError, OSError."""
    with atomic_write(path) as file:
        json.dump(schedule_values(result), file, indent=1)
        file.write("\n")


def read_schedule(path: Path) -> dict[Workload, dict[str, int]]:
    """Return the best knobs of each layer that has a schedule, by workload; also of a file of version 1.

    Raises ScheduleFileError, OSError, WorkloadError.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ScheduleFileError(f"{path} is no JSON: {error}") from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ScheduleFileError(f"{path} is no schedule file; `hilt campaign` and `hilt report --schedule` write one")
    if values.get("version") not in range(1, VERSION + 1):
        raise ScheduleFileError(f"{path} has version {values.get('version')}; this hilt reads up to {VERSION}")
    key = "configuration" if values["version"] == 1 else "knobs"
    try:
        return {
            load_workload(layer["operator"]): {name: int(value) for name, value in layer["schedule"][key].items()}
            for layer in values["layers"]
            if layer["schedule"] is not None
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise ScheduleFileError(f"{path}: a layer has no {error}") from None


def _layer_values(each: LayerResult) -> dict[str, Any]:
    run = each.run
    if run is None:
        return {"workload": each.layer.workload, "nodes": each.layer.nodes, "schedule": None, "fallback": None}
    return {
        "workload": each.layer.workload,
        "operator": format_workload(workload_of(run.workload_spec)),
        "nodes": each.layer.nodes,
        "count": each.layer.count,
        "run": run.uuid,
        "trials": each.trials,
        "space": {"kind": run.space_kind, "orders": run.orders, "size": run.space_size, "checks": run.checks},
        "schedule": _trial_values(each.best),
        "fallback": _trial_values(each.fallback),
        "gain": each.gain,
    }


def _trial_values(trial: Trial | None) -> dict[str, Any] | None:
    if trial is None:
        return None
    return {
        "knobs": dict(trial.knobs),
        "index": trial.index,
        "cycles": trial.cycles,
        "microseconds": trial.microseconds,
        "verified": trial.verified,
        "trial": trial.ordinal,
    }
