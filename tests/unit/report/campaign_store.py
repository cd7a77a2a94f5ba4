"""A store with a campaign of two layers and a run by itself, made by hand: every figure is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hilt.campaign.budget import Budget
from hilt.campaign.design import make_campaign, make_runs
from hilt.engine.event_log import EventLog
from hilt.engine.events import BoardChanged, Logged
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunSpec
from hilt.schedule.onnx_model import Layer, Network
from hilt.store import Campaign, Run, RunState, Slice, Store, Trial, database_path
from hilt.store.campaigns import end_layer, record_slice, set_campaign_state
from hilt.trial import Outcome, Verification
from tests.unit.engine.table import TableBoards

EVIL = "<script>alert('x')</script>&\"$\\alpha$"
NETWORK = Network(
    f"net{EVIL}",
    (
        Layer("resnet18.C5", nodes=["body.0", f"body.1{EVIL}", "body.2"]),
        Layer("resnet18.C10", nodes=["skip"]),
        Layer("", reason=f"Conv: dilation {EVIL}", nodes=["odd"]),
    ),
    {"Relu": 4},
)
LATENCIES = ([44_000.0, 5_000.0, None, 4_700.5, 4_800.0], [12_000.0, None, 400.25, 350.75])
"""Microseconds of each trial of the two layers; None is a timeout, or a crash with a reason that is no HTML."""
MOST_TRIALS = 9


def make(home: Path, ended: bool = True, budget: Budget | None = None) -> tuple[Campaign, Run]:
    """Return the campaign, its layers ended or not, and its first layer's run. Its budget is MOST_TRIALS by default."""
    campaign = make_campaign(
        NETWORK,
        RunSpec(workload="net.onnx", board="table:plain", tuner="hilt", trials=1, seed=7),
        budget or Budget(trials=MOST_TRIALS),
    )
    runs = make_runs(campaign, TableBoards().describe_board("table:plain"))
    with Store(database_path(home)) as store:
        store.create_campaign(campaign)
        for place, (run, latencies) in enumerate(zip(runs, LATENCIES, strict=True)):
            run = replace(run, created=float(place + 1))
            store.create_run(run)
            store.record(run.uuid, [_trial(run, ordinal, latency) for ordinal, latency in enumerate(latencies)])
            record_slice(store, campaign.uuid, Slice(place, run.workload, len(latencies) - 1, 12.5))
            if ended:
                end_layer(store, run.uuid)
        set_campaign_state(store, campaign.uuid, RunState.FINISHED)
    publish = EventLog(RunFiles(home, campaign.uuid).event_log_path).recording(lambda event: None)
    publish(BoardChanged("table:plain", "recovering", f"reboot over SSH {EVIL}", 1000.0))
    for celsius in (51.2, 63.4, 48.0):
        publish(BoardChanged("table:plain", "ready", "programmed in 0.4 s", 1000.5, celsius))
    publish(BoardChanged("table:plain", "released", "9 trials answered; idle 1 %", 1001.0))
    publish(Logged("warning", "the board drifts", 1002.0))
    publish(Logged("info", "nothing of note", 1003.0))
    return campaign, runs[0]


def _trial(run: Run, ordinal: int, latency: float | None) -> Trial:
    knobs = {"tile_b": 1, "tile_h": 2, "tile_w": 7 + ordinal}
    if latency is None:
        outcome = Outcome.TIMEOUT if ordinal == 2 else Outcome.CRASH
        return Trial(ordinal, 40 * ordinal, knobs, outcome, f"because {EVIL}", board="table:plain", attempt=1)
    seen = Verification(run.output_elements, 0)
    cycles = int(latency * 100)
    return Trial(
        ordinal, 40 * ordinal, knobs, Outcome.OK, "", cycles, latency, (latency,), seen, run.output_elements,
        "table:plain", 0, {"run": 0.25, "answer": 0.5},
    )  # fmt: skip
