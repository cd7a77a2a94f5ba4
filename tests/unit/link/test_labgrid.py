"""Places of a real labgrid coordinator, with resources of a real exporter, on 127.0.0.1."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt.link import labgrid_place
from hilt.link.errors import BoardFileError
from hilt.link.labgrid_place import HeldPlace, PlaceError, look
from hilt.measure.board_description import LabgridTarget, resolve
from tests.unit.link.laboratory import Laboratory, until

pytest.importorskip("labgrid", reason="labgrid is not installed: pip install 'hilt[power]'")
pytestmark = pytest.mark.slow  # starts a coordinator and an exporter

EXPORTED = """
desk:
  NetworkService:
    address: 192.168.2.99
    username: xilinx
    port: 2222
  NetworkPowerPort:
    model: simplerest
    host: http://127.0.0.1:1/{index}/{value}
    index: '3'
"""


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    made = Laboratory(tmp_path_factory.mktemp("lab"), EXPORTED)
    try:
        made.open("pynq")
        yield made
    finally:
        made.close()


@pytest.fixture(autouse=True)
def settings(laboratory: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LG_COORDINATOR", laboratory.address)
    monkeypatch.setenv("HILT_HOME", str(tmp_path))


def test_a_place_is_found_with_its_address_bitstream_and_switch() -> None:
    target = resolve("labgrid:desk")
    assert isinstance(target, LabgridTarget)
    assert target.description.name == "labgrid:desk"
    assert target.description.accelerator.parameters.name == "1x16_i8w8a32_15_15_18_17"
    power = target.power()
    assert power is not None and type(power._driver).__name__ == "NetworkPowerDriver"


def test_a_table_of_the_places_name_has_settings_that_labgrid_lacks(tmp_path: Path) -> None:
    (tmp_path / "boards.toml").write_text(
        '[desk]\nhost = "elsewhere"\nbitstream = "hilt-pynq-z2"\npython = "python3"\nsudo = false\n'
    )
    target = resolve("labgrid:desk")
    try:
        endpoint = target.endpoint()
    finally:
        target.release()
    assert (endpoint.host, endpoint.port, endpoint.user) == ("192.168.2.99", 2222, "xilinx")
    assert (endpoint.python, endpoint.sudo) == ("python3", False)
    assert target.description.accelerator.hazards == "interlock"


def test_a_place_is_held_in_turn_and_given_back(laboratory: Laboratory) -> None:
    first, second = HeldPlace("desk"), HeldPlace("desk")
    waiting, held = threading.Event(), threading.Event()
    told: list[str] = []

    def report(text: str) -> None:
        told.append(text)
        waiting.set()

    first.hold(report)
    assert told == [] and laboratory.holder() != ""
    first.hold(report)  # held already
    thread = threading.Thread(target=lambda: (second.hold(report), held.set()))
    thread.start()
    assert waiting.wait(30) and not held.is_set()
    assert told[0].startswith("waiting for place desk, which ") and "/" in told[0]
    first.release()
    assert held.wait(30)
    assert laboratory.holder() != ""
    second.release()
    assert laboratory.holder() == ""
    thread.join(20)
    with pytest.raises(PlaceError, match="was released"):
        second.hold(report)


def test_who_gives_up_waiting_leaves_the_queue(laboratory: Laboratory) -> None:
    first, second, waiting = HeldPlace("desk"), HeldPlace("desk"), threading.Event()
    first.hold(lambda text: None)
    refused: list[BaseException] = []

    def wait() -> None:
        try:
            second.hold(lambda text: waiting.set())
        except PlaceError as error:
            refused.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert waiting.wait(30)
    second.release()
    thread.join(20)
    assert "ended before its turn" in str(refused[0])
    first.release()
    assert laboratory.holder() == "" and "Reservation" not in laboratory.client("reservations")


HOLD = """
import time
from hilt.link.labgrid_place import HeldPlace
HeldPlace("desk").hold(lambda text: None)
print("held", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_killed_at_any_instant_its_place_is_given_back(laboratory: Laboratory, how: signal.Signals) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, env=dict(os.environ))
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    assert laboratory.holder() != ""
    holder.send_signal(how)
    holder.wait(20)
    until(lambda: laboratory.holder() == "")


def test_a_place_that_somebody_acquired_by_hand_is_waited_for(laboratory: Laboratory) -> None:
    laboratory.client("-p", "desk", "acquire")
    place, waiting = HeldPlace("desk"), threading.Event()
    thread = threading.Thread(target=lambda: place.hold(lambda text: waiting.set()))
    thread.start()
    assert waiting.wait(30)
    laboratory.client("-p", "desk", "release")
    thread.join(30)
    assert not thread.is_alive() and laboratory.holder() != ""
    place.release()


def test_a_place_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(PlaceError, match="has no place bench; there is desk"):
        look("bench")
    with pytest.raises(BoardFileError, match="cannot name a labgrid place"):
        look("../desk")


def test_a_place_without_an_address_names_the_missing_line(laboratory: Laboratory) -> None:
    laboratory.client("-p", "bare", "create")
    try:
        with pytest.raises(BoardFileError, match=r"place bare has neither a NetworkService nor a table \[bare\]"):
            resolve("labgrid:bare")
    finally:
        laboratory.client("-p", "bare", "delete")


def test_without_a_coordinator_its_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LG_COORDINATOR", "127.0.0.1:1")
    with pytest.raises(PlaceError, match=r"place desk: no labgrid coordinator answers at 127\.0\.0\.1:1"):
        look("desk")


def test_without_labgrid_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labgrid_place, "find_spec", lambda name: None)
    with pytest.raises(PlaceError, match=r"pip install 'hilt\[power\]'"):
        look("desk")
