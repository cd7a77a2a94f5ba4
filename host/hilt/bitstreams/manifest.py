"""The manifest of bitstreams: the shipped entries, then the user's own in HILT_HOME/bitstreams."""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hilt import paths
from hilt.vta.accelerator import Accelerator, IsaRevision
from hilt.vta.parameters import load_parameters


class BitstreamError(Exception):
    """A bitstream that cannot be used; the base of this package's errors."""


class ManifestError(BitstreamError):
    """A manifest that cannot be read; the message names the file, the entry and the key."""


class UnknownBitstreamError(BitstreamError):
    """No entry of that name; the message lists close ones."""


_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_HTTPS = "https://"


@dataclass(frozen=True)
class Bitstream:
    """One entry of the manifest (HARDWARE.md sections 1 and 6)."""

    name: str
    board: str
    part: str
    """The part, as the .bit header writes it."""
    parameters: str
    """Name of a parameter file in bitstreams/parameters, or the path of one."""
    isa: Literal["A", "B", "wide"]
    clock_hz: int
    register_base: int
    """Byte address of fetch's registers; load, compute and store follow at 0x1000 each."""
    fclk_hz: int = 0
    """The processing system's clock to the fabric, if a PLL of the design makes `clock_hz` of it; 0: `clock_hz`."""
    bus_bits: int = 64
    hazards: Literal["interlock", "none"] = "none"
    table: bool = False
    """Whether its STOREs can go by way of a table."""
    read_ports: int = 1
    """Ports of the memory that weights and rows of inputs are read over."""
    window: bool = False
    """Whether its GEMMs can read inputs of earlier iterations."""
    bands: bool = False
    """Whether its LOADs of INP move batch lanes."""
    identity: bool = False
    """A flag: it has hilt's own registers (docs/architecture.md); if so, they must agree."""
    hardware_version: str = ""
    built: str = ""
    source: str = ""
    """The source for users; empty for a bitstream that the user builds."""
    sha256: str = ""
    """The sum of the .bit file; empty if it is not known beforehand."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, wanted = getattr(self, field.name), _TYPES[field.name]
            if type(value) is not wanted:
                raise ManifestError(f"{self.name}: {field.name} is {value!r}; it must be {wanted.__name__}")
            if isinstance(value, str) and value.encode(errors="ignore").decode() != value:
                raise ManifestError(f"{self.name}: {field.name} is {value!r}, which is no text")
        if not _NAME.match(self.name):
            raise ManifestError(f"{self.name!r} is no bitstream name: use a-z, 0-9, . - _, at most 64")
        if self.isa not in ("A", "B", "wide"):
            raise ManifestError(f"{self.name}: isa is {self.isa!r}; it must be A, B or wide")
        if self.register_base % 0x1000:
            raise ManifestError(f"{self.name}: register_base {self.register_base:#x} is not 4 KiB aligned")
        if self.sha256 and not _SHA256.match(self.sha256):
            raise ManifestError(f"{self.name}: sha256 is not 64 hex digits")
        if self.source and not self.source.startswith(_HTTPS):
            raise ManifestError(f"{self.name}: source must start with {_HTTPS}")

    def accelerator(self) -> Accelerator:
        """Return the VTA in it. Raises the parameter errors of hilt.vta where the entry describes none."""
        return Accelerator(
            load_parameters(self.parameters),
            IsaRevision(self.isa),
            bus_bits=self.bus_bits,
            hazards=self.hazards,
            clock_hz=self.clock_hz,
            table=self.table,
            read_ports=self.read_ports,
            window=self.window,
            bands=self.bands,
        )


_TYPES: dict[str, type] = {
    field.name: {"int": int, "bool": bool}.get(str(field.type), str) for field in dataclasses.fields(Bitstream)
}


def user_directory() -> Path:
    """Return the folder of the user's own entries and of every fetched or added .bit file."""
    return paths.home() / "bitstreams"


def load_manifest() -> dict[str, Bitstream]:
    """Return all entries by name; the user's own come after the shipped ones and replace those of the same name."""
    return read_manifest(paths.bitstreams_directory() / "manifest.toml") | read_manifest(
        user_directory() / "manifest.toml"
    )


def read_manifest(path: Path) -> dict[str, Bitstream]:
    """Return the entries of one file; none if it does not exist. Raises ManifestError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ManifestError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ManifestError(f"{path} is not text: {error}") from error
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{path} is not TOML: {error}; mend that line") from error
    return {name: _entry(path, name, table) for name, table in tables.items()}


def find(name: str) -> Bitstream:
    """Return the entry of that name. Raises UnknownBitstreamError."""
    manifest = load_manifest()
    if name not in manifest:
        close = difflib.get_close_matches(name, manifest) or sorted(manifest)
        raise UnknownBitstreamError(f"no bitstream named {name!r}; known are {', '.join(close)} (hilt bitstream list)")
    return manifest[name]


def _entry(path: Path, name: str, table: Any) -> Bitstream:
    if not isinstance(table, Mapping):
        raise ManifestError(f"{path}: {name} is not a table of keys")
    unknown = set(table) - set(_TYPES) | ({"name"} & set(table))
    if unknown:
        raise ManifestError(f"{path}: {name} has an unknown key {min(unknown)!r}")
    try:
        return Bitstream(name=name, **table)
    except TypeError as error:
        raise ManifestError(f"{path}: {name} lacks a key: {error}") from error
    except ManifestError as error:
        raise ManifestError(f"{path}: {error}") from error
