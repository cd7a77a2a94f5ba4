"""The page of a selftest: to attach to a report of trouble, with nothing in it that is secret."""

from __future__ import annotations

import getpass
import re
import socket
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from hilt.link.board_registry import Endpoint
from hilt.measure.board_description import BoardTarget
from hilt.measure.selftest.run import Check
from hilt.plain_text import plain

_HIDDEN = "(hidden)"
_SHORTEST_SECRET = 2
_EVERYBODY = "root"
"""The user of every machine: its name tells nothing."""


def page_text(target: BoardTarget, checks: Sequence[Check]) -> str:
    """Return the page as Markdown; addresses, users, key files and folders of board and host are hidden in it."""
    description = target.description
    accelerator = description.accelerator
    failed = [check.name for check in checks if not check.well]
    not_well = f"; not: {', '.join(failed)}" if failed else ""
    lines = [
        f"# hilt boards selftest: {target.manifest.board}",
        "",
        f"- {time.strftime('%Y-%m-%d %H:%M %Z')}, hilt {metadata.version('hilt')}",
        f"- part {target.manifest.part}, parameters {accelerator.parameters.name}, ISA {accelerator.isa}, "
        f"bus {accelerator.bus}, {description.clock_hz / 1e6:g} MHz, hazards {accelerator.hazards}",
        f"- bitstream {description.bitstream[:12]}",
        f"- {len(checks) - len(failed)} of {len(checks)} checks are well{not_well}",
        "",
        "| check | | figures |",
        "|---|---|---|",
    ]
    for check in checks:
        text = " ".join(plain(check.text).replace("|", "/").split())
        lines.append(f"| {check.name} | {'well' if check.well else 'NOT WELL'} | {text} |")
    return _without_secrets("\n".join(lines) + "\n", _endpoint(target))


def _endpoint(target: BoardTarget) -> Endpoint | None:
    """Return how a real board is reached. A virtual one is on this machine, and asking would switch it on."""
    return None if target.virtual else target.endpoint()


def _without_secrets(text: str, endpoint: Endpoint | None) -> str:
    secrets = {str(Path.home()), socket.gethostname(), _user()}
    if endpoint is not None:
        secrets |= {endpoint.name, endpoint.host, endpoint.user}
        secrets |= {str(endpoint.key_file), endpoint.key_file.name} if endpoint.key_file else set()
    # The longest first: a user's name is part of the name of the user's folder.
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET and secret != _EVERYBODY:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", _HIDDEN, text)
    return text


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name
        return ""
