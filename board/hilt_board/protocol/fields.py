"""Declarative checks of message fields: the same for the side that builds a message and the side that receives it."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any, Callable, Dict, Optional, Type, TypeVar

from .frames import ProtocolError

Check = Callable[[Any, str], Any]
"""(value, where) -> the value in its normal form; raises MessageError that names `where`."""

R = TypeVar("R", bound="Record")

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_KEY = re.compile(r"[A-Za-z0-9._-]{1,64}/[0-9]{1,9}/[0-9]{1,4}\Z")
_NAME = re.compile(r"[A-Za-z0-9_.:+-]{1,64}\Z")


class MessageError(ProtocolError):
    """A whole frame that is no valid message: the request is refused, the connection stays usable."""


def checked(check: Check, **keywords: Any) -> Any:
    """Return a dataclass field with its check; keywords as of dataclasses.field."""
    return dataclasses.field(metadata={"check": check}, **keywords)


class Record:
    """A base of messages and their records: frozen dataclasses whose every field is checked on construction."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            where = "{}.{}".format(type(self).__name__, field.name)
            object.__setattr__(self, field.name, field.metadata["check"](getattr(self, field.name), where))

    def to_fields(self) -> Dict[str, Any]:
        """Return JSON-able fields, in the form that `from_fields` takes."""
        return {
            field.name: _plain(getattr(self, field.name))
            for field in dataclasses.fields(self)  # type: ignore[arg-type]
            if field.metadata.get("on_wire", True)
        }

    @classmethod
    def from_fields(cls: Type[R], values: Any, where: str, **extra: Any) -> R:
        """Return the record of a JSON object.

        Fields it does not know, or lacks without a default, raise MessageError.
        """
        if not isinstance(values, dict):
            raise MessageError("{}: an object is needed, not {}".format(where, type(values).__name__))
        known = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise MessageError("{}: unknown field {!r}".format(where, str(unknown[0])[:64]))
        for name, field in known.items():
            has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
            if name not in values and name not in extra and not has_default:
                raise MessageError("{}: field {!r} is missing".format(where, name))
        return cls(**{**values, **extra})


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_fields()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def is_integer(low: int, high: int) -> Check:
    def check(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise MessageError("{}: an integer from {} to {} is needed".format(where, low, high))
        return value

    return check


def is_number(low: float, high: float) -> Check:
    def check(value: Any, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise MessageError("{}: a number is needed, not {}".format(where, type(value).__name__))
        if not low <= value <= high or not math.isfinite(value):
            raise MessageError("{}: a number from {} to {} is needed".format(where, low, high))
        return float(value)

    return check


def is_text(most: int) -> Check:
    def check(value: Any, where: str) -> str:
        if not isinstance(value, str) or len(value) > most:
            raise MessageError("{}: text of at most {} characters is needed".format(where, most))
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise MessageError("{}: text that is no Unicode".format(where)) from None
        return value

    return check


def matching(pattern: "re.Pattern[str]", kind: str) -> Check:
    def check(value: Any, where: str) -> str:
        if not isinstance(value, str) or not pattern.match(value):
            raise MessageError("{}: {} is needed".format(where, kind))
        return value

    return check


is_sha256 = matching(_SHA256, "a SHA-256 in lower-case hex")
is_key = matching(_KEY, 'a key "run/ordinal/attempt"')
is_name = matching(_NAME, "a name of 1 to 64 letters, digits or _.:+-")


def is_boolean(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise MessageError("{}: true or false is needed".format(where))
    return value


def one_of(*values: Any) -> Check:
    def check(value: Any, where: str) -> Any:
        # 1 == True: the type must agree too.
        if not any(type(value) is type(allowed) and value == allowed for allowed in values):
            raise MessageError("{}: one of {} is needed".format(where, ", ".join(map(str, values))))
        return value

    return check


def optional(inner: Check) -> Check:
    def check(value: Any, where: str) -> Any:
        return None if value is None else inner(value, where)

    return check


def list_of(inner: Check, most: int) -> Check:
    def check(value: Any, where: str) -> Any:
        if not isinstance(value, (list, tuple)) or len(value) > most:
            raise MessageError("{}: a list of at most {} is needed".format(where, most))
        return tuple(inner(item, "{}[{}]".format(where, index)) for index, item in enumerate(value))

    return check


def map_of(inner: Check, most: int) -> Check:
    def check(value: Any, where: str) -> Dict[str, Any]:
        if not isinstance(value, dict) or len(value) > most:
            raise MessageError("{}: an object of at most {} names is needed".format(where, most))
        return {is_name(key, where): inner(item, "{}.{}".format(where, key)) for key, item in value.items()}

    return check


def record(cls: Type[R]) -> Check:
    def check(value: Any, where: str) -> R:
        return value if isinstance(value, cls) else cls.from_fields(value, where)

    return check


def body(most: int) -> Any:
    """Return a field that travels as (part of) the frame's binary body, not in its JSON."""

    def check(value: Any, where: str) -> bytes:
        if not isinstance(value, bytes) or len(value) > most:
            raise MessageError("{}: at most {} bytes are needed".format(where, most))
        return value

    return dataclasses.field(default=b"", metadata={"check": check, "on_wire": False})


def body_field(cls: Type[Any]) -> Optional[str]:
    """Return the name of the field of `cls` that is the frame's body."""
    for field in dataclasses.fields(cls):
        if not field.metadata.get("on_wire", True):
            return field.name
    return None
