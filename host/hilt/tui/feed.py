"""Follows one run: reads the store, attaches to its engine when there is one, and again when one comes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from textual.message import Message

from hilt.engine.client import EngineClient, NoEngineError, SilentEngineError
from hilt.engine.events import EngineCommand, EngineProtocolError, Event
from hilt.engine.run_files import RunFiles
from hilt.store import Store
from hilt.store.listing import valid_latencies
from hilt.tui import steering
from hilt.tui.background import in_background
from hilt.tui.messages import EngineGone, EventsArrived, RunLoaded
from hilt.tui.run_view import Link, RunView

REPAINT_SECONDS = 0.4
"""Events are handed on at most so often: a burst is one repaint."""
_LOOK_SECONDS = 1.0
"""Seconds between two looks for an engine where there is none."""
_QUIET_SECONDS = 5.0
"""Seconds without an event after which the engine is asked whether it answers: it may be paused, or at a long trial,
or
its process may be stopped."""


class RunFeed:
    """Posts RunLoaded (first without the curve), EventsArrived and EngineGone about one run until it is cancelled."""

    def __init__(self, home: Path, store: Store, uuid: str, post: Callable[[Message], object]) -> None:
        self._home = home
        self._store = store
        self._uuid = uuid
        self._post = post
        self._client: EngineClient | None = None
        self._heard = 0.0

    async def follow(self) -> None:
        """Follow the run. Raises StoreError, UnknownRunError."""
        gone = silent = False
        while True:
            link, client = (Link.SILENT, None) if silent else await self._attach()
            before = self._standing()
            # Attached first and read after: a trial that is recorded in between arrives twice and is never lost.
            view = await asyncio.to_thread(RunView.load, self._store, self._uuid, link)
            if gone and link is Link.NONE:
                view.engine_gone()
            self._post(RunLoaded(view))
            # Of a long run the curve takes as long as all else together; events wait for it in the socket.
            curve = await asyncio.to_thread(self._store.improvements, self._uuid)
            points = await asyncio.to_thread(valid_latencies, self._store, self._uuid)
            view.curve, view.points = curve, points  # together: the chart is drawn anew for another curve only
            self._post(RunLoaded(view))
            silent = client is not None and await self._relay(client)
            if silent:
                continue
            if client:
                self._post(EngineGone())
                gone = True
            await self._something_changes(before)

    def send(self, command: EngineCommand) -> None:
        """Send a command; this may block for some seconds. Raises NoEngineError."""
        if self._client is None:
            steering.send(self._home, self._uuid, command)  # it may have come just now
        else:
            self._client.send(command)

    async def _attach(self) -> tuple[Link, EngineClient | None]:
        try:
            return Link.ATTACHED, await in_background(lambda: EngineClient.attach(self._home, self._uuid))
        except SilentEngineError:
            return Link.SILENT, None
        except (NoEngineError, EngineProtocolError):
            return Link.NONE, None

    async def _relay(self, client: EngineClient) -> bool:
        """Relay events until the engine ends or answers no more; return whether it answers no more."""
        self._client = client
        reading = asyncio.create_task(self._read(client))
        try:
            while not (await asyncio.wait({reading}, timeout=_QUIET_SECONDS))[0]:
                if self._is_quiet():
                    link, asked = await self._attach()
                    if asked:
                        asked.close()
                    if link is Link.SILENT and self._is_quiet():
                        return True
                    self._post(EventsArrived(()))  # nothing new, for longer than before
            return False
        finally:
            reading.cancel()
            self._client = None

    def _is_quiet(self) -> bool:
        return time.monotonic() - self._heard >= _QUIET_SECONDS

    async def _read(self, client: EngineClient) -> None:
        batches = _Batches(lambda events: self._post(EventsArrived(events)))
        self._heard = time.monotonic()
        try:
            async for event in client.stream():
                self._heard = time.monotonic()
                batches.add(event)
        except EngineProtocolError:
            pass  # an engine of another version: the store still tells how the run goes
        finally:
            batches.flush()
            client.close()

    async def _something_changes(self, before: tuple[object, ...]) -> None:
        """Wait until an engine serves the run, or the store holds more than `before`.

        An engine may have recorded trials and ended before it was seen.
        """
        files = RunFiles(self._home, self._uuid)
        while True:
            await asyncio.sleep(_LOOK_SECONDS)  # also before an engine that is there, and cannot be attached to
            if files.socket_path.exists() if files.is_running() else self._standing() != before:
                return

    def _standing(self) -> tuple[object, ...]:
        run = self._store.run(self._uuid)
        return run.state, run.detail, run.finished, self._store.latest_trials(self._uuid, 1)


class _Batches:
    """Hands events on at once when it has been quiet, and otherwise together, REPAINT_SECONDS after the last time."""

    def __init__(self, hand_on: Callable[[tuple[Event, ...]], object]) -> None:
        self._hand_on = hand_on
        self._events: list[Event] = []
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, event: Event) -> None:
        self._events.append(event)
        if self._timer is None:
            wait = max(0.0, self._last + REPAINT_SECONDS - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait, self.flush)

    def flush(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._events:
            events, self._events = tuple(self._events), []
            self._last = time.monotonic()
            self._hand_on(events)
