"""The agent as one file: the host's deployment, and the change from one version to another."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hilt import paths
from hilt.link.agent import build_archive
from hilt_board.protocol import AgentFailure, AgentHello
from tests.e2e.agent.client import Agent, Client


@dataclass
class Archived:
    """An agent.pyz in a home that it shares with the agent in the folder."""

    path: Path
    folder: Agent
    environment: dict[str, str]

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(paths.board_python()), str(self.path), command],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )


@pytest.fixture
def archived(board_model: Path, tmp_path: Path) -> Iterator[Archived]:
    if not paths.board_python().exists():
        pytest.skip(f"no board environment at {paths.board_python()}: make setup")
    path = tmp_path / "agent.pyz"
    path.write_bytes(build_archive(virtual=True).data)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["HILT_VERILATED"] = str(board_model)
    with tempfile.TemporaryDirectory(prefix="hilt-") as home:
        folder = Agent(paths.board_python(), paths.board_package_directory().parent, Path(home), environment)
        try:
            yield Archived(path, folder, {**environment, "HILT_AGENT_HOME": home})
        finally:
            folder.stop()


def test_the_archive_is_an_agent(archived: Archived) -> None:
    started = archived.run("start")
    assert (started.returncode, started.stderr) == (0, "")
    client = archived.folder.connect()
    welcome = client.hello()
    assert welcome.agent == build_archive(virtual=True).sha256
    assert welcome.device == "virtual:pynq"
    client.close()


def test_an_idle_agent_of_another_version_is_replaced(archived: Archived) -> None:
    archived.folder.start()
    assert archived.run("start").returncode == 0
    client = archived.folder.connect()
    assert client.hello().agent == build_archive(virtual=True).sha256
    client.close()


def test_an_agent_of_another_version_that_is_in_use_stays(archived: Archived) -> None:
    archived.folder.start()
    client: Client = archived.folder.connect()
    client.hello("someone")
    refused = archived.run("start")
    assert refused.returncode == 3
    assert refused.stderr == "hilt agent: another version of the agent runs and is in use by someone\n"
    assert client.status().holder == "someone"
    client.close()


def test_a_board_without_its_device_says_why(archived: Archived, tmp_path: Path) -> None:
    archived.environment["HILT_VERILATED"] = str(tmp_path / "nowhere.json")
    assert archived.run("start").returncode == 0
    client = archived.folder.connect()
    failure = client.ask(AgentHello("someone"), AgentFailure)
    assert failure.code == "internal"
    assert "is no board model" in failure.message
    client.close()
