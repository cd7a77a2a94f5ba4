"""`make networks`: the whole inference of each network, VTA beside the processor, as a table.

A run that was ended goes on where it was; figures of other sources of the compiler, its schedules or the runtime are
measured again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.zoo.__main__ import fetch_wheels
from tests.zoo.networks import SUBJECTS

from .inferences import OWN

_ROOT = Path(__file__).parents[2]
_SOURCES = ("host/hilt/network", "host/hilt/schedule", "board/hilt_runtime")
_HEAD = (
    "network", "VTA, ms", "starts", "crossings", "operators", "native, ms", "whole, ms", "over VTA", "images/s",
    "with numpy, ms", "here: native, ms", "here: numpy, ms",
)  # fmt: skip


def main() -> None:
    """Measure the networks whose figures are not there yet, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.networks")
    parser.add_argument("--folder", type=Path, default=_ROOT / "build" / "zoo")
    parser.add_argument("--limit", type=int, default=1800, help="seconds of a network")
    parser.add_argument("--board", default="virtual:pynq", help="such as virtual:pynq_143, at 142.857 MHz")
    parser.add_argument("--only", default="", help="networks whose name holds this text")
    options = parser.parse_args()
    wheels = fetch_wheels(options.folder)
    kept_in = options.folder / "inferences" / _digest() / options.board.partition(":")[2]
    kept_in.mkdir(parents=True, exist_ok=True)
    rows, missing = [], []
    for name in [*OWN, *(subject.name for subject in SUBJECTS)]:
        kept = kept_in / f"{name.replace(' ', '_')}.json"
        if options.only in name and not kept.exists():
            kept.write_text(json.dumps(_measured(name, wheels, options.board, options.limit)))
        if kept.exists():
            figures = json.loads(kept.read_text())
            (missing if "error" in figures else rows).append(figures)
    _print(rows, options.board)
    for figures in missing:
        print(f"- {figures['name']}: {figures['error']}")


def _digest() -> str:
    """Return a name for the sources that the figures follow from."""
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((_ROOT / folder).rglob("*.*")):
            if path.suffix in (".py", ".c", ".h"):
                digest.update(path.relative_to(_ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _measured(name: str, wheels: Path, board: str, limit: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.networks.inferences", name, str(wheels), board]
    paths = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=_ROOT,
            timeout=limit, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"name": name, "error": f"not done within {limit} s"}
    if done.returncode:
        return {"name": name, "error": (done.stderr.strip().splitlines() or ["no output"])[-1][:200]}
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _print(rows: list[dict[str, Any]], board: str) -> None:
    print(f"On {board}: VTA by the twin, the processor {rows[0]['native']['assumed'] if rows else ''}.\n")
    print(f"| {' | '.join(_HEAD)} |\n|{' --- |' * len(_HEAD)}")
    for row in sorted(rows, key=lambda each: _ratio(each)):
        native, numpy = row["native"], row["numpy"]
        cells = [
            row["name"],
            _ms(native["vta"]),
            f"{native['starts']}",
            f"{row['packed']}",
            f"{row['operators']}",
            _ms(native["crossings"] + native["processor"]),
            _ms(native["total"]),
            f"{_ratio(row):.2f}",
            f"{native['rate']:,.1f}",
            _ms(numpy["total"]),
            _ms(native["here"]),
            _ms(numpy["here"]),
        ]
        print(f"| {' | '.join(cells)} |")
    wheels = {subject.name for subject in SUBJECTS if subject.wheel}
    tiny = {subject.name for subject in SUBJECTS if not subject.wheel}
    for title, names in (("the wheels' networks", wheels), ("MLPerf Tiny's", tiny)):
        ratios = [_ratio(row) for row in rows if row["name"] in names]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"\nGeometric mean over VTA of {title} ({len(ratios)}): {mean:.2f}")


def _ratio(row: dict[str, Any]) -> float:
    native = row["native"]
    return float(native["total"] / native["vta"]) if native["vta"] else math.inf


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1e3:,.3f}"


if __name__ == "__main__":
    main()
