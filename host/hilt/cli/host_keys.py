"""First contact with a real board: a person compares the fingerprint, or nobody connects."""

from __future__ import annotations

import sys

import typer

from hilt.cli.prose import say_text

CONNECT_SECONDS = 20.0


def confirm_host_key(boards: str) -> None:
    """Confirm the host keys of one board or of several with commas between; see `_confirm`."""
    from hilt.measure import board_names_of

    for board in board_names_of(boards):
        _confirm(board)


def _confirm(board: str) -> None:
    """Ask on the terminal whether a board's unknown key is its own. A place is held while its board is asked.

    Raises UnknownHostKeyError if nobody can be asked or the answer is no, and the link's errors on the way to
    the key.
    """
    from hilt.measure import DATASET_PREFIX
    from hilt.virtual.names import PREFIX

    if board.startswith((PREFIX, DATASET_PREFIX)):
        return  # its key is in its own directory on this machine; records have none
    from hilt.link.deadline import Deadline
    from hilt.link.errors import UnknownHostKeyError
    from hilt.link.host_keys import HostKeys
    from hilt.link.session import SshSession
    from hilt.measure.board_description import real_target

    target = real_target(board)
    known = HostKeys()
    if known.of(target.address.host, target.address.port):
        return
    try:
        target.prepare(lambda text: say_text(text, err=True))
        SshSession.connect(target.endpoint(), known, Deadline(CONNECT_SECONDS)).close()
    except UnknownHostKeyError as unknown:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        say_text(f"{board} ({target.address.host}) is new here. Its key: {unknown.key.split()[0]}", err=True)
        say_text(f"  {unknown.fingerprint}", err=True)
        say_text("Compare it on the board: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub", err=True)
        if not typer.confirm("Is it the same?", err=True):
            raise
        known.accept(unknown)
    finally:
        target.release()
