"""The keeper of a labgrid place beside a scripted coordinator: its output, its requests and its releases."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("labgrid", reason="labgrid is not installed: pip install 'hilt[power]'")

from hilt.link import labgrid_keeper as keeper

WAITING, ALLOCATED, ACQUIRED, EXPIRED = (
    getattr(keeper.ReservationState, name).value for name in ("waiting", "allocated", "acquired", "expired")
)


class Coordinator:
    """Gives the reservation these states, one for each question; the place has these holders meanwhile."""

    def __init__(self, states: Sequence[int], holders: Sequence[str | None] = ()) -> None:
        self._states = iter(states)
        self._holders = iter(holders)
        self.asked: list[str] = []
        self.place = SimpleNamespace(acquired=None, tags={"bitstream": "pynq"}, hasmatch=self._has)

    def _has(self, path: tuple[str, str, str, str]) -> bool:
        return path[1] == "desk"

    def _reservation(self) -> Any:
        self.place.acquired = next(self._holders, None)
        return SimpleNamespace(reservation=SimpleNamespace(state=next(self._states), token="t7"))

    async def CreateReservation(self, request: Any) -> Any:  # noqa: N802
        self.asked.append(f"reserve {request.filters['main'].filter['name']} at {request.prio:g}")
        return self._reservation()

    async def PollReservation(self, request: Any) -> Any:  # noqa: N802
        self.asked.append(f"poll {request.token}")
        return self._reservation()

    async def AcquirePlace(self, request: Any) -> None:  # noqa: N802
        self.asked.append(f"acquire {request.placename}")

    async def ReleasePlace(self, request: Any) -> None:  # noqa: N802
        self.asked.append(f"release {request.placename} from {request.fromuser}")

    async def CancelReservation(self, request: Any) -> None:  # noqa: N802
        self.asked.append(f"cancel {request.token}")


class Session:
    """The part of labgrid's session that the keeper uses."""

    def __init__(self, coordinator: Coordinator, resources: Any = None) -> None:
        self.stub = coordinator
        self.places = {"desk": coordinator.place}
        self.resources = resources or {}

    def gethostname(self) -> str:
        return "lab"

    def getuser(self) -> str:
        return "ann"


def resource(cls: str, **args: Any) -> Any:
    return SimpleNamespace(cls=cls, args=args)


def hold(coordinator: Coordinator, *, end: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold the place; the input ends at once, or as soon as the place is held."""
    monkeypatch.setattr(keeper, "_POLL_SECONDS", 0.001)
    ended = asyncio.Event()
    tell = keeper._tell

    def told(**values: Any) -> None:
        tell(**values)
        if values["state"] == "held":
            ended.set()

    monkeypatch.setattr(keeper, "_tell", told)

    async def run() -> None:
        if end:
            ended.set()
        await keeper._hold(Session(coordinator), "desk", ended)  # type: ignore[arg-type]

    asyncio.run(run())


def said(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


BACK = ["release desk from lab/ann", "cancel t7"]


def test_a_free_place_is_held_and_given_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    coordinator = Coordinator([ALLOCATED])
    hold(coordinator, end=False, monkeypatch=monkeypatch)
    assert coordinator.asked == ["reserve desk at 0", "acquire desk", *BACK]
    assert said(capsys) == [{"state": "held", "resources": {}}]


def test_each_holder_that_is_waited_for_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    coordinator = Coordinator([WAITING, WAITING, ACQUIRED, WAITING, ALLOCATED], ["eve", "eve", "bob", None, None])
    hold(coordinator, end=False, monkeypatch=monkeypatch)
    assert coordinator.asked == ["reserve desk at 0", *["poll t7"] * 4, "acquire desk", *BACK]
    holders = [line["holder"] for line in said(capsys) if line["state"] == "waiting"]
    assert holders == ["eve", "bob", "another reservation"]


@pytest.mark.parametrize("state", [WAITING, ALLOCATED])
def test_who_is_gone_before_the_turn_acquires_nothing(state: int, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = Coordinator([state])
    hold(coordinator, end=True, monkeypatch=monkeypatch)
    assert coordinator.asked == ["reserve desk at 0", "cancel t7"]


def test_a_reservation_that_has_ended_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = Coordinator([WAITING, EXPIRED])
    with pytest.raises(keeper._RefusedError, match="^the reservation of place desk has ended$"):
        hold(coordinator, end=False, monkeypatch=monkeypatch)
    assert coordinator.asked[-1] == "cancel t7" and "acquire desk" not in coordinator.asked


def test_the_parameters_are_those_of_the_places_services_alone() -> None:
    resources = {
        "lab": {
            "desk": {"net": resource("NetworkService", address="192.0.2.9"), "usb": resource("USBSerialPort", bus=1)},
            "rack": {"net": resource("NetworkService", address="192.0.2.1")},
        },
        "roof": {"desk": {"power": resource("NetworkPowerPort", index="3")}},
    }
    session: Any = Session(Coordinator([]), resources)
    assert keeper._resources(session, "desk") == {
        "NetworkService": {"address": "192.0.2.9"},
        "NetworkPowerPort": {"index": "3"},
    }


class Started(Session):
    """A session that can be started and closed."""

    def __init__(self, address: str, loop: object) -> None:
        super().__init__(Coordinator([ALLOCATED]))
        self.stopping = asyncio.Event()
        made.append(self)
        self.did = [address]

    async def start(self) -> None:
        self.did.append("start")

    async def stop(self) -> None:
        assert self.stopping.is_set()
        self.did.append("stop")

    async def close(self) -> None:
        self.did.append("close")


made: list[Started] = []


@pytest.fixture(autouse=True)
def _none_made() -> None:
    made.clear()


@pytest.mark.parametrize(("coordinator", "address"), [("lab", "lab:20408"), ("lab:7", "lab:7")])
def test_a_look_tells_facts_and_holds_nothing(
    coordinator: str, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(keeper, "ClientSession", Started)
    monkeypatch.setattr(keeper.sys, "argv", ["keeper", coordinator, "desk", "--look"])
    monkeypatch.setattr(keeper.logging, "disable", lambda level: None)
    keeper.main()
    assert said(capsys) == [{"state": "facts", "tags": {"bitstream": "pynq"}, "resources": {}}]
    (session,) = made
    assert session.did == [address, "start", "stop", "close"]
    assert session.stub.asked == []


def test_a_place_that_is_not_there_is_refused_with_those_that_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(keeper, "ClientSession", Started)
    monkeypatch.setattr(keeper.sys, "argv", ["keeper", "lab", "roof"])
    monkeypatch.setattr(keeper.logging, "disable", lambda level: None)
    keeper.main()
    (line,) = said(capsys)
    assert line == {"state": "refused", "reason": "the coordinator at lab has no place roof; there is desk"}
    assert made[0].did[-2:] == ["stop", "close"]


def test_a_coordinator_that_does_not_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Silent(Started):
        async def start(self) -> None:
            raise keeper.ServerError("no")

    monkeypatch.setattr(keeper, "ClientSession", Silent)
    monkeypatch.setattr(keeper.sys, "argv", ["keeper", "lab", "desk"])
    monkeypatch.setattr(keeper.logging, "disable", lambda level: None)
    keeper.main()
    assert said(capsys) == [{"state": "refused", "reason": "no labgrid coordinator answers at lab"}]
