"""Options of a tuner: a frozen dataclass whose fields are the names a user may set, checked before anything runs."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

OptionsT = TypeVar("OptionsT")


class TunerOptionError(ValueError):
    """An option that a tuner does not have, or a value that it cannot take."""


def read_options(options: type[OptionsT], tuner: str, given: dict[str, object]) -> OptionsT:
    """Return the dataclass `options` with the given values. Raises TunerOptionError, which lists the allowed names."""
    fields = {field.name: field for field in dataclasses.fields(options)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in fields:
            allowed = ", ".join(fields) or "none"
            raise TunerOptionError(f"tuner {tuner} has no option {name!r}; its options: {allowed}")
        values[name] = _as_type_of(fields[name].default, value, f"option {name} of tuner {tuner}")
    return options(**values)


def require(condition: bool, message: str) -> None:
    """Raise TunerOptionError with the message unless the condition holds."""
    if not condition:
        raise TunerOptionError(message)


def _as_type_of(default: object, value: object, option: str) -> object:
    """Return the value as the default's type: a whole number serves as a fraction, nothing else is converted."""
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        raise TunerOptionError(f"{option} is a {type(default).__name__}, such as {default!r}; not {value!r}")
    return value
