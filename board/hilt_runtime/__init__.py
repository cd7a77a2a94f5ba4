"""Runs networks that hilt compiled, on a board with VTA: numpy and pynq are all it needs.

from hilt_runtime import Network
with Network("model.hilt", bitstream="1x16_i8w8a32_15_15_18_17.bit") as network:
    y = network(x)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hilt_runtime.bundle import Bundle, BundleError, read_bundle
    from hilt_runtime.errors import (
        ClosedError,
        DeviceError,
        InferenceError,
        InputError,
        MemoryNeededError,
        NetworkError,
        StepError,
        TargetError,
    )
    from hilt_runtime.network import Network, Running
    from hilt_runtime.placed_network import Inference, StepRun

__all__ = [
    "Bundle",
    "BundleError",
    "ClosedError",
    "DeviceError",
    "Inference",
    "InferenceError",
    "InputError",
    "MemoryNeededError",
    "Network",
    "NetworkError",
    "Running",
    "StepError",
    "StepRun",
    "TargetError",
    "read_bundle",
]

_MODULES = {
    **dict.fromkeys(("Bundle", "BundleError", "read_bundle"), "bundle"),
    **dict.fromkeys(("Network", "Running"), "network"),
    **dict.fromkeys(("Inference", "StepRun"), "placed_network"),
}
"""Modules by the names that they define; the others are errors."""


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: who needs the ISA alone loads no network."""
    if name not in __all__:
        raise AttributeError("module {!r} has no attribute {!r}".format(__name__, name))
    return getattr(import_module(__name__ + "." + _MODULES.get(name, "errors")), name)
