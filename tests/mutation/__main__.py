"""`python -m tests.mutation [FILE ...]`: how many small changes of the product's files their nearest tests notice.

Without a file it draws from all of them, by seed, each mutant with the same chance. Each mutant runs in a copy of the
product, so that nothing here is changed, and only with the tests that run its line. Which lines each test runs is
recorded first, once, and again where a test or what it ran has changed (build/mutation).
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.nearest import ROOT, all_tests, product_files
from tests.mutation.record import stale
from tests.mutation.runner import import_libraries
from tests.mutation.trial import Noticed, record, tests, tried


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="product files; all unless given")
    parser.add_argument("--limit", type=int, default=40, help="mutants of each given file (default 40; 0: all)")
    parser.add_argument("--total", type=int, default=200, help="mutants of all files (default 200)")
    parser.add_argument("--below", default="", metavar="FOLDER", help="draw from the files below a folder only")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    unknown = [name for name in options.files if not (ROOT / name).is_file()]
    if unknown:
        parser.error(f"there is no file {unknown[0]}")
    drawn = _of_files(options.files, options.limit, options.seed) if options.files else _of_all(options)
    import_libraries()
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        _record_all(Path(folder), options.jobs)
        tests()
        with ProcessPoolExecutor(options.jobs, get_context("fork")) as pool:
            found = _try_all(pool, Path(folder), drawn)
    _print_folders(found)
    print(
        f"{sum(map(len, EQUIVALENT.values()))} mutants that change nothing are left out (tests/mutation/equivalent.py)"
    )
    return 0


def _record_all(folder: Path, jobs: int) -> None:
    missing = stale(all_tests())
    with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
        done = as_completed([pool.submit(record, folder, test) for test in missing])
        for number, each in enumerate(done, 1):
            each.result()
            print(f"recorded {number} of {len(missing)} test files", end="\r", file=sys.stderr, flush=True)


def _try_all(pool: Executor, folder: Path, drawn: Mapping[str, Sequence[Mutant]]) -> list[Noticed]:
    print(f"{'file':48} {'mutants':>7} {'noticed':>7} {'s':>5}", flush=True)
    found = []
    for each in pool.map(tried, [folder] * len(drawn), drawn.keys(), drawn.values()):
        _print_file(each)
        found.append(each)
    return found


def _of_files(names: list[str], limit: int, seed: int) -> dict[str, list[Mutant]]:
    drawn = {name: _mutants_of(name) for name in names}
    return {
        name: random.Random(seed).sample(of_file, limit) if 0 < limit < len(of_file) else of_file
        for name, of_file in drawn.items()
    }


def _of_all(options: argparse.Namespace) -> dict[str, list[Mutant]]:
    names = [name for name in product_files() if name.startswith(options.below)]
    every = [(name, mutant) for name in names for mutant in _mutants_of(name)]
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
    tried, noticed = len(found.tried), len(found.tried) - len(found.survivors)
    doubts = f"{len(found.doubtful)} tests fail at times: {found.doubtful[0]}" if found.doubtful else ""
    print(f"{found.name:48} {tried:7} {noticed:7} {found.seconds:5.0f}  {doubts}", flush=True)
    lines = (ROOT / found.name).read_text(encoding="utf-8").splitlines()
    for mutant in sorted(found.survivors, key=_line):
        marks = " (bounds a time)" if mutant.bounds_time else ""
        marks += " (no test runs it)" if mutant in found.unrun else ""
        print(f"    line {mutant.line}: {mutant.change}{marks}: {lines[mutant.line - 1].strip()[:70]}", flush=True)


def _print_folders(found: list[Noticed]) -> None:
    folders: dict[str, list[Noticed]] = defaultdict(list)
    for each in found:
        folders[str(Path(each.name).parent)].append(each)
    print(f"\n{'folder':48} {'mutants':>7} {'noticed':>7} {'share':>6}")
    for folder, of_folder in [*folders.items(), ("all", found)]:
        _print_share(folder, of_folder, (False, True))
    _print_share("of these, numbers that only bound a time", found, (True,))
    _print_share("all others", found, (False,))
    unrun = sum(len(each.unrun) for each in found)
    print(f"{unrun} that none noticed are in lines that no test runs in its own process")


def _print_share(title: str, found: Sequence[Noticed], kinds: tuple[bool, ...]) -> None:
    """Print how many of the mutants are noticed whose `bounds_time` is one of `kinds`."""
    tried = sum(mutant.bounds_time in kinds for each in found for mutant in each.tried)
    noticed = tried - sum(mutant.bounds_time in kinds for each in found for mutant in each.survivors)
    print(f"{title:48} {tried:7} {noticed:7} {noticed / max(1, tried):6.0%}")


def _line(mutant: Mutant) -> int:
    return mutant.line


if __name__ == "__main__":
    sys.exit(main())
