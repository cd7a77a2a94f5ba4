"""A sweep file: base parameters, values to combine, and designs by name (docs/explore.md)."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hilt.did_you_mean import did_you_mean
from hilt.explore.design import Design
from hilt.explore.errors import SweepError
from hilt.network.core_speed import CORES
from hilt.vta.accelerator import READ_PORTS, FieldOverflowError
from hilt.vta.parameters import ParameterError, VTAParameters, bounds, load_parameters

MOST_DESIGNS = 10_000
_SURROUNDINGS: dict[str, tuple[float, float]] = {
    "bus_bits": (64, 128),
    "read_ports": (1, 4),
    "clock_mhz": (1, 2000),
    "read_ns": (1, 100_000),
    "write_ns": (1, 100_000),
    "memory_gb_s": (0, 1000),
}
"""Numbers besides VTA's parameters, with their bounds."""
_WORDS = ("bands", "processor")
"""Fields that are no numbers."""
_LOGS = tuple(VTAParameters.from_name("1x16_i8w8a32_15_15_18_17").to_mapping())
_TABLES = ("base", "sweep", "design")


@dataclass(frozen=True)
class Sweep:
    """The designs of a file, and the combinations that make no VTA."""

    designs: tuple[Design, ...]
    refused: tuple[str, ...]
    """A line for each reason: the combinations that were refused for it, and the field."""
    base: int | None = None
    """The place of the base in `designs`; None if it is not among them."""


def read_sweep(path: Path) -> Sweep:
    """Return the designs of a sweep file.

    A value that no VTA takes is an error. A combination of values that are possible one by one, but make no VTA
    together, is among `refused`.

    Raises:
        SweepError: The file cannot be read, or has a field or value that no VTA has.
    """
    content = _content(path)
    base = _base(path, _table(path, content, "base"))
    designs: list[Design] = []
    combinations: dict[str, list[str]] = {}
    for values in _sets(path, content):
        try:
            designs.append(_design(base | values))
        except (ParameterError, FieldOverflowError) as error:
            combinations.setdefault(str(error), []).append(_text(values))
    refused = tuple(f"{_first_of(texts)}: {reason}" for reason, texts in combinations.items())
    if not designs:
        raise SweepError(f"{path}: no combination makes a VTA; the first: {refused[0]}")
    distinct = tuple(dict.fromkeys(designs))
    return Sweep(distinct, refused, _place_of(base, distinct))


def _place_of(base: dict[str, Any], designs: Sequence[Design]) -> int | None:
    """Return the place of the base, whatever its name; None if it is not there, or makes no VTA."""
    try:
        wanted = _design(base)
    except (ParameterError, FieldOverflowError):
        return None
    places = (place for place, design in enumerate(designs) if replace(design, name="") == wanted)
    return next(places, None)


def _content(path: Path) -> dict[str, Any]:
    """Return the tables of a sweep file. Raises SweepError if it is no TOML, or has tables that no sweep has."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SweepError(f"cannot read the sweep {path}: {error.strerror}") from error
    except ValueError as error:
        raise SweepError(f"{path} is not TOML: {error}") from error
    for table in content:
        if table not in _TABLES:
            hint = did_you_mean(table, _TABLES, f"there are {', '.join(_TABLES)}")
            raise SweepError(f"{path}: there is no table [{table}]; {hint}")
    return content


def _sets(path: Path, content: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the values of each design: the combinations, then the named designs; the base alone without any."""
    swept = {name: _values(path, name, values) for name, values in _table(path, content, "sweep").items()}
    sets = [dict(zip(swept, chosen, strict=True)) for chosen in _combinations(path, swept)] if swept else []
    named = content.get("design", [])
    if not isinstance(named, list) or not all(isinstance(values, dict) for values in named):
        raise SweepError(f"{path}: write each design as [[design]]")
    sets += [_named(path, values) for values in named]
    return sets or [{}]


def _first_of(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{texts[0]} and {len(texts) - 1} more"


def _base(path: Path, values: dict[str, Any]) -> dict[str, Any]:
    given = dict(values)
    parameters = given.pop("parameters", "pynq")
    if not isinstance(parameters, str):
        raise SweepError(f"{path}: base.parameters is {parameters!r}; give a name such as pynq, or a .json file")
    file = path.parent / parameters if parameters.endswith(".json") else parameters
    try:
        known: dict[str, Any] = dict(load_parameters(file).to_mapping())
    except ParameterError as error:
        raise SweepError(f"{path}: base.parameters: {error}") from error
    for name, value in given.items():
        known[name] = _checked(path, f"base.{name}", name, value)
    return known


def _table(path: Path, content: dict[str, Any], name: str) -> dict[str, Any]:
    table = content.get(name, {})
    if not isinstance(table, dict):
        raise SweepError(f"{path}: {name} is not a table; write [{name}]")
    return table


def _values(path: Path, name: str, values: object) -> list[Any]:
    if not isinstance(values, list) or not values:
        raise SweepError(f"{path}: sweep.{name} is {values!r}; give a list of values")
    return [_checked(path, f"sweep.{name}", name, value) for value in values]


def _named(path: Path, values: dict[str, Any]) -> dict[str, Any]:
    name = values.get("name", "")
    if not isinstance(name, str):
        raise SweepError(f"{path}: a design's name is {name!r}; give text")
    checked = {key: _checked(path, f"design.{key}", key, value) for key, value in values.items() if key != "name"}
    return checked | ({"name": name} if name else {})


def _checked(path: Path, place: str, name: str, value: object) -> Any:
    """Return the value of a field. Raises SweepError where the field does not exist or no VTA takes the value."""
    if name in _LOGS:
        return _checked_log(path, place, name, value)
    if name in _SURROUNDINGS:
        return _checked_surrounding(path, place, name, value)
    if name not in _WORDS:
        known = [*_LOGS, *_SURROUNDINGS, *_WORDS]
        hint = did_you_mean(name, known, f"there are {', '.join(known)}")
        raise SweepError(f"{path}: there is no field {place}; {hint}")
    if name == "bands" and not isinstance(value, bool):
        raise SweepError(f"{path}: {place} is {value!r}; give true or false")
    if name == "processor" and value not in CORES:
        raise SweepError(f"{path}: {place} is {value!r}; give {' or '.join(CORES)}")
    return value


def _checked_log(path: Path, place: str, name: str, value: object) -> int:
    if type(value) is not int:
        raise SweepError(f"{path}: {place} is {value!r}; give a whole number, the log2")
    # Bounds of a single field are those of the parameters; a value that fails alone fails everywhere.
    low, high = bounds(name)
    if not low <= value <= high:
        raise SweepError(f"{path}: {place} is {value}; hilt's VTA takes {low}..{high}")
    return value


def _checked_surrounding(path: Path, place: str, name: str, value: object) -> int | float:
    low, high = _SURROUNDINGS[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise SweepError(f"{path}: {place} is {value!r}; give a number from {low:g} to {high:g}")
    if name == "bus_bits" and value not in (64, 128):
        raise SweepError(f"{path}: {place} is {value!r}; hilt's VTA takes 64 or 128")
    if name == "read_ports" and value not in READ_PORTS:
        raise SweepError(f"{path}: {place} is {value!r}; hilt's VTA has 1, 2 or 4")
    return value


def _combinations(path: Path, swept: dict[str, list[Any]]) -> list[tuple[Any, ...]]:
    count = 1
    for values in swept.values():
        count *= len(values)
    if count > MOST_DESIGNS:
        raise SweepError(f"{path}: the sweep has {count:,} combinations; give at most {MOST_DESIGNS:,}")
    return list(itertools.product(*swept.values()))


def _design(values: dict[str, Any]) -> Design:
    parameters = VTAParameters.from_mapping({name: values[name] for name in _LOGS})
    rest: dict[str, Any] = {
        name: float(values[name]) for name in ("read_ns", "write_ns", "memory_gb_s") if name in values
    }
    return Design(
        parameters,
        bus_bits=int(values.get("bus_bits", 64)),
        read_ports=int(values.get("read_ports", 1)),
        clock_hz=round(values.get("clock_mhz", 100) * 1e6),
        processor=values.get("processor", ""),
        name=values.get("name", ""),
        bands=values.get("bands", False),
        **rest,
    )


def _text(values: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items()) or "base"
