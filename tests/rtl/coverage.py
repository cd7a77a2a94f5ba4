"""Line and toggle coverage of the RTL by its own tests, module by module: `make coverage`.

python -m tests.rtl.coverage [--programs N] [--skip-tests]

It runs random programs and the tests of bring-up and faults on the RTL of profile `coverage`, and adds up
Verilator's counts. It prints a table and the lines and signals that nothing reached. All of it is also in
build/cache/coverage/report.txt.
"""

from __future__ import annotations

import argparse
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hilt import paths
from hilt.simulator import build as building
from tests.rtl.variants import VARIANTS

TESTS = ("test_bringup.py", "test_faults.py")
PROGRAM = 450
NAMED = 12
"""Uncovered signals named for each module; the report has all of them."""


class Point(NamedTuple):
    """One item that Verilator counts: a line (or branch) of a file, or a bit of a signal that goes one way."""

    module: str
    file: str
    line: int
    kind: str
    comment: str


@dataclass
class Module:
    covered: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    missed: list[Point] = field(default_factory=list)


def add_up(folder: Path, counts: Counter[Point]) -> None:
    """Adds and removes the counts that models left in `folder`."""
    for file in folder.glob("*.dat"):
        counts.update(read(file))
        file.unlink()


def read(file: Path) -> Counter[Point]:
    """Verilator's coverage file: a line `C '<key>' <count>` for each point, its key made of \\x01name\\x02value pairs.

    The instances of a module, whatever their parameters, are one. An item of a case that returns is left out: Verilator
    counts it behind its statement, which is never reached.
    """
    counts: Counter[Point] = Counter()
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        match = re.fullmatch(r"C '(.*)' (\d+)", line)
        if match is None:
            continue
        key = dict(pair.split("\x02", 1) for pair in match[1].split("\x01") if "\x02" in pair)
        kind, _, module = key["page"].removeprefix("v_").partition("/")
        point = Point(module.partition("__")[0], Path(key["f"]).name, int(key["l"]), kind, key.get("o", ""))
        if point.comment == "case" and "return" in _source(key["f"])[point.line - 1]:
            continue
        counts[point] += int(match[2])
    return counts


@cache
def _source(file: str) -> list[str]:
    return Path(file).read_text(encoding="utf-8").splitlines()


def by_module(counts: Counter[Point]) -> dict[str, Module]:
    """Branches count as lines: both say whether code was executed."""
    modules: dict[str, Module] = defaultdict(Module)
    for point in sorted(counts):
        module = modules[point.module]
        kind = "toggle" if point.kind == "toggle" else "line"
        module.points[kind] += 1
        if counts[point]:
            module.covered[kind] += 1
        else:
            module.missed.append(point)
    return dict(modules)


def table(modules: dict[str, Module]) -> Iterator[str]:
    yield f"{'module':24}{'lines':>16}{'toggles':>22}"
    whole = Module()
    for name, module in sorted(modules.items()):
        whole.points.update(module.points)
        whole.covered.update(module.covered)
        yield f"{name:24}{_share(module, 'line'):>16}{_share(module, 'toggle'):>22}"
    yield f"{'all':24}{_share(whole, 'line'):>16}{_share(whole, 'toggle'):>22}"


def _share(module: Module, kind: str) -> str:
    points, covered = module.points[kind], module.covered[kind]
    return f"{covered}/{points} {100 * covered / points:5.1f}%" if points else "-"


def uncovered(modules: dict[str, Module], named: int | None) -> Iterator[str]:
    """Lines that were never executed, and signals with bits that never went up or down."""
    for name, module in sorted(modules.items()):
        lines = sorted({(point.file, point.line) for point in module.missed if point.kind != "toggle"})
        bits = Counter(re.split(r"[\[:.]", point.comment)[0] for point in module.missed if point.kind == "toggle")
        if lines:
            yield f"{name}: never executed: " + ", ".join(f"{file}:{line}" for file, line in lines)
        if bits:
            shown = [f"{signal} ({count})" for signal, count in bits.most_common(named)]
            more = f" and {len(bits) - len(shown)} more signals" if len(bits) > len(shown) else ""
            yield f"{name}: never went one way: " + ", ".join(shown) + more


def _run_random_programs(programs: int, folder: Path, counts: Counter[Point]) -> None:
    from tests.rtl.compare_models import memory_timing, on_library
    from tests.rtl.random_programs import random_program

    accelerator = VARIANTS["pynq B"]
    library = building.build(accelerator, "rtl", "coverage")
    for seed in range(1, programs + 1):
        on_library(library, **memory_timing(seed))(random_program(accelerator, seed, PROGRAM))
        add_up(folder, counts)


def _run_tests(folder: Path, counts: Counter[Point]) -> None:
    """Run the tests with hilt.simulator.build replaced, so that they build the profile `coverage`."""
    build = building.build

    def instrumented(accelerator: Any, form: building.Form, profile: building.Profile = "fast") -> Path:
        return build(accelerator, form, "coverage" if form == "rtl" else profile)

    building.build = instrumented
    here = Path(__file__).parent
    status = pytest.main(["-q", "-p", "no:cacheprovider", "-n0", *(str(here / name) for name in TESTS)])
    building.build = build
    add_up(folder, counts)
    if status:
        raise SystemExit(f"the tests failed (status {status}): coverage of a broken accelerator says nothing")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=24, help=f"random ones of {PROGRAM}; default: %(default)s")
    parser.add_argument("--skip-tests", action="store_true", help="random programs only")
    arguments = parser.parse_args()
    folder = paths.cache() / "coverage"
    folder.mkdir(exist_ok=True)
    os.environ["VTA_COVERAGE_FOLDER"] = str(folder)
    counts: Counter[Point] = Counter()
    for left in folder.glob("*.dat"):
        left.unlink()
    _run_random_programs(arguments.programs, folder, counts)
    if not arguments.skip_tests:
        _run_tests(folder, counts)
    modules = by_module(counts)
    report = folder / "report.txt"
    report.write_text("\n".join([*table(modules), "", *uncovered(modules, None)]) + "\n", encoding="utf-8")
    print("\n".join([*table(modules), "", *uncovered(modules, NAMED), f"all of it: {report}"]))


if __name__ == "__main__":
    main()
