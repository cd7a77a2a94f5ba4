"""An engine's process, killed at any instant and resumed: its database equals that of an undisturbed engine.

The board is a table (tests.unit.engine.table): the subject is the engine, its database and its replay.
"""

from __future__ import annotations

import fcntl
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from hilt.engine import launch
from hilt.engine.client import EngineClient, NoEngineError
from hilt.engine.events import EngineHello, Finished
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunSpec
from hilt.store import Run, RunState, Store, Trial, database_path
from tests.unit.engine.table import WORKLOAD, TableBoards

ENGINE = (sys.executable, "-m", "tests.unit.engine.table_engine")
SECONDS = 120.0
TRIALS = 400
KILLS_A_RUN = 10
LONGEST_SECONDS = 0.25
"""Between an engine's hello and its death."""


def kill_campaign(kills: int, seed: int = 1) -> tuple[int, int]:
    """(engines killed, databases that differ from the undisturbed one)."""
    done = different = 0
    with tempfile.TemporaryDirectory(prefix="hilt-") as directory:
        wanted = undisturbed(Path(directory) / "quiet")
        for ordinal in range(kills):
            if done >= kills:
                break
            run_kills, records = killed_run(Path(directory) / str(ordinal), random.Random(seed + ordinal), kills - done)
            done += run_kills
            different += records != wanted
    return done, different


def undisturbed(home: Path, trials: int = TRIALS) -> list[Trial]:
    home.mkdir()
    return _finish(home, _start(home, trials))


def killed_run(home: Path, chance: random.Random, most: int, trials: int = TRIALS) -> tuple[int, list[Trial]]:
    """Kill the engine of a run at most KILLS_A_RUN times, then finish the run.

    Returns:
        The number of kills and the records.
    """
    home.mkdir()
    run = _start(home, trials)
    kills = 0
    while kills < min(most, KILLS_A_RUN) and _kill(home, run, chance.uniform(0, LONGEST_SECONDS)):
        kills += 1
        with Store(database_path(home)) as store:
            if store.run(run.uuid).state is RunState.FINISHED:
                break
        launch.resume(run.uuid, home, boards=TableBoards(), engine=ENGINE)
    return kills, _finish(home, run)


def _start(home: Path, trials: int) -> Run:
    settings = RunSpec(workload=WORKLOAD, board="table:plain", tuner="random", trials=trials, seed=3, batch=5)
    return launch.start(settings, home, boards=TableBoards(), engine=ENGINE)


def _kill(home: Path, run: Run, after: float) -> bool:
    """Kill the engine after a time, and return False if the engine was quicker."""
    try:
        with EngineClient.attach(home, run.uuid) as client:
            pid = next(event.pid for event in client.events(SECONDS) if isinstance(event, EngineHello))
            time.sleep(after)  # only the instant is drawn
            if not RunFiles(home, run.uuid).is_running():
                return False
            os.kill(pid, signal.SIGKILL)
            return not any(isinstance(event, Finished) for event in client.events(SECONDS))
    except (NoEngineError, ProcessLookupError):
        return False


def _finish(home: Path, run: Run) -> list[Trial]:
    try:
        with EngineClient.attach(home, run.uuid) as client:
            for _ in client.events(SECONDS):
                pass
    except NoEngineError:
        pass  # it is over already
    with RunFiles(home, run.uuid)._open_lock() as lock:  # until the engine has let go of it
        fcntl.flock(lock, fcntl.LOCK_EX)
    with Store(database_path(home)) as store:
        assert store.run(run.uuid).state is RunState.FINISHED, store.run(run.uuid).detail
        return store.trials(run.uuid)
