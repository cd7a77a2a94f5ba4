"""The canary through the agent, on golden and RTL: it passes, but not if the board computes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.measure.canary import make_canary
from hilt_board.protocol import AgentFailure, Reset, ResetDone
from tests.e2e.agent.conftest import board_model, connected, make_hardware, running_agent

__all__ = ["board_model"]


@pytest.mark.parametrize(("form", "parameters"), [("golden", "pynq"), ("golden", "zcu102"), ("rtl", "pynq")])
def test_the_canary_is_well_and_a_wrong_sum_is_seen(form: str, parameters: str, board_model: Path) -> None:
    hardware = make_hardware(form, parameters)  # type: ignore[arg-type]
    canary = make_canary(hardware.accelerator, hardware.bitstream)
    with running_agent(board_model) as agent, connected(agent) as client:
        client.put({hardware.bitstream: hardware.bitfile, **canary.blobs})
        client.program(hardware.program(canary=canary.trial, code=canary.code))
        for step in ("soft", "reload", "worker"):
            assert client.ask(Reset(step), ResetDone).canary is True
        # One instruction less (the ALU's becomes an addition of 0) is a board that computes wrong.
        code = bytearray(canary.code)
        size = canary.trial.instruction_bytes
        code[5 * size : 6 * size] = code[4 * size : 5 * size]
        code[5 * size] &= ~(1 << 3) & 0xFF  # it waits for nothing
        code[5 * size] |= 1 << 6  # and lets the store go on
        refused = client.ask(hardware.program(canary=canary.trial, code=bytes(code)), AgentFailure)
        assert refused.code == "board_broken" and "wrong_answer" in refused.message
