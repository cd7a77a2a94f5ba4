"""The two loads of the soak: trials of one run, and changes of the bitstream."""

from __future__ import annotations

from pathlib import Path

from hilt.engine import launch
from hilt.engine.client import EngineClient
from hilt.engine.events import EngineCommand, EngineHello, TrialRecorded
from hilt.engine.run_spec import RunSpec
from hilt.link.agent import AgentConnection
from hilt.link.deadline import Deadline
from hilt.measure.board_description import VirtualTarget
from hilt.measure.connection import program_board, who
from hilt.run_choices import SpaceName
from hilt.store import RunState, Store, database_path
from hilt.trial import Outcome
from hilt.virtual.directory import BoardDirectory
from tests.soak.recorder import Recorder, Series

WORKLOAD = "conv2d:n=1,ci=32,h=48,w=48,co=32,k=1x1,s=1x1,p=0x0"
"""A small layer with 27,648 configurations in ML2Tuner's space; about half are rejected before they travel."""
BOARD = "virtual:pynq@soak"
_SILENCE_SECONDS = 300.0
_LOAD_SECONDS = 300.0


def trials_phase(home: Path, measured: int, seconds: float) -> tuple[Series, dict[str, set[int]], int, int]:
    """Run trials until so many ran on the board.

    Returns:
        The samples, the process ids by role, and the numbers of trials that ran on the board and of all.
    """
    spec = RunSpec(WORKLOAD, BOARD, "random", trials=27_648, batch=16, space_kind=SpaceName.ML2)
    run = launch.start(spec, home)
    done = 0
    with EngineClient.attach(home, run.uuid) as client:
        events = client.events(_SILENCE_SECONDS)
        engine = next(event.pid for event in events if isinstance(event, EngineHello))
        with Recorder(_agent_home(), engine, lambda: done, seconds) as recorder:
            for event in events:
                if isinstance(event, TrialRecorded) and event.trial.outcome is not Outcome.REJECTED:
                    done += 1
                    if done == measured:
                        client.send(EngineCommand.STOP)
    with Store(database_path(home)) as store:
        state = store.run(run.uuid).state
        outcomes = [trial.outcome for trial in store.trials(run.uuid)]
    ran = sum(outcome is not Outcome.REJECTED for outcome in outcomes)
    if state not in (RunState.FINISHED, RunState.STOPPED) or ran < measured:
        raise RuntimeError(f"run {run.uuid} is {state} after {ran} of {measured} measured trials")
    return recorder.series, recorder.starts, ran, len(outcomes)


def loads_phase(loads: int, seconds: float) -> tuple[Series, dict[str, set[int]]]:
    """Load two bitstreams in turn, each with its canary. Returns the samples and the process ids by role."""
    done = 0
    targets = [VirtualTarget(BOARD, form="golden"), VirtualTarget(BOARD)]
    try:
        bitstreams = [target.bitstream() for target in targets]
        agent = AgentConnection.open(targets[0].endpoint(), who(), Deadline(_LOAD_SECONDS))
        try:
            with Recorder(_agent_home(), None, lambda: done, seconds) as recorder:
                for ordinal in range(loads):
                    target, bitstream = targets[ordinal % 2], bitstreams[ordinal % 2]
                    program_board(agent.client, target, bitstream, Deadline(_LOAD_SECONDS))
                    done += 1
        finally:
            agent.close()
    finally:
        for target in targets:
            target.release()
    return recorder.series, recorder.starts


def _agent_home() -> Path:
    return BoardDirectory("soak").home / ".hilt"
