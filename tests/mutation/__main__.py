"""`python -m tests.mutation [FILE ...]`: how many small changes of the product's files their nearest tests notice.

Without a file it draws from all of them, by seed, each mutant with the same chance. Each mutant runs in a copy of its
package, so that nothing here is changed, and only with the tests that run its line.
"""

from __future__ import annotations

import argparse
import ast
import math
import random
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TypeGuard

from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.nearest import nearest_tests, product_files
from tests.mutation.runner import Ran, import_libraries, passing_tests, tests_pass

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
    "host/hilt/engine/loop.py": tuple(
        f"tests/unit/engine/test_{name}.py" for name in ("loop", "loop_resume", "loop_boards", "loop_pace", "stopping")
    ),
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
_FILES = 4
"""Test files that are run at once; the mutants that they do not notice go on to the next ones."""
_ROUNDS = 3
_SECONDS = 240.0
"""Seconds of processor time for the tests of a round without a mutant."""
_PATIENCE = 3.0
"""A mutant hangs, which counts as noticed, if its tests take so many times as long, and ten seconds more.

It may be a busy machine: it hangs too if they take so many times their processor time, and ten seconds more.
"""


@dataclass(frozen=True)
class Noticed:
    """The mutants of one file that were tried, and those that no test noticed."""

    name: str
    tried: int
    survivors: tuple[Mutant, ...]
    seconds: float
    problem: str = ""
    """Why it was tried with fewer tests."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="product files; all unless given")
    parser.add_argument("--limit", type=int, default=40, help="mutants of each given file (default 40; 0: all)")
    parser.add_argument("--total", type=int, default=200, help="mutants of all files (default 200)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    unknown = [name for name in options.files if not (ROOT / name).is_file()]
    if unknown:
        parser.error(f"there is no file {unknown[0]}")
    import_libraries()
    drawn = _of_files(options.files, options.limit, options.seed) if options.files else _of_all(options)
    print(f"{'file':48} {'mutants':>7} {'noticed':>7} {'s':>5}", flush=True)
    with ProcessPoolExecutor(options.jobs, get_context("fork")) as pool:
        found = []
        for each in pool.map(_try, drawn.items()):
            _print_file(each)
            found.append(each)
    _print_folders(found)
    print(
        f"{sum(map(len, EQUIVALENT.values()))} mutants that change nothing are left out (tests/mutation/equivalent.py)"
    )
    return 0


def _of_files(names: list[str], limit: int, seed: int) -> dict[str, list[Mutant]]:
    drawn = {name: _mutants_of(name) for name in names}
    return {
        name: random.Random(seed).sample(of_file, limit) if 0 < limit < len(of_file) else of_file
        for name, of_file in drawn.items()
    }


def _of_all(options: argparse.Namespace) -> dict[str, list[Mutant]]:
    every = [(name, mutant) for name in product_files() for mutant in _mutants_of(name)]
    drawn: dict[str, list[Mutant]] = defaultdict(list)
    for name, mutant in random.Random(options.seed).sample(every, min(options.total, len(every))):
        drawn[name].append(mutant)
    print(
        f"{min(options.total, len(every))} of {len(every):,} mutants in {len(drawn)} files, seed {options.seed}",
        flush=True,
    )
    return dict(sorted(drawn.items()))


def _mutants_of(name: str) -> list[Mutant]:
    source = (ROOT / name).read_text(encoding="utf-8")
    lines, known = source.splitlines(), EQUIVALENT.get(name, {})
    return [mutant for mutant in mutants(source) if (lines[mutant.line - 1].strip(), mutant.change) not in known]


def _print_file(found: Noticed) -> None:
    noticed = found.tried - len(found.survivors)
    print(f"{found.name:48} {found.tried:7} {noticed:7} {found.seconds:5.0f}  {found.problem}", flush=True)
    lines = (ROOT / found.name).read_text(encoding="utf-8").splitlines()
    for mutant in sorted(found.survivors, key=_line):
        print(f"    line {mutant.line}: {mutant.change}: {lines[mutant.line - 1].strip()[:70]}", flush=True)


def _print_folders(found: list[Noticed]) -> None:
    folders: dict[str, list[Noticed]] = defaultdict(list)
    for each in found:
        folders[str(Path(each.name).parent)].append(each)
    print(f"\n{'folder':48} {'mutants':>7} {'noticed':>7} {'share':>6}")
    for folder, of_folder in [*folders.items(), ("all", found)]:
        tried = sum(each.tried for each in of_folder)
        noticed = tried - sum(len(each.survivors) for each in of_folder)
        print(f"{folder:48} {tried:7} {noticed:7} {noticed / max(1, tried):6.0%}")


def _try(drawn: tuple[str, list[Mutant]]) -> Noticed:
    """Return how the nearest tests of a file take its mutants. A file without tests notices none."""
    name, alive = drawn
    began = time.monotonic()
    tests = TARGETS.get(name) or nearest_tests(name)
    left_out: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        trial = Trial(Path(folder), _copy_package(name, Path(folder)), (ROOT / name).read_text(encoding="utf-8"))
        for first in range(0, min(len(tests), _FILES * _ROUNDS), _FILES):
            if alive:
                alive, others = trial.survivors(alive, tests[first : first + _FILES])
                left_out += others
    problem = f"{len(left_out)} tests fail without any mutant: {left_out[0]}" if left_out else ""
    problem = problem if tests else "no test imports it"
    return Noticed(name, len(drawn[1]), tuple(alive), time.monotonic() - began, problem)


@dataclass(frozen=True)
class Trial:
    """A copy of the sources in which one file is changed."""

    folder: Path
    copied: Path
    source: str

    def survivors(self, alive: Sequence[Mutant], tests: Sequence[str]) -> tuple[list[Mutant], list[str]]:
        """Return the mutants that some test files do not notice, and their tests that fail without any."""
        self.copied.write_text(self.source, encoding="utf-8")
        passed, others = passing_tests(self.folder, tests, _SECONDS, self.copied)
        return [mutant for mutant in alive if not self._is_noticed(mutant, passed)], others

    def _is_noticed(self, mutant: Mutant, passed: dict[str, Ran]) -> bool:
        runners = line_runners(mutant.line, self.source, passed) or list(passed)
        if not runners:
            return False
        quickest = sorted(runners, key=lambda test: passed[test].seconds)
        seconds = 10.0 + _PATIENCE * sum(passed[test].seconds for test in quickest)
        self.copied.write_text(mutant.source(self.source), encoding="utf-8")
        return not tests_pass(self.folder, quickest, 3 * seconds, math.ceil(seconds))


def line_runners(line: int, source: str, ran: Mapping[str, Ran]) -> list[str]:
    """Return the tests that ran the statement of a line; those that ran a use of it where it makes a global.

    Empty: it runs at import, or in other processes only.
    """
    tree = ast.parse(source)
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    around = [node for node in statements if _first_line(node) <= line <= (node.end_lineno or node.lineno)]
    innermost = min(around, key=lambda node: (node.end_lineno or node.lineno) - node.lineno)
    body = getattr(innermost, "body", None)
    end = body[0].lineno - 1 if body else innermost.end_lineno or innermost.lineno
    there = set(range(innermost.lineno, max(end, line) + 1))
    if innermost in tree.body and not body:
        there |= _uses(tree, {node.id for node in ast.walk(innermost) if _is_stored(node)})
    return [name for name, test in ran.items() if test.lines & there]


def _uses(tree: ast.Module, names: set[str]) -> set[int]:
    """Return the lines that read one of these global names."""
    return {node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in names}


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _first_line(node: ast.stmt) -> int:
    """Return the line of a statement's first decorator, else of the statement."""
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


def _line(mutant: Mutant) -> int:
    return mutant.line


def _copy_package(name: str, folder: Path) -> Path:
    """Copy the package of a file, link all other files beside it, and return the copy of the file."""
    top = Path(name).parts[0]
    shutil.copytree(ROOT / top, folder / top, ignore=shutil.ignore_patterns("__pycache__"))
    for other in ROOT.iterdir():
        if not (folder / other.name).exists():
            (folder / other.name).symlink_to(other)
    return folder / name


if __name__ == "__main__":
    sys.exit(main())
