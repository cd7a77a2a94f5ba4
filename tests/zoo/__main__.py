"""`make zoo`: measures each public network in a process of its own, and writes docs/zoo.md."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hilt.atomic_write import atomic_write

from .measure import AIM
from .networks import INVENTED, SUBJECTS, Subject

_ROOT = Path(__file__).parents[2]
_PAGE = (
    "# The zoo: public networks in int8\n\n"
    "`make zoo` writes this page. Each network comes in a wheel of PyPI, or is one of MLPerf Tiny's "
    "(`HILT_MLPERF_TINY=folder`). 32 samples calibrate, and 32 others are compared with the float model.\n\n"
    "- **dB**: the signal-to-noise ratio of the output that loses most, the mean over samples. Samples whose "
    "output is next to nothing beside the others' are left out: half of those of text detection have no text.\n"
    "- **Answers**: the share that is the float model's: the largest class, the class of each step, or whether a value "
    "is above 0.3.\n"
    "- **ORT**: ONNX Runtime's own static quantiser on the same samples: int8, weights by channel, any scales. "
    "hilt has one power of two a layer.\n"
    "- **--min-db 20**: where an output is below 20 dB, the same with the fewest layers in float that reach it. "
    "The share of multiply-accumulates in int8 stays on VTA.\n"
    "- **Seconds** are of one processor core. Memory is the most that the process had. "
    "The share on VTA is of the bundle for `virtual:pynq`.\n"
    "- Photographs are crops of scikit-learn's two, text is rendered, sounds are synthetic. "
    "An agreement here is no benchmark's accuracy, and of 32 samples one is 3 %.\n"
    "- A network that is missing, or has no compile time, was not done within the limit (`--limit`); the machine of "
    "this page did much else.\n\n"
)
_INVENTED = (
    "\n## Invented networks\n\n"
    "Usual forms with random weights, normalised by data as training leaves them (`tests/zoo/invented.py`), with "
    "samples of many contrasts. The first four were looked at while the quantiser was made; nothing in hilt was made "
    "by the last three. `python -m tests.zoo --only invented` measures them.\n\n"
)
_HEAD = (
    "network", "MMAC", "on VTA", "ORT: dB", "answers", "hilt: dB", "answers", "--min-db 20: dB", "answers",
    "MACs in int8", "layers in float", "quantise", "compile", "memory",
)  # fmt: skip


def main() -> None:
    """Measure the networks whose figures are not there yet, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.zoo")
    parser.add_argument("--folder", type=Path, default=_ROOT / "build" / "zoo")
    parser.add_argument("--page", type=Path, default=_ROOT / "docs" / "zoo.md")
    parser.add_argument("--limit", type=int, default=5400, help="seconds of a network")
    parser.add_argument("--only", default="", help="networks whose name holds this text")
    options = parser.parse_args()
    wheels = fetch_wheels(options.folder)
    for subject in (*SUBJECTS, *INVENTED):
        kept = options.folder / f"{subject.name.replace(' ', '_')}.json"
        if options.only in subject.name and not kept.exists():
            figures = _measured(subject.name, wheels, options.limit)
            kept.write_text(json.dumps(figures))
            print(json.dumps(figures), flush=True)
        _write(options.page, options.folder)


def fetch_wheels(folder: Path) -> Path:
    """Download the wheels that are not there yet; return their folder."""
    wheels = folder / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    for wheel in dict.fromkeys(subject.wheel for subject in SUBJECTS if subject.wheel):
        stem = wheel.split("==")[0].replace("-", "_")
        if not list(wheels.glob(f"{stem}-*.whl")):
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(wheels), wheel]
            subprocess.run(command, check=False)
    return wheels


def _measured(name: str, wheels: Path, limit: int) -> dict[str, Any]:
    """Return a network's figures, as far as it came within the limit."""
    command = [sys.executable, "-m", "tests.zoo.measure", name, str(wheels)]
    paths = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=_ROOT
    )
    try:
        out, error = process.communicate(timeout=limit)
        reason = error.strip().splitlines()[-1][:200] if process.returncode else ""
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
        reason = f"not done within {limit} s"
    lines = [line for line in out.splitlines() if line.startswith("{")]
    figures: dict[str, Any] = json.loads(lines[-1]) if lines else {"name": name}
    return figures | ({"error": reason} if reason else {})


def _write(page: Path, folder: Path) -> None:
    """Write the page from the figures that are there."""
    tables, notes = [_rows(SUBJECTS, folder), _rows(INVENTED, folder)], list[str]()
    for subject in (*SUBJECTS, *INVENTED):
        figures = _kept(subject, folder)
        if "error" in figures:
            notes.append(f"- {figures['name']}: {figures['error'].split(', whose')[0].split('OnnxError: ')[-1]}")
        elif "error" in figures.get("ort", {}):
            notes.append(f"- {figures['name']}: ONNX Runtime's quantiser ends with {figures['ort']['error']}")
    notes += _poor([_kept(subject, folder) for subject in (*SUBJECTS, *INVENTED)])
    with atomic_write(page) as file:
        file.write(_PAGE)
        for head, rows in zip(("", _INVENTED), tables, strict=True):
            if len(rows) > 1:
                file.write(head)
                file.writelines(f"| {' | '.join(row)} |\n" for row in (rows[0], ("---",) * len(_HEAD), *rows[1:]))
        if notes:
            file.write("\n" + "\n".join(notes) + "\n")


def _poor(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return why networks are below 20 dB, in a line if there are any."""
    poor = [figures for figures in rows if "mixed" in figures and figures.get("ort", {}).get("db", 0) < AIM]
    if not poor:
        return []
    names = "; ".join(figures["name"] for figures in poor)
    return [
        f"- Below {AIM:.0f} dB, for eight bits have too few steps for the range of their activations: {names}. ONNX "
        f"Runtime's int8 is below {AIM:.0f} dB too, where it has a figure. `hilt quantize` names the layers that lose "
        "most, and `--float` and `--min-db` keep them."
    ]


def _kept(subject: Subject, folder: Path) -> dict[str, Any]:
    """Return a network's figures, empty if it was not measured."""
    kept = folder / f"{subject.name.replace(' ', '_')}.json"
    figures: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    return figures


def _rows(subjects: Sequence[Subject], folder: Path) -> list[tuple[str, ...]]:
    """Return the rows of the networks that were measured, below the names of their columns."""
    every = [_kept(subject, folder) for subject in subjects]
    return [_HEAD, *(_row(figures) for figures in every if "int8" in figures)]


def _row(figures: dict[str, Any]) -> tuple[str, ...]:
    ort, own, mixed = figures["ort"], figures["int8"], figures.get("mixed", {})
    seconds = figures["quantise_seconds"]
    return (
        figures["name"],
        _number(figures.get("macs"), "{:,.0f}"),
        _number(figures.get("vta_macs"), "{:.1f} %"),
        _number(ort.get("db"), "{:.1f}"),
        _number(ort.get("agree"), "{:.1f} %"),
        _number(own["db"], "{:.1f}"),
        _number(own["agree"], "{:.1f} %"),
        _number(mixed.get("db"), "{:.1f}"),
        _number(mixed.get("agree"), "{:.1f} %"),
        _number(figures.get("mixed_macs"), "{:.0f} %"),
        f"{figures['kept']} of {figures['layers']}" if "kept" in figures else "-",
        f"{seconds:,.0f} s" + (f", {figures['mixed_seconds']:,.0f} s" if mixed else ""),
        _number(figures.get("compile_seconds"), "{:,.0f} s"),
        _number(figures.get("peak_mb"), "{:,.0f} MB"),
    )


def _number(value: float | None, form: str) -> str:
    return "-" if value is None or value != value else form.format(value)


if __name__ == "__main__":
    main()
