"""The inference that a campaign of a quantised model ended with, as it is kept in the campaign's directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hilt.engine.run_files import RunFiles
from hilt.network.core_speed import START_SECONDS, core_of
from hilt.network.latency import Latency
from hilt.network.timeline import CROSSINGS
from hilt.store import Store
from hilt.virtual.names import PREFIX

INFERENCE = "inference.json"
"""In a campaign's directory: hilt.campaign.network_bundle.TunedInference.to_dict."""


@dataclass(frozen=True)
class CampaignInference:
    """A campaign's inference.

    Attributes:
        board: The board that it ran on.
        before: The whole inference with the fallback schedules.
        after: The same with the tuned ones.
        chosen: Which of the bundles was the fastest, in words.
        tensors: Tensors of it that were compared with the integer reference, all equal.
        elements: Their elements.
        values: All that was kept.
    """

    board: str
    before: Latency
    after: Latency
    chosen: str
    tensors: int
    elements: int
    values: Mapping[str, Any]

    @property
    def gain(self) -> float:
        """The factor by which the whole inference is faster than with the fallback schedules."""
        return self.before.total / self.after.total if self.after.total else 1.0


def load_inference(store: Store, campaign: str) -> CampaignInference | None:
    """Return the inference of the campaign with this uuid; None if it has none, or a damaged one."""
    path = RunFiles(store.path.parent, campaign).directory / INFERENCE
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        board = str(values["board"])
        return CampaignInference(
            board,
            _latency(values["before"], board),
            _latency(values["after"], board),
            str(values.get("chosen", "")),
            int(values["verified"]["tensors"]),
            int(values["verified"]["elements"]),
            values,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _latency(profile: Mapping[str, Any], board: str) -> Latency:
    """Return the record of a profile; one of an older version has the times of a virtual board's host."""
    if "latency" in profile:
        return Latency.from_dict(profile["latency"])
    starts = int(profile.get("starts", 1))
    core = core_of(board) if board.startswith(PREFIX) else None
    slower = core.numpy_slower if core is not None else 1.0
    start = float(profile["start"]) if core is None else starts * START_SECONDS["numpy"] * 1e6
    assumed = "" if core is None else f"assumed of a {core.name}: {slower:g} times a desktop's time"
    crossings = sum(float(step["microseconds"]) for step in profile["steps"] if step["kind"] in CROSSINGS)
    processor = float(profile["processor"]) - crossings
    return Latency(float(profile["vta"]), start, crossings * slower, max(processor, 0.0) * slower, starts, assumed)
