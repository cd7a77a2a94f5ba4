"""`python -m tests.mutation [FILE ...]`: how many small changes of the files that must not fail their tests notice.

Each mutant runs in a copy of its package, so that nothing here is changed, and only with the tests that run its line.
A sample by seed keeps a file to minutes.
"""

from __future__ import annotations

import argparse
import ast
import math
import random
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.runner import import_libraries, lines_of_tests, tests_pass

ROOT = Path(__file__).parents[2]
TARGETS: dict[str, tuple[str, ...]] = {
    "board/hilt_board/execution.py": ("tests/unit/board/test_execution.py", "tests/unit/board/test_placement.py"),
    "board/hilt_board/driver.py": ("tests/unit/board/test_driver.py", "tests/unit/board/test_counting_driver.py"),
    "board/hilt_runtime/register_protocol.py": (
        *("tests/unit/board/test_driver.py", "tests/unit/board/test_counting_driver.py"),
        "tests/unit/board/test_mapped_registers.py",
    ),
    "board/hilt_board/memory.py": ("tests/unit/board/test_memory.py",),
    "board/hilt_board/journal.py": ("tests/unit/board/test_journal.py",),
    "board/hilt_board/daemon.py": (
        *("tests/unit/board/test_daemon.py", "tests/unit/board/test_daemon_run.py"),
        *("tests/unit/board/test_results.py", "tests/unit/board/test_lease.py"),
    ),
    "host/hilt/link/session.py": ("tests/unit/link/test_session.py", "tests/unit/link/test_session_commands.py"),
    "host/hilt/engine/loop.py": ("tests/unit/engine/test_loop.py", "tests/unit/engine/test_stopping.py"),
    "host/hilt/measure/request_queue.py": ("tests/unit/measure/test_fleet.py", "tests/unit/measure/test_work.py"),
    "host/hilt/measure/connection.py": ("tests/unit/measure/test_connection.py",),
    "host/hilt/measure/board_measurer.py": (
        *("tests/unit/measure/test_board.py", "tests/unit/measure/test_board_faults.py"),
        *("tests/unit/measure/test_stop.py", "tests/unit/measure/test_suspects.py"),
    ),
    "host/hilt/measure/plausibility.py": ("tests/unit/measure/test_plausibility.py",),
    "host/hilt/tune/annealing.py": ("tests/unit/tune/test_annealing.py",),
    "host/hilt/simulator/image_run.py": ("tests/unit/simulator/test_image_run.py",),
}
_SECONDS = 300.0
"""Seconds for the tests without a mutant."""
_PATIENCE = 3.0
"""A mutant hangs, which counts as noticed, if its tests take so many times as long, and ten seconds more.

The same holds for their processor time, and two seconds more: an endless loop ends early on a busy machine.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="of those listed; all unless given")
    parser.add_argument("--limit", type=int, default=40, help="mutants of each file (default 40; 0: all)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    unknown = [name for name in options.files if name not in TARGETS]
    if unknown:
        parser.error(f"no tests are known for {unknown[0]}; there are {', '.join(TARGETS)}")
    import_libraries()
    print(f"{'file':36} {'mutants':>7} {'noticed':>7} {'share':>6} {'s':>5}")
    for name in options.files or TARGETS:
        _report(name, options.limit, options.seed)
    print(
        f"{sum(map(len, EQUIVALENT.values()))} mutants that change nothing are left out (tests/mutation/equivalent.py)"
    )
    return 0


def _report(name: str, limit: int, seed: int) -> None:
    began = time.monotonic()
    source = (ROOT / name).read_text(encoding="utf-8")
    lines = source.splitlines()
    known = EQUIVALENT.get(name, {})
    drawn = [mutant for mutant in mutants(source) if (lines[mutant.line - 1].strip(), mutant.change) not in known]
    if 0 < limit < len(drawn):
        drawn = random.Random(seed).sample(drawn, limit)
    survivors = []
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copied = _copy_package(name, Path(folder))
        started, processor = time.monotonic(), _processor_of_children()
        if not tests_pass(Path(folder), TARGETS[name], _SECONDS, traced=copied):
            print(f"{name:36} its tests fail without any mutant")
            return
        seconds = 10.0 + _PATIENCE * (time.monotonic() - started)
        processor = math.ceil(2.0 + _PATIENCE * (_processor_of_children() - processor))
        ran = lines_of_tests(Path(folder))
        for mutant in drawn:
            copied.write_text(mutant.source, encoding="utf-8")
            if tests_pass(Path(folder), line_runners(mutant.line, source, ran) or TARGETS[name], seconds, processor):
                survivors.append(mutant)
    noticed = len(drawn) - len(survivors)
    share = noticed / max(1, len(drawn))
    print(f"{name:36} {len(drawn):7} {noticed:7} {share:6.0%} {time.monotonic() - began:5.0f}", flush=True)
    for mutant in sorted(survivors, key=_line):
        print(f"    line {mutant.line}: {mutant.change}: {lines[mutant.line - 1].strip()[:70]}", flush=True)


def line_runners(line: int, source: str, ran: dict[str, set[int]]) -> list[str]:
    """Return the tests that ran the statement of a line. Empty: it runs at import, or in other processes only."""
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    around = [node for node in statements if _first_line(node) <= line <= (node.end_lineno or node.lineno)]
    innermost = min(around, key=lambda node: (node.end_lineno or node.lineno) - node.lineno)
    body = getattr(innermost, "body", None)
    end = body[0].lineno - 1 if body else innermost.end_lineno or innermost.lineno
    there = set(range(innermost.lineno, max(end, line) + 1))
    return [name for name, lines in ran.items() if lines & there]


def _first_line(node: ast.stmt) -> int:
    """Return the line of a statement's first decorator, else of the statement."""
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


def _processor_of_children() -> float:
    """Return the processor time of all ended children, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _line(mutant: Mutant) -> int:
    return mutant.line


def _copy_package(name: str, folder: Path) -> Path:
    """Copy the package of a file with the files that it reads, and return the copy of the file."""
    top = Path(name).parts[0]
    shutil.copytree(ROOT / top, folder / top, ignore=shutil.ignore_patterns("__pycache__"))
    for other in ("host", "board", "hls", "bitstreams", "docs", "tests", "README.md", "pyproject.toml"):
        if not (folder / other).exists():
            (folder / other).symlink_to(ROOT / other)
    return folder / name


if __name__ == "__main__":
    sys.exit(main())
