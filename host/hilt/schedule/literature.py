"""Published figures of the spaces of the catalogue's workloads, to print beside our own."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class PublishedSpace:
    """Table II of HW-Aware Initialization (arXiv 2205.15568): configurations, and the share of them that is valid."""

    size: int
    valid_ratio: float


@cache
def published_spaces() -> dict[str, PublishedSpace]:
    """Return the published space by workload name, for the workloads that the table has."""
    text = resources.files("hilt.schedule").joinpath("workloads.toml").read_text(encoding="utf-8")
    return {
        f"{network}.{layer}": PublishedSpace(values["space_size"], values["valid_ratio"])
        for network, layers in tomllib.loads(text).items()
        for layer, values in layers.items()
        if "space_size" in values
    }
