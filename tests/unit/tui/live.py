"""A run in a real store with the engine's real socket server before it, driven by the test instead of a tuning loop."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input

from hilt.engine.events import BoardChanged, EngineCommand, EngineHello, Event, RunProgress, TrialRecorded
from hilt.engine.run_files import RunFiles
from hilt.engine.run_statistics import RunStatistics
from hilt.engine.server import EngineServer
from hilt.store import RunState, Store, Trial, database_path
from hilt.store.identifiers import run_or_campaign
from hilt.trial import Outcome, Verification
from hilt.tui.app import HiltApp
from hilt.tui.screens.run_screen import RunScreen

from ..report.views import long_view
from ..store import examples

UUID = "3f2a91bc-0000-4000-8000-000000000001"
KNOBS = {"tile_b": 1, "tile_h": 7, "tile_w": 14, "tile_ci": 2, "tile_co": 4, "oc_nthread": 2, "h_nthread": 1}


def trial(ordinal: int) -> Trial:
    """Every third is rejected; the others are the faster the later."""
    if ordinal % 3 == 2:
        return Trial(ordinal, ordinal, KNOBS, Outcome.REJECTED, "acc_overflow", output_elements=examples.ELEMENTS)
    microseconds = 1000.0 + 90_000.0 / (ordinal + 1)
    seen = Verification(examples.ELEMENTS, 0)
    cycles = int(microseconds * 100)
    return Trial(
        ordinal, ordinal, KNOBS, Outcome.OK, "", cycles, microseconds, (microseconds,), seen, examples.ELEMENTS, "board"
    )


def event_of(trial: Trial) -> TrialRecorded:
    return TrialRecorded(trial)


def make_run(home: Path, trials: int = 0, uuid: str = UUID, **changes: object) -> None:
    with Store(database_path(home)) as store:
        store.create_run(examples.run(uuid, budget=1000, **changes))
        store.record(uuid, [trial(ordinal) for ordinal in range(trials)])


def keep_inference(home: Path, name: str) -> None:
    """Keep the inference of a bundle, as `hilt run` does."""
    folder = home / "inferences"
    folder.mkdir(exist_ok=True)
    view = long_view(9) | {"name": name, "board": "virtual:pynq"}
    (folder / f"{name}.json").write_text(json.dumps(view), encoding="utf-8")


class LiveEngine:
    """A holder of the run like an engine: it hears commands, and records and reports trials on request."""

    def __init__(self, home: Path, uuid: str = UUID) -> None:
        self.home, self.uuid = home, uuid
        self.commands: list[EngineCommand] = []
        self.store = Store(database_path(home))
        self.store.set_state(uuid, RunState.RUNNING)
        self._statistics = RunStatistics(self.store.summary(uuid), self.store.counts(uuid))
        self._held = ExitStack()
        files = RunFiles(home, uuid)
        self._held.enter_context(files.locked())
        self._serving = self._held.enter_context(ExitStack())
        self._server = self._serving.enter_context(
            EngineServer(files, EngineHello(uuid, os.getpid()), self.commands.append)
        )
        self.tell(BoardChanged("virtual:pynq", "running", "64 of 64 MiB free", 1.0))

    def tell(self, *events: Event) -> None:
        for event in events:
            self._server.publish(event)

    def record(self, *trials: Trial) -> RunProgress:
        self.store.record(self.uuid, trials)
        for each in trials:
            self._statistics.add(each)
            self.tell(event_of(each))
        progress = self._statistics.progress()
        self.tell(progress)
        return progress

    def lose_connections(self) -> None:
        """Close the connections as in the moment of a kill.

        Nobody answers at the socket, and the lock is held still.
        """
        files = RunFiles(self.home, self.uuid)
        self._serving.close()
        files.listen().close()
        assert files.is_running() and files.socket_path.exists()

    def die(self) -> None:
        """Drop the connection and the lock without a message."""
        self._held.close()
        self.store.close()


@contextmanager
def live_engine(home: Path, uuid: str = UUID) -> Iterator[LiveEngine]:
    engine = LiveEngine(home, uuid)
    try:
        yield engine
    finally:
        engine.die()


@contextmanager
def app_of(home: Path, uuid: str | None = None) -> Iterator[HiltApp]:
    with Store(database_path(home)) as store:
        yield HiltApp(home, store, run_or_campaign(store, uuid) if uuid else None)


async def until(pilot: Pilot[None], condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Let the app work until the condition holds and the screen takes keys; fail after `seconds`.

    The condition must hold for good once it holds. On a busy machine a key has not yet acted when `press` returns.
    Wait for its effect too, also before the next key for another widget.
    """
    for _ in range(int(seconds / 0.02)):
        if takes_keys(pilot) and condition():
            return
        await pilot.pause(0.02)
    raise AssertionError(f"not so after {seconds} s; the screen holds:\n{text_of(pilot)}")


def takes_keys(pilot: Pilot[None]) -> bool:
    """Return whether the screen is mounted and has focused its first widget; a screen that leaves takes no keys."""
    app = pilot.app
    if app._exit or not app.is_running:
        return True
    return app.screen.is_mounted and (app.focused is not None or not app.screen.focus_chain)


async def type_in(pilot: Pilot[None], key: str, text: str) -> None:
    """Press the key that shows a line, type into that, and press Enter."""
    await pilot.press(key)
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))
    await pilot.press(*text, "enter")


def text_of(pilot: Pilot[None]) -> str:
    """Return the text on the screen."""
    app = pilot.app
    lines = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in lines)


def run_screen(pilot: Pilot[None]) -> RunScreen:
    screen = pilot.app.screen
    assert isinstance(screen, RunScreen), screen
    return screen
