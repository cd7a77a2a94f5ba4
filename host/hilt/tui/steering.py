"""Commands to engines, and starting them: for a run, or a campaign and its layers. For threads.

The modules that start engines are loaded when one is started: they bring the tuners with them.
"""

from __future__ import annotations

from pathlib import Path

from hilt.engine.client import EngineClient, NoEngineError, SilentEngineError
from hilt.engine.events import EngineCommand, EngineProtocolError
from hilt.store import Store


def send(home: Path, uuid: str, command: EngineCommand) -> None:
    """Send a command to the engine of this run or campaign. Raises NoEngineError."""
    client = EngineClient.attach(home, uuid)
    client.send(command)
    client.leave()


def answers(home: Path, uuid: str) -> bool:
    """False if an engine holds this run or campaign and says nothing for seconds: its process may be stopped."""
    try:
        EngineClient.attach(home, uuid).close()
    except SilentEngineError:
        return False
    except (NoEngineError, EngineProtocolError):
        pass
    return True


def resume_run(store: Store, home: Path, uuid: str) -> None:
    """Start an engine for a run that has none: its campaign's, if it has one.

    Raises the errors of hilt.engine.launch.resume and hilt.campaign.launch.resume.
    """
    from hilt.campaign import launch as campaign_launch
    from hilt.engine import launch

    run = store.run(uuid)
    campaign = store.campaign(run.campaign) if run.campaign else None
    if campaign is not None:
        campaign_launch.resume(campaign.uuid, home)
    else:
        launch.resume(uuid, home)


def resume_campaign(home: Path, uuid: str) -> None:
    """Resume a paused campaign, or start an engine for one without.

    Raises the errors of hilt.campaign.launch.resume.
    """
    from hilt.campaign import launch as campaign_launch

    try:
        send(home, uuid, EngineCommand.RESUME)
    except NoEngineError:
        campaign_launch.resume(uuid, home)
