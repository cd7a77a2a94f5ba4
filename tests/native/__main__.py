"""`make native`: the recorded operators on armhf and arm64 (QEMU) and under sanitizers, and instructions an element."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.native.cases import instructions_an_element
from tests.native.tools import ROOT, SANITIZERS, build, run
from tests.unit.network.engines import RECORDS

_TESTS = (
    *("test_integer_operators.py", "test_processor_bits.py", "test_native_engine.py", "test_native_forms.py"),
    *("test_counted_sums.py", "test_extremes.py", "test_fixed_matmul.py", "test_integer_norms.py", "test_softmax.py"),
)
_FUZZED = 200_000


def recorded(folder: Path) -> Path:
    """Run the operators' tests and return the file of their comparisons."""
    parts, records = folder / "parts", folder / "records"
    words = ["-q", "-n", "0", "-p", "no:cacheprovider", *(f"tests/unit/network/{name}" for name in _TESTS)]
    subprocess.run(
        [sys.executable, "-m", "pytest", *words], check=True, cwd=ROOT, env={**os.environ, RECORDS: str(parts)}
    )
    records.write_bytes(parts.read_bytes())
    return records


def main() -> int:
    """Print the outcome of every record on every processor; return 1 if one differs."""
    status = 0
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        records = recorded(folder)
        for name, architecture, flags in (
            ("armhf (QEMU)", "armhf", ()),
            ("arm64 (QEMU)", "arm64", ()),
            ("here", "", ()),
            ("here, address and undefined sanitizers", "", SANITIZERS),
        ):
            done = run(build(folder, architecture, flags), architecture, str(records))
            print(f"{name}: {(done.stdout + done.stderr).strip()[-2000:]}", flush=True)
            status |= done.returncode != 0
        for seed in range(4):
            done = run(folder / "replay-here", "", "--fuzz", str(_FUZZED), str(seed))
            print(f"here, address and undefined sanitizers: {(done.stdout + done.stderr).strip()[-2000:]}", flush=True)
            status |= done.returncode != 0
        print("instructions an element or product, armhf and arm64:")
        for kernel, counts in instructions_an_element(folder).items():
            print(f"  {kernel:22}" + "".join(f"{count:8.2f}" for count in counts), flush=True)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
