"""The bitstream of a virtual board: a .bit file whose payload is the model of the accelerator."""

from __future__ import annotations

import glob
import hashlib
import json
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hilt import paths
from hilt.simulator.build import LIBRARY, Form, build, design_key, model_key
from hilt.simulator.cross_build import cross_build
from hilt.simulator.leftovers import remove_leftovers
from hilt.virtual.board_model import BoardModel
from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.linux.computer import COMPUTERS
from hilt_board.bitfile import PREAMBLE

# The same model makes the same file whenever it is built.
_DATE, _TIME = "2026/01/01", "00:00:00"


@dataclass(frozen=True)
class VirtualBitstream:
    """A .bit file on the host's disk and its identity."""

    path: Path
    sha256: str
    identity: str
    """The identity of the design and of the memory behind it: the same wherever it is built, another if its measured
    cycles differ."""


def bitstream_identity(board_model: BoardModel, form: Form | None = None) -> str:
    """Return the future identity of the bitstream of this board, without building it."""
    design = design_key(board_model.accelerator, form or board_model.form)
    return hashlib.sha256(f"{design} {_memory(board_model)}".encode()).hexdigest()


def twin_identity(board_model: BoardModel, form: Form | None = None) -> str:
    """Return the identity of the twin with the memory behind this board; empty where its device is not the RTL."""
    if (form or board_model.form) != "rtl":
        return ""
    twin = design_key(board_model.accelerator, "timing")
    return hashlib.sha256(f"{twin} {_memory(board_model)}".encode()).hexdigest()[:16]


def kept_model(board_model: BoardModel, identity: str) -> VirtualBitstream | None:
    """Return the bitstream of an identity, or of its first digits, that an earlier build left in the cache.

    The identity is of a design with its parameters and memory, and the file holds the design alone: only one that was
    made for the parameters and memory that the board has today is found.
    """
    found = list((paths.cache() / "bitstreams").glob(f"{glob.escape(identity)}*-{_suffix(board_model)}"))
    if len(found) != 1:
        return None
    digest = hashlib.sha256(found[0].read_bytes()).hexdigest()
    return VirtualBitstream(found[0], digest, found[0].name.partition("-")[0])


def _suffix(board_model: BoardModel) -> str:
    computer = f"-{board_model.computer}" if board_model.computer else ""
    facts = json.dumps(board_model.accelerator.defines(), sort_keys=True) + _memory(board_model)
    return f"{board_model.bit_part}{computer}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}.bit"


def _memory(board_model: BoardModel) -> str:
    """Return the facts beside the design that a board's cycles depend on, as text."""
    settings = board_model.device_settings()
    memory = json.dumps(settings["memory"], sort_keys=True)
    return memory + (json.dumps(settings["machine"], sort_keys=True) if "machine" in settings else "")


def is_built(board_model: BoardModel, form: Form | None = None) -> bool:
    """Return whether the model of a board without a computer of its own is in the cache. Raises MissingToolError."""
    key = model_key(board_model.accelerator, form or board_model.form)
    return (paths.cache() / "models" / key / LIBRARY).is_file()


def make_bitstream(board_model: BoardModel, form: Form | None = None) -> VirtualBitstream:
    """Build the model if it is not in the cache (a minute for the RTL) and wrap it.

    Raises the errors of hilt.simulator.build.build: a missing compiler, sources that do not build.
    """
    identity = bitstream_identity(board_model, form)
    remove_leftovers(paths.cache() / "models")
    library = _library(board_model, form or board_model.form)
    contents = bitfile(f"vta_{board_model.accelerator.parameters.name}", board_model.bit_part, library.read_bytes())
    path = paths.cache() / "bitstreams" / f"{identity}-{_suffix(board_model)}"
    if not path.is_file() or path.read_bytes() != contents:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A name of its own: the boards of a fleet are opened side by side, and each makes the file that is missing.
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as temporary:
            temporary.write(contents)
        Path(temporary.name).replace(path)
    return VirtualBitstream(path, hashlib.sha256(contents).hexdigest(), identity)


def _library(board_model: BoardModel, form: Form) -> Path:
    if not board_model.computer:
        return build(board_model.accelerator, form)
    if form != "rtl":
        raise VirtualBoardError(f"virtual:{board_model.name} runs the RTL only, not the {form} model")
    computer = COMPUTERS[board_model.computer]
    return cross_build(board_model.accelerator, computer.compiler, computer.compiler_flags)


def bitfile(design: str, part: str, payload: bytes) -> bytes:
    """Return a .bit file: Xilinx's header (big endian.

    A to d are text, e is the payload's length), then the payload.
    """
    fields = [(b"a", f"{design};UserID=0XFFFFFFFF;Version=hilt"), (b"b", part), (b"c", _DATE), (b"d", _TIME)]
    header = PREAMBLE
    for tag, text in fields:
        value = text.encode("ascii") + b"\0"
        header += tag + struct.pack(">H", len(value)) + value
    return header + b"e" + struct.pack(">I", len(payload)) + payload
