"""The package `hilt_experiments` beside hilt, for the commands that need it."""

from __future__ import annotations

from importlib.util import find_spec

PACKAGE = "hilt_experiments"


class ExperimentsExtraError(ValueError):
    """The package hilt_experiments is not installed."""


def require_experiments(command: str) -> None:
    """Raise ExperimentsExtraError unless hilt_experiments can be imported."""
    if find_spec(PACKAGE) is None:
        raise ExperimentsExtraError(
            f"`{command}` needs the package hilt-experiments: pip install 'hilt[experiments]', "
            "or from a clone: pip install ./experiments"
        )
