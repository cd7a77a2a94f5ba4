"""The errors of running a network; each message is one line that names the remedy."""

from __future__ import annotations


class NetworkError(Exception):
    """A network that cannot be run; the base of the errors below."""


class TargetError(NetworkError):
    """A bundle for another accelerator than the one that is there."""


class InputError(NetworkError):
    """An input of another name, shape or type than the network's."""


class StepError(NetworkError):
    """A step of the processor that cannot be computed with these inputs: a place that is not there, for one."""


class MemoryNeededError(NetworkError):
    """The board has less contiguous memory than the network needs."""


class DeviceError(NetworkError):
    """The device cannot be used: no bitstream, registers that do not answer."""


class ClosedError(NetworkError):
    """A network that was closed is run."""


class InferenceError(NetworkError):
    """VTA did not finish a part of the network. The accelerator must be reset before it runs again."""

    def __init__(self, message: str, outcome: str) -> None:
        super().__init__(message)
        self.outcome = outcome
        """timeout, bus_error or crash."""
