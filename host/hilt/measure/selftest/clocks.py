"""The canary at rising clocks, up to the one that the bitstream is built for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from hilt.link.agent import AgentConnection
from hilt.link.deadline import Deadline
from hilt.link.errors import RefusedError
from hilt.measure.board_description import BoardTarget
from hilt.measure.canary import make_canary
from hilt.measure.connection import program_board, who

SHARES = (0.5, 0.75, 1.0)
"""Shares of the bitstream's clock. It is never driven faster than it was built for."""
_SECONDS = 300.0


def check_clocks(target: BoardTarget) -> Iterator[tuple[str, bool, str]]:
    """Yield a name, whether all is well, and a line for people. Raises LinkError where the board cannot be opened."""
    manifest = target.manifest
    if target.virtual or manifest.fclk_hz:
        why = "a virtual board has one clock" if target.virtual else "the design makes its clock by a PLL of its own"
        yield "canary at rising clocks", True, f"well at {manifest.clock_hz / 1e6:g} MHz; {why}"
        return
    bitstream = target.bitstream()
    digest = hashlib.sha256(bitstream).hexdigest()
    canary = make_canary(target.description.accelerator, digest)
    deadline = Deadline(_SECONDS)
    results: list[str] = []
    well = True
    with AgentConnection.open(target.endpoint(), f"{who()}, hilt boards selftest"[:200], deadline) as agent:
        program_board(agent.client, target, bitstream, deadline)
        for share in SHARES:
            slower = replace(manifest, clock_hz=round(manifest.clock_hz * share))
            try:
                agent.client.program(digest, slower, deadline, canary.trial, canary.code)
                results.append(f"{slower.clock_hz / 1e6:g} MHz well")
            except RefusedError as error:
                well = well and (error.code == "bitstream_refused" and share < 1.0)
                results.append(f"{slower.clock_hz / 1e6:g} MHz: {error}")
    yield "canary at rising clocks", well, "; ".join(results)
