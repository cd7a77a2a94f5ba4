"""`hilt tune --board labgrid:desk`: a run on a virtual board that a real coordinator gives out, to its end and killed.

The place leads to the board as to one of a laboratory: address and user by labgrid, key and bitstream by boards.toml.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt import bitstreams
from hilt.engine.client import EngineClient
from hilt.engine.events import EngineHello, TrialRecorded
from hilt.engine.run_files import RunFiles
from hilt.link.errors import UnknownHostKeyError
from hilt.link.host_keys import HostKeys, fingerprint
from hilt.store import RunState, Store, Trial, database_path
from hilt.trial import Outcome
from hilt.virtual.bitstream import make_bitstream
from hilt.virtual.board_model import board_model
from hilt.virtual.directory import USER, BoardDirectory
from hilt.virtual.supervisor_control import SupervisorControl
from tests.e2e.conftest import stop_boards
from tests.e2e.test_first_light import hilt, trials_of
from tests.unit.link.laboratory import Laboratory, until

pytest.importorskip("labgrid", reason="labgrid is not installed: pip install 'hilt[power]'")
pytestmark = pytest.mark.slow  # starts a coordinator, an exporter and a board

WORKLOAD = "conv2d:n=1,ci=16,h=8,w=8,co=16,k=3x3,s=1x1,p=1x1"
TUNE = ("tune", WORKLOAD, "--tuner", "random", "--seed", "5", "--trials", "12", "--batch", "3")
PLACE = "labgrid:desk"
SECONDS = 120.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("labgrid") / "hilt-home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HILT_HOME", str(made))
        yield made
        stop_boards(made)


@pytest.fixture(scope="module")
def laboratory(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    """A laboratory whose place is a virtual board: on, its host key accepted, its bitstream in the library.

    A paced one, so that a run lasts longer than it takes to kill it.
    """
    directory = BoardDirectory("bench")
    with SupervisorControl.hold(directory, board_model("pynq_paced")) as control:
        port = control.power_on().port
        assert port is not None
        key = directory.host_public_key()
        HostKeys().accept(UnknownHostKeyError("127.0.0.1", port, key, fingerprint(key)))
        bitstreams.add(make_bitstream(board_model("pynq")).path, bitstreams.find("hilt-pynq-z2"))
        (home / "boards.toml").write_text(
            '[desk]\nhost = "0.0.0.0"\nbitstream = "hilt-pynq-z2"\npython = "python3"\nsudo = false\n'
            f'key = "{directory.client_key}"\n'
        )
        service = f"    address: 127.0.0.1\n    username: {USER}\n    port: {port}\n"
        made = Laboratory(tmp_path_factory.mktemp("lab"), f"desk:\n  NetworkService:\n{service}")
        try:
            made.open("hilt-pynq-z2")
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("LG_COORDINATOR", made.address)
                yield made
        finally:
            made.close()


@pytest.fixture(scope="module")
def undisturbed(home: Path) -> list[Trial]:
    hilt(*TUNE, "--board", "virtual:pynq")
    return last(home)


def last(home: Path) -> list[Trial]:
    with Store(database_path(home)) as store:
        return store.trials(store.run("last").uuid)


def facts(trials: list[Trial]) -> list[tuple[object, ...]]:
    """Return the facts that do not depend on the board's name, or on how often a run was repeated."""
    return [(each.ordinal, each.index, each.outcome, each.cycles, each.microseconds) for each in trials]


def test_a_run_on_a_place_ends_with_the_records_of_its_board_and_gives_it_back(
    home: Path, laboratory: Laboratory, undisturbed: list[Trial]
) -> None:
    hilt(*TUNE, "--board", PLACE)
    records = last(home)
    assert sum(each.outcome is Outcome.OK for each in records) >= 3
    assert facts(records) == facts(undisturbed)
    assert {each.board for each in records if each.outcome is not Outcome.REJECTED} == {PLACE}
    until(lambda: laboratory.holder() == "")


def test_a_killed_run_gives_its_place_back_and_is_resumed_in_its_turn(
    home: Path, laboratory: Laboratory, undisturbed: list[Trial]
) -> None:
    hilt(*TUNE, "--board", PLACE, "--detach")
    with Store(database_path(home)) as store:
        run = store.run("last").uuid
    engine = 0
    with EngineClient.attach(home, run) as client:
        for event in client.events(SECONDS):
            if isinstance(event, EngineHello):
                engine = event.pid
            elif isinstance(event, TrialRecorded) and event.trial.outcome is not Outcome.REJECTED:
                break
    os.kill(engine, signal.SIGSTOP)  # labgrid's client takes longer to start than the trials that are left
    assert laboratory.holder() != ""
    os.kill(engine, signal.SIGKILL)
    until(lambda: laboratory.holder() == "")
    assert RunFiles(home, run).wait_until_free(SECONDS)
    with Store(database_path(home)) as store:
        assert store.run(run).state is not RunState.FINISHED

    # Somebody else took the place in the meantime: the run waits for its turn.
    laboratory.client("-p", "desk", "acquire")
    hilt("resume", run, "--detach")
    with EngineClient.attach(home, run) as client:
        for event in client.events(SECONDS):
            if "waiting for place desk" in str(event):
                laboratory.client("-p", "desk", "release")
    assert RunFiles(home, run).wait_until_free(SECONDS)
    assert facts(trials_of(home, run)) == facts(undisturbed)
    until(lambda: laboratory.holder() == "")


def test_an_unknown_key_is_refused_and_the_place_given_back(
    home: Path, laboratory: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "boards.toml").write_bytes((home / "boards.toml").read_bytes())
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    refused = hilt(*TUNE, "--board", PLACE, code=3).stderr
    assert "host key of 127.0.0.1 port" in refused and "is not known" in refused
    until(lambda: laboratory.holder() == "")
