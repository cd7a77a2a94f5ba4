"""The loop of a campaign: fallbacks first, then slices of trials to the layers where they save most.

Slice k + 1 is chosen and asked for while slice k is on the board, always by the results until then. So time decides
nothing. Each slice is recorded before it is asked for. A resumed campaign makes the same calls again, in which
recorded trials are not measured, and decides only the slices that are not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic

from hilt.campaign.allocation import MINIMUM_TRIALS, choose
from hilt.campaign.budget import Budget
from hilt.campaign.campaign_control import CampaignControl
from hilt.campaign.layer import LayerSearch
from hilt.engine.events import EngineCommand
from hilt.engine.loop import TrialBatch
from hilt.store import Campaign, Slice, Store
from hilt.store.campaigns import add_seconds, record_slice, slices


@dataclass(frozen=True)
class _Step:
    """A slice that was asked for."""

    layer: LayerSearch
    batch: TrialBatch


class CampaignLoop:
    """Runs once. Raises as TuningLoop does."""

    def __init__(
        self,
        campaign: Campaign,
        budget: Budget,
        layers: Sequence[LayerSearch],
        store: Store,
        control: CampaignControl,
        say: Callable[[str], None],
        begin_slice: Callable[[str], None] = lambda workload: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._campaign = campaign
        self._budget = budget
        self._layers = layers
        self._slice_trials = int(campaign.settings["batch"])
        self._store = store
        self._control = control
        self._say = say
        self._begin_slice = begin_slice
        self._clock = clock
        self._recorded = slices(store, campaign.uuid)
        self._made = 0
        self._spent = campaign.spent_seconds
        self._saved_at = self._active()

    def run(self) -> bool:
        """Return True when the budget is spent or no tuner asks for more, False when it was stopped before."""
        with ThreadPoolExecutor(1, "measure") as pool:
            try:
                return (
                    all(self._find_fallback(layer) for layer in self._layers)
                    and self._spend(pool)
                    and all(layer.confirm() for layer in self._layers)
                )
            except BaseException:
                self._control.obey(EngineCommand.STOP)  # the trials on the board are recorded before we leave
                raise
            finally:
                self._save_time()

    def _find_fallback(self, layer: LayerSearch) -> bool:
        while layer.searches_fallback and self._left > 0:
            self._say(f"{layer.layer.name}: the fallback schedule")
            self._begin_slice(layer.workload)
            batch = layer.ask(1)
            layer.measure(batch)
            if self._control.stopping:
                return False
            layer.tell(batch)
        return not self._control.stopping

    def _spend(self, pool: ThreadPoolExecutor) -> bool:
        current = self._next_step()
        measuring = pool.submit(_measure, current)
        while current is not None:
            following = self._next_step()
            measuring.result()
            if self._control.stopping:
                return False
            measuring = pool.submit(_measure, following)  # before `tell`: the board does not wait for the tuner
            current.layer.tell(current.batch)
            self._save_time()
            if following is None:  # a tuner that asked for nothing may ask again, now that it knows every result
                following = self._next_step()
                measuring = pool.submit(_measure, following)
            current = following
        return not self._control.stopping

    def _next_step(self) -> _Step | None:
        """Ask for the next slice whose tuner has trials for it."""
        while (made := self._next_slice()) is not None:
            layer = next(layer for layer in self._layers if layer.workload == made.workload)
            batch = layer.ask(made.trials)
            if batch.indices:
                self._say(f"{layer.layer.name}: trials {batch.first} to {batch.first + len(batch.indices) - 1}")
                self._begin_slice(layer.workload)
                return _Step(layer, batch)
            self._say(f"{layer.layer.name}: its tuner takes nothing that is left to be worth a trial")
        return None

    def _next_slice(self) -> Slice | None:
        """Return the next slice: the recorded one, else decide and record it."""
        ordinal = self._made
        if ordinal < len(self._recorded):
            self._made += 1
            return self._recorded[ordinal]
        standings = [layer.standing for layer in self._layers]
        if self._budget.seconds is not None and self._spent_now >= self._budget.seconds:
            # The minimum is given whatever the clock says: a layer without any trial has no schedule at all.
            standings = [standing if standing and standing.asked < MINIMUM_TRIALS else None for standing in standings]
        chosen = choose(standings)
        if chosen is None or self._left < 1 or self._control.stopping:
            return None
        place, gain = chosen
        missing = MINIMUM_TRIALS - self._layers[place].asked
        count = min(missing if missing > 0 else self._slice_trials, self._left)
        made = Slice(ordinal, self._layers[place].workload, count, gain)
        record_slice(self._store, self._campaign.uuid, made)
        self._made += 1
        return made

    @property
    def _left(self) -> int:
        """Trials that the budget still has."""
        if self._budget.trials is None:
            return self._slice_trials * len(self._layers) + MINIMUM_TRIALS  # any number that no slice exceeds
        return self._budget.trials - sum(layer.asked for layer in self._layers)

    def _active(self) -> float:
        return self._clock() - self._control.paused_seconds

    @property
    def _spent_now(self) -> float:
        return self._spent + self._active() - self._saved_at

    def _save_time(self) -> None:
        now = self._active()
        add_seconds(self._store, self._campaign.uuid, max(0.0, now - self._saved_at))
        self._spent += max(0.0, now - self._saved_at)
        self._saved_at = now


def _measure(step: _Step | None) -> None:
    if step is not None:
        step.layer.measure(step.batch)
