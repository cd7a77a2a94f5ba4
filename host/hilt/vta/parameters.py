"""The parameters of a VTA: the log2 values of TVM's parameter file, and derived values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from hilt import paths


class ParameterError(ValueError):
    """A parameter file that is missing, unreadable or describes no VTA; the message names the field."""


_NAME = re.compile(r"(\d+)x(\d+)_i(\d+)w(\d+)a(\d+)_(\d+)_(\d+)_(\d+)_(\d+)")

# The values that each field may have. Widths are those of the datapath (int8 x int8 -> int32). Buffer sizes are bounded
# by their depth, see __post_init__.
_BOUNDS = {
    "log_inp_width": (3, 3),
    "log_wgt_width": (3, 3),
    "log_acc_width": (5, 5),
    "log_batch": (0, 4),
    "log_block": (2, 6),
    "log_uop_buff_size": (4, 18),
    "log_inp_buff_size": (0, 31),
    "log_wgt_buff_size": (0, 31),
    "log_acc_buff_size": (0, 31),
}


@dataclass(frozen=True)
class VTAParameters:
    """The log2 values of a parameter file (HARDWARE.md section 1): widths in bits, buffer sizes in bytes.

    Raises ParameterError where a value makes no VTA that hilt can model. A buffer has from 2 to 2^16 elements: the
    16-bit sram_base of LOAD and STORE reaches no further.
    """

    log_inp_width: int
    log_wgt_width: int
    log_acc_width: int
    log_batch: int
    log_block: int
    log_uop_buff_size: int
    log_inp_buff_size: int
    log_wgt_buff_size: int
    log_acc_buff_size: int

    def __post_init__(self) -> None:
        for name, (low, high) in _BOUNDS.items():
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                wanted = str(low) if low == high else f"{low}..{high}"
                raise ParameterError(f"{name.upper()} is {value!r}; hilt's VTA takes {wanted}")
        for kind in ("inp", "wgt", "acc"):
            depth = getattr(self, f"{kind}_depth")
            if not 2 <= depth <= 1 << 16:
                raise ParameterError(
                    f"LOG_{kind.upper()}_BUFF_SIZE gives a buffer of {depth} elements; a VTA's has 2 to 65536"
                )

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> VTAParameters:
        """Return the parameters of a parsed parameter file.

        TARGET and HW_VER are labels and are not read. A separate output width or block size (older files) must
        equal the
        input's, because the hardware has only one.
        """
        arguments: dict[str, int] = {}
        for field in fields(cls):
            key = field.name.upper()
            if key not in values:
                raise ParameterError(f"{key} is missing from the VTA parameters")
            value = values[key]
            if not isinstance(value, int):
                raise ParameterError(f"{key} is {value!r}; it must be an integer (a log2)")
            arguments[field.name] = value
        for key, same_as in (
            ("LOG_OUT_WIDTH", "LOG_INP_WIDTH"),
            ("LOG_BLOCK_IN", "LOG_BLOCK"),
            ("LOG_BLOCK_OUT", "LOG_BLOCK"),
        ):
            if key in values and values[key] != values[same_as]:
                raise ParameterError(f"{key} is {values[key]!r} but {same_as} is {values[same_as]!r}; they must agree")
        return cls(**arguments)

    @classmethod
    def from_name(cls, name: str) -> VTAParameters:
        """Return the parameters of VTA's own name for them, the inverse of `name`."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise ParameterError(f"{name!r} is no name of VTA parameters; they are named as 1x16_i8w8a32_15_15_18_17")
        batch, block, inp, wgt, acc, *sizes = (int(group) for group in match.groups())
        logs = {"batch": batch, "block": block, "inp_width": inp, "wgt_width": wgt, "acc_width": acc}
        for field, value in logs.items():
            if value.bit_count() != 1:
                raise ParameterError(f"{name!r}: {field} is {value}; it must be a power of two")
        kinds = ("uop", "inp", "wgt", "acc")
        return cls(
            **{f"log_{field}": value.bit_length() - 1 for field, value in logs.items()},
            **{f"log_{kind}_buff_size": size for kind, size in zip(kinds, sizes, strict=True)},
        )

    def to_mapping(self) -> dict[str, int]:
        """The keys and values of a parameter file."""
        return {field.name.upper(): getattr(self, field.name) for field in fields(self)}

    @property
    def name(self) -> str:
        """VTA's own name, such as `1x16_i8w8a32_15_15_18_17`."""
        widths = f"i{1 << self.log_inp_width}w{1 << self.log_wgt_width}a{1 << self.log_acc_width}"
        sizes = f"{self.log_uop_buff_size}_{self.log_inp_buff_size}_{self.log_wgt_buff_size}_{self.log_acc_buff_size}"
        return f"{self.batch}x{self.block}_{widths}_{sizes}"

    @property
    def batch(self) -> int:
        return 1 << self.log_batch

    @property
    def block(self) -> int:
        return 1 << self.log_block

    @property
    def inp_element_bytes(self) -> int:
        return self.batch * self.block << self.log_inp_width >> 3

    @property
    def wgt_element_bytes(self) -> int:
        return self.block * self.block << self.log_wgt_width >> 3

    @property
    def acc_element_bytes(self) -> int:
        return self.batch * self.block << self.log_acc_width >> 3

    @property
    def out_element_bytes(self) -> int:
        return self.inp_element_bytes

    @property
    def inp_depth(self) -> int:
        """Elements of the input buffer."""
        return (1 << self.log_inp_buff_size) // self.inp_element_bytes

    @property
    def wgt_depth(self) -> int:
        """Elements of the weight buffer."""
        return (1 << self.log_wgt_buff_size) // self.wgt_element_bytes

    @property
    def acc_depth(self) -> int:
        """Elements of the accumulator, and of the output buffer."""
        return (1 << self.log_acc_buff_size) // self.acc_element_bytes


def bounds(key: str) -> tuple[int, int]:
    """Return the least and the largest value of a key such as LOG_BLOCK, taken alone."""
    return _BOUNDS[key.lower()]


def load_parameters(name: str | Path) -> VTAParameters:
    """The parameter file of this name (`pynq`: bitstreams/parameters/pynq.json) or at this path (ends in .json)."""
    path = Path(name)
    if path.suffix != ".json":
        known = paths.bitstreams_directory() / "parameters"
        path = known / f"{name}.json"
        if not path.is_file():
            names = ", ".join(sorted(file.stem for file in known.glob("*.json")))
            raise ParameterError(f"no VTA parameters named {str(name)!r}; known are {names}, or give a .json file")
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise ParameterError(f"cannot read VTA parameters {path}: {error.strerror}") from error


@cache
def _read(path: Path, changed: int) -> VTAParameters:
    """Return the parameters of a file; `changed` is its time, so that each version is read once."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(f"cannot read VTA parameters {path}: {error.strerror}") from error
    except ValueError as error:
        raise ParameterError(f"VTA parameters {path} are not JSON: {error}") from error
    if not isinstance(values, dict):
        raise ParameterError(f"VTA parameters {path} are not a JSON object")
    try:
        return VTAParameters.from_mapping(values)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from error
