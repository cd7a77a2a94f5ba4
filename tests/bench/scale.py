"""The store and the TUI with a long run: writing it, reading what a screen needs, opening, and a key's way."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from hilt.store import Store, database_path
from hilt.tui.app import HiltApp
from hilt.tui.screens.run_screen import RunScreen
from hilt.tui.widgets.trials_table import TrialsTable
from tests.bench.figure import Figure, Sizes, Topic
from tests.unit.store import examples
from tests.unit.tui.live import UUID, trial

BATCH = 8
COMMITS = 200
REPEATS = 20
SIZE = (120, 40)


def figures(sizes: Sizes) -> Iterator[Figure]:
    count = sizes.stored_trials
    what = f"a run of {count:,} trials"
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
        yield Figure(f"store: {BATCH} trials on disk", what, "-", f"mean of {COMMITS}", value)
        start = time.perf_counter()
        with Store(database_path(home)) as store:
            opened = time.perf_counter() - start
            yield Figure("store: open", what, "-", "1", f"{opened * 1e3:.1f} ms")
            for name, call in _reads(store, count).items():
                yield Figure(f"store: {name}", what, "-", f"median of {REPEATS}", f"{_median(call) * 1e3:.1f} ms")
            opening, keys = asyncio.run(_in_the_tui(home, store))
        terminal = f"{what}, {SIZE[0]}x{SIZE[1]}"
        yield Figure("TUI: from start to the newest page", terminal, "-", "1", f"{opening * 1e3:.0f} ms")
        for name, seconds in keys.items():
            yield Figure(f"TUI: {name}", terminal, "-", f"median of {REPEATS}", f"{seconds * 1e3:.0f} ms")


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


async def _in_the_tui(home: Path, store: Store) -> tuple[float, dict[str, float]]:
    """Seconds to the first page, and from keys to the table that they ask for."""
    app = HiltApp(home, store, UUID)
    start = time.perf_counter()
    async with app.run_test(size=SIZE) as pilot:
        while not (isinstance(app.screen, RunScreen) and app.screen.view and _table(app).row_count):
            await pilot.pause()
        opening = time.perf_counter() - start
        keys = {"cursor up": await _key(pilot, "up", lambda: _table(app).cursor_row)}
        keys["page of older trials ([)"] = await _key(pilot, "left_square_bracket", lambda: _table(app).first_number)
        return opening, keys


def _table(app: HiltApp) -> TrialsTable:
    return app.screen.query_one(TrialsTable)


async def _key(pilot: Any, key: str, seen: Callable[[], Any]) -> float:
    """Median seconds until what the key changes has changed and is drawn."""
    seconds = []
    for _ in range(REPEATS):
        before = seen()
        start = time.perf_counter()
        await pilot.press(key)
        while seen() == before:
            await pilot.pause()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


TOPIC = Topic("scale", "store and TUI with a long run", figures)
