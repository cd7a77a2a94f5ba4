"""Runs and campaigns as the database holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hilt.store.remeasurements import ROUNDS
from hilt.trial import Trial


class RunState(StrEnum):
    """The state of a run. One that is `running` or `paused` without an engine was interrupted; it can be resumed."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    FAILED = "failed"
    FINISHED = "finished"


@dataclass(frozen=True)
class Run:
    """The settings and the state of a run.

    Equality leaves out identity, time and state: two equal runs give the same trials on a deterministic board.
    """

    uuid: str = field(compare=False)
    workload: str
    """Its name, as in `resnet18.C5`."""
    workload_spec: Mapping[str, Any]
    """The operator and its shapes, plain."""
    board: str = field(compare=False)
    parameters: str
    """Name of the VTA parameter set, as in `1x16_i8w8a32_15_15_18_17`."""
    isa: str
    bitstream: str
    """The identity of the board's bitstream."""
    clock_hz: int
    tuner: str
    tuner_options: Mapping[str, Any]
    seed: int
    checks: str
    """Level of the compiler's checks."""
    space_kind: str
    """A value of hilt.run_choices.SpaceName."""
    orders: int
    """Loop orders that the space has."""
    space: str
    """The knobs and their values, in one line."""
    space_size: int
    budget: int
    """Trials."""
    batch: int
    """Trials asked of the tuner at a time."""
    repeat: int
    limit_seconds: float
    """The longest that one run of a program may take, in seconds of the board's clock."""
    output_elements: int
    """Elements of the output as the board writes it, channels padded to the block: all are compared."""
    macs: int
    """Multiply-accumulates of the workload."""
    bound_cycles: int
    """The roofline bound: no schedule takes fewer cycles."""
    versions: Mapping[str, str] = field(compare=False)
    created: float = field(compare=False)
    """Seconds since the epoch, as all times here."""
    number: int = 1
    """Runs of a program that are averaged in one figure: TVM's `number`."""
    state: RunState = field(default=RunState.CREATED, compare=False)
    detail: str = field(default="", compare=False)
    """Why it is in that state, in words."""
    failure: str = field(default="", compare=False)
    """The cause of a failure, a value of hilt.engine.events.FailureCause; empty if it did not fail."""
    finished: float | None = field(default=None, compare=False)
    campaign: str | None = field(default=None, compare=False)
    """The uuid of its campaign, if it is the run of a network's layer."""
    predicted_microseconds: float | None = field(default=None, compare=False)
    """The twin's prediction of the fallback's latency, made before the first trial of a campaign's layer."""
    confidence: float | None = field(default=None, compare=False)
    """The tuner's confidence after the latest results that it was told; None from a tuner that states none."""
    rounds: int | None = ROUNDS
    """Rounds in which the best trials are measured again at the end; None: as many as their noise needs."""

    @property
    def bound_microseconds(self) -> float:
        return self.bound_cycles / self.clock_hz * 1e6

    def gops(self, microseconds: float) -> float:
        """Return giga-operations a second, a multiply-accumulate being two, at this latency."""
        return 2 * self.macs / microseconds / 1e3

    def percent_of_bound(self, microseconds: float) -> float:
        """Return the roofline bound over this latency in percent; 100 is the bound itself."""
        return 100 * self.bound_microseconds / microseconds


@dataclass(frozen=True)
class Campaign:
    """A network that is tuned with one budget for all its layers. Its runs name it."""

    uuid: str
    name: str
    network: Mapping[str, Any]
    """Its layers, plain: hilt.schedule.onnx_model.Network."""
    settings: Mapping[str, Any]
    """The settings that all its runs share, as plain values."""
    created: float
    budget: Mapping[str, float]
    """`trials` or `seconds`."""
    fallback_first: bool = True
    """Each run begins with the search for the fallback. False for campaigns of schema 7 and older without a budget."""
    state: RunState = field(default=RunState.CREATED, compare=False)
    detail: str = field(default="", compare=False)
    failure: str = field(default="", compare=False)
    finished: float | None = field(default=None, compare=False)
    spent_seconds: float = field(default=0.0, compare=False)
    """Wall-clock seconds of its engine over all sessions, without pauses."""


@dataclass(frozen=True)
class Slice:
    """Some trials that a campaign gives to one of its layers.

    In order of their ordinals they are the campaign's decisions: when it goes on, nothing is decided again.
    """

    ordinal: int
    workload: str
    trials: int
    """Asked of the layer's tuner, which may have fewer."""
    expected_gain: float
    """Microseconds of the whole network a trial; 0 if it was the layer's turn."""


@dataclass(frozen=True)
class RunSummary:
    """A run with the facts that a list shows."""

    run: Run
    trials: int
    valid: int
    """Trials whose whole output was right."""
    best: Trial | None
