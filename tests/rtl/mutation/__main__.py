"""`make rtl-mutation`: small changes of the RTL, one at a time, and which of them tests and proofs notice.

    python -m tests.rtl.mutation [--no-proofs] [NUMBER ...]

Tests are random programs and programs that fault, against the golden model, on a small build with assertions, and their
cycles and counters against those of the RTL as it is. All mutants of a bench are in one build, and a run chooses one.
Proofs are those of hls/formal, for the modules that have one. Ends with status 1 where neither notices a mutant.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from hilt import paths
from hilt.simulator.build import build as build_model
from tests.rtl.mutation import ports_bench, small_bench, window_bench
from tests.rtl.mutation.mutant import Mutant, mutants, mutated_rtl, with_all
from tests.rtl.mutation.simulation import Bench, build, observe

BENCHES = {"small": small_bench.BENCH, "windows": window_bench.BENCH, "ports": ports_bench.BENCH}


def main() -> int:
    """Print a line for each mutant and the shares; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.rtl.mutation", description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, metavar="NUMBER", help="of the list; all unless given")
    parser.add_argument("--no-proofs", action="store_true", help="run the tests alone")
    options = parser.parse_args()
    listed = mutants()
    chosen = [mutant for mutant in listed if not options.numbers or mutant.number in options.numbers]
    begun = time.monotonic()
    by_tests: dict[int, str | None] = {}
    by_proofs: dict[int, str | None] = {}
    for name, bench in BENCHES.items():
        on_bench = [mutant for mutant in chosen if mutant.bench == name]
        for mutant, sign in _observed(bench, [mutant for mutant in listed if mutant.bench == name], on_bench):
            by_tests[mutant.number] = sign
            if mutant.proofs and not options.no_proofs:
                by_proofs[mutant.number] = refuted(mutant)
            proof = by_proofs.get(mutant.number, "no proof of this module")
            print(f"{mutant.number:3} {mutant.name:46} {sign or 'SURVIVES':60} {proof or 'HOLDS'}", flush=True)
    killed = {number for number, sign in by_tests.items() if sign}
    refuted_by = {number for number, sign in by_proofs.items() if sign}
    asserted = sum(bool(sign and sign.startswith("assertion")) for sign in by_tests.values())
    print(f"\n{len(chosen)} mutants in {time.monotonic() - begun:.0f} s")
    timed = sum(bool(sign and sign.startswith("time")) for sign in by_tests.values())
    print(
        f"tests notice {len(killed)} ({len(killed) / len(chosen):.0%}), {asserted} of them by an assertion first,"
        f" {timed} by time alone"
    )
    if by_proofs:
        print(f"proofs notice {len(refuted_by)} of the {len(by_proofs)} in modules that have one")
    survivors = [mutant.name for mutant in chosen if mutant.number not in killed | refuted_by]
    print("nothing notices: " + ("; ".join(survivors) or "none"))
    return 1 if survivors else 0


def _observed(bench: Bench, listed: list[Mutant], chosen: list[Mutant]) -> Iterator[tuple[Mutant, str | None]]:
    """Yield the chosen mutants of a bench with what its runs show of each. Raises SystemExit if they show something
    without a mutant."""
    if not chosen:
        return
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rtl-mutation-") as name:
        folder = Path(name)
        golden = build_model(bench.accelerator, "golden")
        library = build(bench.accelerator, with_all(listed, folder), folder)
        print(f"built {bench.accelerator.parameters.name} in {time.monotonic() - begun:.0f} s", flush=True)
        right = observe(bench, library, golden, 0)
        if right.sign:
            raise SystemExit(f"the RTL differs without a mutant: {right.sign}")
        for mutant in chosen:
            yield mutant, observe(bench, library, golden, mutant.number, right).compared(right)


def refuted(mutant: Mutant) -> str | None:
    """Return the assertion that a proof of the mutant's module finds broken, or None."""
    prove = _prove()
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        rtl = mutated_rtl(mutant, Path(folder))
        for name in mutant.proofs:
            holds, text = prove.check(prove.PROOFS[name], rtl, covers=False)
            if not holds:
                failed = [line.rpartition(" ")[2] for line in text.splitlines() if "Assert failed" in line]
                return f"{name}: {failed[0] if failed else text.splitlines()[-1]}"
    return None


def _prove() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prove", paths.hls_directory() / "formal" / "prove.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["prove"] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
