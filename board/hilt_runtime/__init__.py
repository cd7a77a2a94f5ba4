"""Runs networks that hilt compiled, on a board with VTA: numpy and pynq are all it needs.

from hilt_runtime import Network
with Network("model.hilt", bitstream="1x16_i8w8a32_15_15_18_17.bit") as network:
    y = network(x)
"""

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
