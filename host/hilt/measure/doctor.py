"""`hilt boards check`: from SSH to the canary, a step at a time; each failure with its cause and its mend."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hilt.bitstreams import BitstreamError
from hilt.link.agent import AgentConnection, archive_for, command, deploy
from hilt.link.deadline import Deadline
from hilt.link.errors import BoardBusyError, LinkError, UploadError
from hilt.link.host_keys import HostKeys
from hilt.link.quarantine import quarantined
from hilt.link.session import SshSession
from hilt.measure.board_description import BoardTarget
from hilt.measure.connection import program_board, who
from hilt.measure.recovery import FAULTS

STEP_SECONDS = 60.0
INSPECT_SECONDS = 180.0
"""Importing pynq takes tens of seconds on a Zynq-7000, more while it boots."""
PROGRAM_SECONDS = 180.0
_OLDEST_PYTHON = (3, 8)
_LEAST_MEMORY = 64 << 20
_LEAST_CMA = 48 << 20
"""The bytes for the tensors of the largest layers of ResNet-18, with the other needs of a trial."""
_LEAST_DISK = 256 << 20
_HOTTEST = 85.0


@dataclass(frozen=True)
class Finding:
    """One thing that was examined. `mend` names the remedy if it is not well."""

    what: str
    well: bool
    found: str
    mend: str = ""


class _StopError(Exception):
    """The end of the checks: the later ones cannot be made."""


def check_board(target: BoardTarget) -> Iterator[Finding]:
    """Yield findings as they are made.

    The last one is the first that makes the rest impossible, or the canary.
    """
    name = target.description.name
    apart = quarantined().get(name)
    if apart is not None:
        yield Finding("quarantine", False, apart.reason, f"once all else here is well: hilt boards release {name}")
    try:
        endpoint = target.endpoint()
        session = SshSession.connect(endpoint, HostKeys(), Deadline(STEP_SECONDS))
    except FAULTS as error:
        yield Finding("SSH", False, str(error), "the line above names the remedy")
        return
    with session:
        yield Finding("SSH", True, f"{endpoint.user}@{endpoint.host} port {endpoint.port}, its key is known")
        try:
            for step in (_python, _root, _agent):
                yield from step(session)
        except _StopError:
            return
        except LinkError as error:
            yield Finding("link", False, str(error), "is the network steady? Check again")
            return
    yield from _device(target)


def _python(session: SshSession) -> Iterator[Finding]:
    python = session.endpoint.python
    asked = session.execute([python, "-V"], Deadline(STEP_SECONDS))
    words = (asked.output or asked.errors).decode("utf-8", "replace").strip()
    version = re.match(r"Python (\d+)\.(\d+)", words)
    if asked.status != 0 or version is None:
        mend = f"set `python` of the board to the interpreter that imports pynq; {python} says: {asked.last_line}"
        yield Finding("Python", False, f"{python} does not run", mend)
        raise _StopError
    well = tuple(int(number) for number in version.groups()) >= _OLDEST_PYTHON
    yield Finding("Python", well, f"{words} ({python})", "3.8 or newer is needed: PYNQ image 2.7 or newer")
    if not well:
        raise _StopError


def _root(session: SshSession) -> Iterator[Finding]:
    """Check for root, who alone may use registers (/dev/mem) and contiguous memory on every PYNQ image."""
    if not session.endpoint.sudo:
        return
    asked = session.execute(["sudo", "-n", "true"], Deadline(STEP_SECONDS))
    mend = f"allow it without a password: visudo, `{session.endpoint.user} ALL=(ALL) NOPASSWD: ALL`"
    yield Finding("sudo", asked.status == 0, "without a password" if asked.status == 0 else asked.last_line, mend)
    if asked.status != 0:
        raise _StopError


def _agent(session: SshSession) -> Iterator[Finding]:
    archive = archive_for(session, Deadline(STEP_SECONDS))
    try:
        uploaded = deploy(session, archive, Deadline(STEP_SECONDS))
    except UploadError as error:
        mend = "is the card full, or read-only since it failed? On the board: df -h; dmesg"
        yield Finding("agent", False, str(error), mend)
        raise _StopError from None
    how = "sent now" if uploaded else "there already"
    asked = session.execute([*command(session.endpoint, archive.remote_path), "inspect"], Deadline(INSPECT_SECONDS))
    try:
        facts = json.loads(asked.output)
    except ValueError:
        yield Finding("agent", False, asked.last_line, "the line is Python's own; `hilt boards logs` may say more")
        raise _StopError from None
    yield Finding("agent", True, f"{archive.sha256[:12]}, {how}")
    yield from _facts(facts)
    if facts["device"] is None:
        raise _StopError


def _facts(facts: dict[str, Any]) -> Iterator[Finding]:
    """Yield a finding for each fact of the agent's `inspect` (hilt_board.inspection)."""
    virtual = facts["virtual"]
    yield Finding("image", True, ", ".join(str(facts[fact]) for fact in ("image", "machine") if facts[fact]))
    mend = "registers and contiguous memory need root: set sudo = true for the board, or log in as root"
    yield Finding("root", facts["root"] or virtual, "yes" if facts["root"] else "no", mend)
    mend = "the image has no FPGA manager: is it a PYNQ image for this board?"
    yield Finding("FPGA manager", virtual or facts["fpga_manager"] is not None, facts["fpga_manager"] or "none", mend)
    found = f"pynq {facts['pynq']}, numpy {facts['numpy']}, device {facts['device']}"
    mend = (
        "set `python` of the board to the interpreter of its pynq environment "
        f"(/usr/local/share/pynq-venv/bin/python3); XILINX_XRT is {facts['xrt'] or 'not set'}"
    )
    well = facts["import_error"] is None
    yield Finding("pynq", well, found if well else facts["import_error"], mend)
    limits: list[tuple[str, str, int, str]] = [
        ("memory", "memory_free", _LEAST_MEMORY, "end the other programs there (Jupyter: systemctl stop jupyter)"),
        ("contiguous memory", "cma_free", _LEAST_CMA, "raise cma= in the kernel's command line, or reboot"),
        ("disk", "disk_free", _LEAST_DISK, "remove files; the agent keeps tensors of up to 2 GiB in ~/.hilt"),
    ]
    for name, key, least, mend in limits:
        free = facts[key]
        if free is None or (virtual and key == "cma_free"):
            continue  # not every kernel says; a virtual board's is its model's own
        yield Finding(name, free >= least, f"{free / 2**20:,.0f} MiB free", f"{least >> 20} MiB are needed: {mend}")
    if facts["temperature"] is not None:
        degrees = facts["temperature"]
        yield Finding("temperature", degrees < _HOTTEST, f"{degrees:.0f} °C", "give it air, or a heat sink")


def _device(target: BoardTarget) -> Iterator[Finding]:
    manifest, name = target.manifest, target.description.name
    try:
        bitstream = target.bitstream()
    except (BitstreamError, OSError) as error:
        yield Finding("bitstream", False, str(error), "`hilt bitstream list` and `hilt bitstream fetch` (or add)")
        return
    try:
        deadline = Deadline(PROGRAM_SECONDS)
        with AgentConnection.open(target.endpoint(), f"{who()}, hilt boards check"[:200], deadline) as agent:
            yield Finding("lease", True, f"free; up {agent.client.status(deadline).uptime_seconds:.0f} s")
            programmed = program_board(agent.client, target, bitstream, deadline)
            digest = hashlib.sha256(bitstream).hexdigest()
            hardware = f"{manifest.parameters}, ISA {manifest.isa}"
            digests = f"{target.description.bitstream[:12]} (file sha256 {digest[:12]})"
            found = f"{hardware}, {digests}, loaded in {programmed.seconds:.1f} s"
            yield Finding("bitstream", True, found)
            yield Finding("clock", True, f"{programmed.clock_hz / 1e6:g} MHz")
            reset = agent.client.reset("reload", deadline)
            mend = f"hilt boards power cycle {name}; if that does not help, see `hilt boards logs {name}`"
            yield Finding("canary", reset.canary, "well" if reset.canary else "failed after a reload", mend)
    except BoardBusyError as error:
        yield Finding("lease", False, str(error), "wait for that run, or stop it")
    except LinkError as error:
        yield Finding("device", False, str(error), f"`hilt boards logs {name}` may say more")
