"""The bitstream of a virtual board: a .bit file whose payload is the model of the accelerator."""

from __future__ import annotations

import hashlib
import json
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hilt import paths
from hilt.simulator.build import Form, build, design_key
from hilt.virtual.board_model import BoardModel
from hilt_board.bitfile import PREAMBLE

MODEL_FORM: Form = "rtl"
"""What is simulated is what is flashed."""

# The same model makes the same file whenever it is built.
_DATE, _TIME = "2026/01/01", "00:00:00"


@dataclass(frozen=True)
class VirtualBitstream:
    """A .bit file on the host's disk and what identifies it."""

    path: Path
    sha256: str
    identity: str
    """Of the design and the memory behind it: the same wherever it is built, another where it measures otherwise."""


def bitstream_identity(board_model: BoardModel, form: Form = MODEL_FORM) -> str:
    """Return the identity of this board's bitstream, without building it."""
    memory = json.dumps(board_model.device_settings()["memory"], sort_keys=True)
    return hashlib.sha256(f"{design_key(board_model.accelerator, form)} {memory}".encode()).hexdigest()


def make_bitstream(board_model: BoardModel, form: Form = MODEL_FORM) -> VirtualBitstream:
    """Build the model where it is not in the cache (a minute for the RTL) and wrap it.

    Raises what hilt.simulator.build.build raises: a missing compiler, sources that do not build.
    """
    identity = bitstream_identity(board_model, form)
    library = build(board_model.accelerator, form)
    contents = bitfile(f"vta_{board_model.accelerator.parameters.name}", board_model.bit_part, library.read_bytes())
    path = paths.cache() / "bitstreams" / f"{identity}-{board_model.bit_part}.bit"
    if not path.is_file() or path.read_bytes() != contents:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A name of its own: the boards of a fleet are opened side by side, and each makes the file that is missing.
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as temporary:
            temporary.write(contents)
        Path(temporary.name).replace(path)
    return VirtualBitstream(path, hashlib.sha256(contents).hexdigest(), identity)


def bitfile(design: str, part: str, payload: bytes) -> bytes:
    """Return a .bit file: Xilinx's header (big endian; a to d are text, e is the payload's length), then the
    payload."""
    fields = [(b"a", f"{design};UserID=0XFFFFFFFF;Version=hilt"), (b"b", part), (b"c", _DATE), (b"d", _TIME)]
    header = PREAMBLE
    for tag, text in fields:
        value = text.encode("ascii") + b"\0"
        header += tag + struct.pack(">H", len(value)) + value
    return header + b"e" + struct.pack(">I", len(payload)) + payload
