"""The state of a campaign at this moment, from the store. It knows nothing of the screen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import time

from hilt.engine.campaign_results import CampaignResult, LayerResult, load_result
from hilt.engine.command_progress import last_stage
from hilt.engine.run_files import RunFiles
from hilt.report.campaign_inference import CampaignInference, load_inference
from hilt.report.network_latency import NetworkFigure, layer_share, network_figure
from hilt.store import Campaign, RunState, Store

_ENDED = (RunState.FINISHED, RunState.STOPPED, RunState.FAILED)


@dataclass(frozen=True)
class CampaignView:
    """A campaign's results, and whether an engine works on it, or on which of its layers."""

    result: CampaignResult
    live: bool
    live_runs: frozenset[str]
    inference: CampaignInference | None = None
    stage: str = ""
    """The phase of its last stage, which makes the network's bundle, while that goes on."""
    silent: bool = False
    """A flag: its engine answers no more."""

    @classmethod
    def load(cls, store: Store, home: Path, campaign: Campaign) -> CampaignView:
        """Load a campaign from the store; it takes a few milliseconds a layer. Raises StoreError."""
        result = load_result(store, store.campaign(campaign.uuid) or campaign)
        runs = [layer.run.uuid for layer in result.layers if layer.run is not None]
        live_runs = frozenset(uuid for uuid in runs if RunFiles(home, uuid).is_running())
        live = RunFiles(home, campaign.uuid).is_running()
        stage = last_stage(home, campaign.uuid)
        words = stage.text(time()) if stage is not None else ""
        return cls(result, live, live_runs, load_inference(store, campaign.uuid), words)

    @property
    def figure(self) -> NetworkFigure:
        """The network's latency."""
        return network_figure(self.result, self.inference)

    @property
    def engine(self) -> str:
        """The uuid that its engine holds."""
        return self.result.campaign.uuid

    @property
    def budget_trials(self) -> int | None:
        """Return the budget of all layers together, in trials; None if the budget is a time."""
        campaign = self.result.campaign
        return int(campaign.budget["trials"]) if "trials" in campaign.budget else None

    @property
    def share_done(self) -> float:
        """Return the spent share of the budget, from 0 to 1."""
        campaign, trials = self.result.campaign, self.budget_trials
        if trials is not None:
            return min(self.result.trials / trials, 1.0) if trials else 1.0
        return min(campaign.spent_seconds / campaign.budget["seconds"], 1.0)

    @property
    def seconds_left(self) -> float | None:
        """Return the seconds left at the pace until now; None if it is not known."""
        campaign = self.result.campaign
        if "seconds" in campaign.budget:
            return max(campaign.budget["seconds"] - campaign.spent_seconds, 0.0)
        done = self.share_done
        spent = campaign.spent_seconds
        return spent * (1 - done) / done if done and spent else None

    @property
    def state_words(self) -> str:
        """The state for people."""
        campaign = self.result.campaign
        if self.stage:
            return f"NETWORK {self.stage}"
        if self.live and self.silent:
            return "NOT ANSWERING: an engine holds it; is its process stopped?"
        if not self.live and campaign.state not in _ENDED:
            return f"INTERRUPTED (was {campaign.state}): r goes on with it"
        return f"{campaign.state.upper()}: {campaign.detail}" if campaign.detail else campaign.state.upper()

    def share(self, layer: LayerResult) -> float | None:
        """Return the layer's share of the network's estimated latency."""
        return layer_share(layer, self.result)

    def layer_state(self, layer: LayerResult) -> str:
        """Return the layer's state. A layer that was skipped gets no more trials; one of a stopped campaign may."""
        if layer.run is None:
            return "waiting"
        state = layer.run.state
        if state in (RunState.RUNNING, RunState.PAUSED) and layer.run.uuid not in self.live_runs:
            return "interrupted"
        return layer.run.detail if state is RunState.FINISHED and layer.run.detail == "skipped" else str(state)
