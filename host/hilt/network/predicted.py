"""An inference that did not run: VTA by the twin's cycles, the processor by the stated model of its core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hilt.network.core_speed import Core, core_of
from hilt.network.graph import Graph
from hilt.network.processor_time import modelled_time
from hilt.network.profile import Profile, profile


def predicted_profile(graph: Graph, manifest: Mapping[str, Any], core: Core | None = None) -> Profile:
    """Return the profile of an inference without a board, beside a core: else that of the bundle's board."""
    time = modelled_time(core or core_of(manifest["target"]["board"]), graph, manifest, {})
    steps: list[list[Any]] = []
    for step in manifest["steps"]:
        cycles = manifest["programs"][step["program"]]["cycles"] if step["kind"] == "vta" else None
        steps.append([step["kind"], step["name"], 0.0, 0.0, 0.0, cycles])
    return profile(manifest, [{"steps": steps}], time)
