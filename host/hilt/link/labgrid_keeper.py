"""`python -m hilt.link.labgrid_keeper COORDINATOR PLACE [--look]`: holds a place as long as its input is open.

A process of its own, because labgrid's coordinator releases nothing when a client goes away: killed at any instant,
the process that started this one closes the pipe, and the place is given back. It prints JSON lines: `facts` of the
place, `waiting` with its holder, `held`, or `refused` with a reason. With --look it prints the facts and ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from typing import Any

import grpc
from labgrid.remote.client import ClientSession, ServerError
from labgrid.remote.common import ReservationState
from labgrid.remote.generated import labgrid_coordinator_pb2 as messages
from labgrid.util.proxy import proxymanager

_POLL_SECONDS = 0.5
"""Seconds between two looks at a reservation; the coordinator drops one that nobody looks at for a minute."""
_CLASSES = ("NetworkService", "NetworkPowerPort")


def main() -> None:
    coordinator, place, *look = sys.argv[1:]
    logging.disable(logging.CRITICAL)  # each failure is a line of ours
    try:
        asyncio.run(_keep(coordinator, place, bool(look)))
    except _RefusedError as error:
        _tell(state="refused", reason=str(error))
    except ServerError:
        _tell(state="refused", reason=f"no labgrid coordinator answers at {coordinator}")
    except grpc.aio.AioRpcError as error:
        _tell(state="refused", reason=error.details() or str(error.code()))


class _RefusedError(Exception):
    """The place cannot be had."""


def _tell(**values: Any) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


async def _keep(coordinator: str, place: str, look: bool) -> None:
    loop = asyncio.get_running_loop()
    session = ClientSession(proxymanager.get_grpc_address(coordinator, default_port=20408), loop)
    await session.start()
    try:
        if place not in session.places:
            known = ", ".join(sorted(session.places)) or "none"
            raise _RefusedError(f"the coordinator at {coordinator} has no place {place}; there is {known}")
        _tell(state="facts", tags=dict(session.places[place].tags), resources=_resources(session, place))
        if not look:
            await _hold(session, place, _end_of_input(loop))
    finally:
        session.stopping.set()
        await session.stop()
        await session.close()


def _resources(session: ClientSession, place: str) -> dict[str, dict[str, Any]]:
    """Return the parameters of the place's resources of known classes, by class."""
    found: dict[str, dict[str, Any]] = {}
    for exporter, groups in session.resources.items():
        for group, resources in groups.items():
            for name, resource in resources.items():
                matched = session.places[place].hasmatch((exporter, group, resource.cls, name))
                if matched and resource.cls in _CLASSES:
                    found[resource.cls] = dict(resource.args)
    return found


def _end_of_input(loop: asyncio.AbstractEventLoop) -> asyncio.Event:
    """Return the event that standard input has ended or that this process was asked to end."""
    ended = asyncio.Event()

    def readable() -> None:
        if not os.read(0, 1 << 10):
            loop.remove_reader(0)
            ended.set()

    loop.add_reader(0, readable)
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    return ended


async def _hold(session: ClientSession, place: str, ended: asyncio.Event) -> None:
    """Reserve the place, acquire it at its turn, and give both back at the end of the input."""
    request = messages.CreateReservationRequest(prio=0.0)
    request.filters["main"].filter["name"] = place
    reservation = (await session.stub.CreateReservation(request)).reservation
    try:
        if not await _turn(session, place, reservation, ended):
            return
        await session.stub.AcquirePlace(messages.AcquirePlaceRequest(placename=place))
        try:
            _tell(state="held", resources=_resources(session, place))
            await ended.wait()
        finally:
            me = f"{session.gethostname()}/{session.getuser()}"
            await session.stub.ReleasePlace(messages.ReleasePlaceRequest(placename=place, fromuser=me))
    finally:
        await session.stub.CancelReservation(messages.CancelReservationRequest(token=reservation.token))


async def _turn(session: ClientSession, place: str, reservation: Any, ended: asyncio.Event) -> bool:
    """Wait until the place is ours to acquire; return False if the input ended first."""
    reported: str | None = None
    while reservation.state != ReservationState.allocated.value:
        if reservation.state not in (ReservationState.waiting.value, ReservationState.acquired.value):
            raise _RefusedError(f"the reservation of place {place} has ended")
        holder = session.places[place].acquired or "another reservation"
        if holder != reported:
            _tell(state="waiting", holder=holder)
            reported = holder
        try:
            await asyncio.wait_for(ended.wait(), _POLL_SECONDS)
            return False
        except TimeoutError:
            request = messages.PollReservationRequest(token=reservation.token)
            reservation = (await session.stub.PollReservation(request)).reservation
    return not ended.is_set()


if __name__ == "__main__":
    main()
