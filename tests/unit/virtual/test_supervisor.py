"""The power switch of an emulated board: a relay, which does not wait for the boot."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hilt.virtual import supervisor as supervisor_module
from hilt.virtual.directory import BoardDirectory
from hilt.virtual.supervisor import Supervisor


class BootingSystem:
    """A board that is on, and whose SSH server does not answer before `up` is set."""

    made = 0

    def __init__(self, name: str, boot_id: str, computer: str) -> None:
        BootingSystem.made += 1
        self.boot_id = f"boot {BootingSystem.made}"
        self.ssh: dict[str, int] = {}
        self.reboots = False
        self.ended = asyncio.Event()
        self.up = asyncio.Event()

    async def accepting(self, seconds: float) -> None:
        await self.up.wait()

    async def off(self) -> None:
        self.ended.set()


async def ask(supervisor: Supervisor, command: str) -> dict[str, Any]:
    return await supervisor._answer(json.dumps({"command": command}).encode())


def test_the_switch_of_an_emulated_board_does_not_wait_for_its_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.setattr(supervisor_module, "PoweredSystem", BootingSystem)
    monkeypatch.setattr(supervisor_module, "end_descendants", lambda: None)

    async def work() -> None:
        supervisor = Supervisor(BoardDirectory("pynq_linux"), 60.0, "armhf")
        first = await asyncio.wait_for(ask(supervisor, "switch_on"), 60)
        assert first["power"] == "on" and first["port"] is None
        again = await asyncio.wait_for(ask(supervisor, "switch_on"), 60)
        assert again["boot_id"] == first["boot_id"], "a board that is on stays on"
        cycled = await asyncio.wait_for(ask(supervisor, "cycle"), 60)
        assert cycled["power"] == "on" and cycled["boot_id"] != first["boot_id"]
        waiting = asyncio.create_task(ask(supervisor, "on"))
        await asyncio.sleep(0)
        assert not waiting.done()
        system = supervisor._system
        assert isinstance(system, BootingSystem)
        system.up.set()
        assert (await asyncio.wait_for(waiting, 60))["boot_id"] == cycled["boot_id"]
        assert (await asyncio.wait_for(ask(supervisor, "off"), 60))["power"] == "off"

    asyncio.run(work())
