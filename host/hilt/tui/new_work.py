"""The form for a new run or campaign: its fields, checked one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hilt import tune
from hilt.campaign import launch as campaigns
from hilt.campaign.budget import parse_budget
from hilt.engine import launch
from hilt.engine.run_spec import RunSpec, spec_of
from hilt.measure import describe_board
from hilt.schedule import load_workload
from hilt.schedule.networks import load_network, network_names
from hilt.schedule.onnx_model import SUFFIX
from hilt.store import Run


@dataclass(frozen=True)
class FieldError(Exception):
    """A field whose value cannot be used, and why."""

    field: str
    message: str


@dataclass(frozen=True)
class Started:
    """The run or the campaign that was started."""

    uuid: str
    is_campaign: bool


def is_network(workload: str) -> bool:
    """Return whether the text names a network of the catalogue or an ONNX model, which is tuned as a campaign."""
    return workload in network_names() or workload.endswith(SUFFIX)


def start(values: Mapping[str, str], like: Run | None, home: Path) -> Started:
    """Start the run or campaign of the fields; other settings are those of the run `like`.

    Raises:
        FieldError: A field's value cannot be used.
        Exception: The engine could not be started; the message says why.
    """
    spec = checked(values, like)
    if not is_network(spec.workload):
        return Started(launch.start(spec, home).uuid, False)
    campaign = campaigns.start(load_network(spec.workload), spec, parse_budget(values["trials"]), home)
    return Started(campaign.uuid, True)


def checked(values: Mapping[str, str], like: Run | None) -> RunSpec:
    """Return the settings that the fields ask for. Raises FieldError for the first field that is wrong."""
    workload, board, tuner = values["workload"], values["board"], values["tuner"]
    for field, check in (
        ("workload", lambda: load_network(workload) if is_network(workload) else load_workload(workload)),
        ("board", lambda: [describe_board(name) for name in board.split(",")]),
        ("tuner", lambda: tune.resolve_options(tuner)),
    ):
        try:
            check()
        except Exception as error:  # of catalogue, board or tuner: each names the fault in a line
            raise FieldError(field, str(error)) from error
    trials, seed = _whole("trials", values, 1), _whole("seed", values, 0)
    asked = RunSpec(workload, board, tuner, trials, seed)
    if like is None or is_network(workload):
        return asked
    before = spec_of(like)
    same_place = (workload, board) == (before.workload, before.board)
    return replace(
        before,
        workload=workload,
        board=board,
        tuner=tuner,
        trials=trials,
        seed=seed,
        limit_seconds=before.limit_seconds if same_place else None,
        tuner_options=before.tuner_options if tuner == before.tuner else {},
    )


def _whole(field: str, values: Mapping[str, str], least: int) -> int:
    text = values[field]
    try:
        number = int(text)
    except ValueError:
        raise FieldError(field, f"{field} is {text!r}; give a whole number") from None
    if number < least:
        raise FieldError(field, f"{field} is {number}; give {least} or more")
    return number


def taken_over(like: Run | None) -> str:
    """Return the settings that no field shows and that come from the run that is watched."""
    if like is None:
        return ""
    spec = spec_of(like)
    options = " ".join(f"{name}={value}" for name, value in spec.tuner_options.items())
    settings = f"batch {spec.batch}, space {spec.space_kind}, checks {spec.checks}, repeat {spec.repeat}"
    return f"As run {like.uuid[:8]}: {settings}{f', {options}' if options else ''}"
