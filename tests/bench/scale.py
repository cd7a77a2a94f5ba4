"""The store with a long run: writing it, opening it, reading the data of a screen."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from hilt.store import Store, database_path
from tests.bench.figure import Figure, Sizes, Topic
from tests.unit.store import examples
from tests.unit.tui.live import UUID, trial

BATCH = 8
COMMITS = 200
REPEATS = 20


def figures(sizes: Sizes) -> Iterator[Figure]:
    count = sizes.stored_trials
    subject = f"a run of {count:,} trials"
    with tempfile.TemporaryDirectory(prefix="hilt-bench-") as folder:
        home = Path(folder)
        with Store(database_path(home)) as store:
            store.create_run(examples.run(UUID, budget=count, space_size=count))
            early = min(BATCH * COMMITS, count)
            store.record(UUID, [trial(number) for number in range(count - early)])
            start = time.perf_counter()
            for first in range(count - early, count, BATCH):
                store.record(UUID, [trial(number) for number in range(first, min(first + BATCH, count))])
            per_commit = (time.perf_counter() - start) / -(-early // BATCH)
        value = f"{per_commit * 1e3:.1f} ms"
        yield Figure(f"store: {BATCH} trials on disk", subject, "-", f"mean of {COMMITS}", value)
        start = time.perf_counter()
        with Store(database_path(home)) as store:
            opened = time.perf_counter() - start
            yield Figure("store: open", subject, "-", "1", f"{opened * 1e3:.1f} ms")
            for name, call in _reads(store, count).items():
                yield Figure(f"store: {name}", subject, "-", f"median of {REPEATS}", f"{_median(call) * 1e3:.1f} ms")


def _reads(store: Store, count: int) -> dict[str, Callable[[], Any]]:
    return {
        "best, counts and valid": lambda: store.summary(UUID),
        "best-latency curve": lambda: store.improvements(UUID),
        "newest page of 100": lambda: store.latest_trials(UUID, 100),
        "page of 100 in the middle": lambda: store.latest_trials(UUID, 100, count // 2),
    }


def _median(call: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


TOPIC = Topic("scale", "the store with a long run", figures)
