"""Board models of the user's own: a TVM parameter file, a TOML file, or a name kept by `hilt boards new-virtual`."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilt import paths
from hilt.virtual.errors import BoardNameError
from hilt.vta.accelerator import FieldOverflowError
from hilt.vta.parameters import ParameterError

if TYPE_CHECKING:
    from hilt.virtual.board_model import BoardModel

SUFFIXES = (".json", ".toml")
_KEPT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_BANDWIDTH_STEPS = 64
_LARGEST_CYCLES = 1 << 20


@dataclass(frozen=True)
class _Field:
    """A field of the TOML file: the type, its bounds, and the model's attributes it sets."""

    kind: type
    low: float
    high: float
    attributes: Callable[[Any], dict[str, Any]]


_FIELDS: dict[str, _Field] = {
    "bus_bits": _Field(int, 64, 128, lambda bits: {"bus_bits": bits}),
    "read_ports": _Field(int, 1, 4, lambda ports: {"read_ports": ports}),
    "clock_mhz": _Field(float, 1, 2000, lambda mhz: {"clock_hz": round(mhz * 1e6)}),
    "read_latency": _Field(int, 1, _LARGEST_CYCLES, lambda cycles: {"read_latency": cycles}),
    "write_latency": _Field(int, 1, _LARGEST_CYCLES, lambda cycles: {"write_latency": cycles}),
    "bytes_per_cycle": _Field(
        float,
        1 / _BANDWIDTH_STEPS,
        64,
        lambda rate: {
            "bandwidth_numerator": max(round(rate * _BANDWIDTH_STEPS), 1),
            "bandwidth_denominator": _BANDWIDTH_STEPS,
        },
    ),
    "jitter": _Field(int, 0, 1 << 16, lambda cycles: {"jitter": cycles}),
    "memory_mib": _Field(int, 16, 1024, lambda mib: {"memory_bytes": mib << 20}),
}
_TEXTS = {"parameters", "base", "hazards"}


def is_file(name: str) -> bool:
    """Return whether the part after `virtual:` names a file."""
    return name.endswith(SUFFIXES)


def canonical(name: str) -> str:
    """Return `virtual:FILE` with the file's absolute path, so that a run finds it from any folder; else the name."""
    prefix, colon, rest = name.partition(":")
    kind, mark, chaos = rest.partition("?")
    return f"{prefix}:{Path(kind).resolve()}{mark}{chaos}" if prefix == "virtual" and colon and is_file(kind) else name


def directory_name(name: str) -> str:
    """Return the directory of a file's virtual board: its stem and a digest of its path."""
    path = Path(name).resolve()
    stem = re.sub(r"[^a-z0-9_-]", "_", path.stem.lower())[:20]
    return f"own-{stem}-{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"


def kept_names() -> list[str]:
    """Return the names that `hilt boards new-virtual` keeps, sorted."""
    return sorted(path.stem for path in _folder().glob("*.toml"))


def keep(name: str, content: str, models: Mapping[str, BoardModel]) -> Path:
    """Keep a board model under a name and return its file. Raises BoardNameError if it is no model or is there."""
    from hilt.atomic_write import atomic_write

    if not _KEPT_NAME.fullmatch(name) or name in models:
        raise BoardNameError(
            f"{name!r} is no name for a new board model: take 1 to 32 of a-z, 0-9, - and _, and a new one"
        )
    path = _folder() / f"{name}.toml"
    if path.exists():
        raise BoardNameError(f"virtual:{name} is there already: {path}; remove the file, or take another name")
    _from_values(name, _parsed(path, content), path.parent, models)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)
    return path


def find(name: str, models: Mapping[str, BoardModel]) -> BoardModel | None:
    """Return the model of a file or of a kept name; None if there is none. Raises BoardNameError."""
    if name.endswith(".json"):
        own_path = str(Path(name).resolve())
        return _checked(replace(models["pynq"], name=own_path, parameters=own_path), name)
    path = Path(name) if name.endswith(".toml") else _folder() / f"{name}.toml"
    if not name.endswith(".toml") and (not _KEPT_NAME.fullmatch(name) or not path.is_file()):
        return None
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BoardNameError(f"cannot read the board model {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BoardNameError(f"the board model {path} is not TOML: {error}") from None
    # The supervisor finds the model again by its name: a file's is its path.
    own_name = str(path.resolve()) if name.endswith(".toml") else path.stem
    return _from_values(own_name, _parsed(path, content), path.parent, models)


def _folder() -> Path:
    return paths.home() / "board-models"


def _parsed(path: Path, content: str) -> dict[str, Any]:
    try:
        return tomllib.loads(content)
    except ValueError as error:
        raise BoardNameError(f"the board model {path} is not TOML: {error}") from error
    except RecursionError:
        raise BoardNameError(f"the board model {path} is not TOML: it is nested too deep") from None


def _from_values(name: str, values: Mapping[str, Any], folder: Path, models: Mapping[str, BoardModel]) -> BoardModel:
    unknown = set(values) - set(_FIELDS) - _TEXTS
    if unknown:
        known = ", ".join([*sorted(_TEXTS), *_FIELDS])
        raise BoardNameError(f"board model {name} has a field {min(unknown)!r}; the fields are {known}")
    for field in _TEXTS & set(values):
        if not isinstance(values[field], str):
            raise BoardNameError(f"board model {name}: {field} is {values[field]!r}; give text")
    base = values.get("base", "pynq")
    if base not in models:
        raise BoardNameError(f"board model {name}: base is {base!r}; there are {', '.join(models)}")
    changes: dict[str, Any] = {"name": name}
    for field, value in values.items():
        if field in _FIELDS:
            changes |= _attributes(name, field, value)
    if "parameters" in values:
        given = values["parameters"]
        changes["parameters"] = str((folder / given).resolve()) if given.endswith(".json") else given
    if "hazards" in values:
        changes["hazards"] = values["hazards"]
    return _checked(replace(models[base], **changes), name)


def _attributes(name: str, field: str, value: object) -> dict[str, Any]:
    info = _FIELDS[field]
    kinds = (int, float) if info.kind is float else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds) or not info.low <= value <= info.high:
        wanted = "number" if info.kind is float else "whole number"
        raise BoardNameError(
            f"board model {name}: {field} is {value!r}; give a {wanted} from {info.low:g} to {info.high:g}"
        )
    return info.attributes(value)


def _checked(model: BoardModel, name: str) -> BoardModel:
    """Return the model where its accelerator can be built. Raises BoardNameError, naming the field."""
    try:
        model.accelerator.require_rtl()
    except (ParameterError, FieldOverflowError) as error:
        raise BoardNameError(f"board model {name}: {error}") from error
    return model
