"""Errors between host and board, as types; each message names the fault and the remedy.

`permanent` errors stay until a person repairs the cause: a retry gains nothing.
"""

from __future__ import annotations


class LinkError(Exception):
    """Base of all errors of the link."""

    permanent = False


class BoardFileError(LinkError):
    """HILT_HOME/boards.toml cannot be read, or holds an impossible value."""

    permanent = True


class UnknownBoardError(LinkError):
    """No board of that name; the message lists those known."""

    permanent = True


class UnknownHostKeyError(LinkError):
    """First contact: nobody has said yet that this key is the board's. `HostKeys.accept` takes this error."""

    permanent = True

    def __init__(self, host: str, port: int, key: str, fingerprint: str) -> None:
        self.host, self.port = host, port
        self.key = key
        """The key, in the format of OpenSSH: "ssh-ed25519 BASE64"."""
        self.fingerprint = fingerprint
        super().__init__(
            f"host key of {host} port {port} is not known: {key.split()[0]} {fingerprint}; "
            f"compare it with the board's own (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub) and accept it: "
            f"run the command in a terminal, where hilt asks"
        )


class HostKeyChangedError(LinkError):
    """The board shows another key than the one accepted: another machine, a new image, or someone in between."""

    permanent = True

    def __init__(self, host: str, port: int, expected: str, received: str, where: str) -> None:
        self.host, self.port = host, port
        self.expected, self.received = expected, received
        """Fingerprints."""
        super().__init__(
            f"host key of {host} port {port} has CHANGED: it was {expected}, now it is {received}; nothing was sent. "
            f"If the board was installed anew, remove its line from {where} and connect again"
        )


class KnownHostsError(LinkError):
    """The line of the board in HILT_HOME/known_hosts holds no key."""

    permanent = True


class AuthenticationError(LinkError):
    """The board takes none of our keys."""

    permanent = True


class UnreachableError(LinkError):
    """Nothing answers as an SSH server there (now)."""


class LinkLostError(LinkError):
    """The connection ended, or was silent for too long."""


class LinkTimeoutError(LinkError):
    """An operation did not finish within its deadline."""


class UploadError(LinkError):
    """The bytes on the board differ from those sent, or could not be written there."""


class AgentError(LinkError):
    """The agent cannot be started or does not speak as it should; the message holds the end of its log."""


class ProtocolViolationError(AgentError):
    """The agent sent bytes, messages or replies that the protocol does not allow. A few of them give the board up."""


class BoardBusyError(LinkError):
    """Another client has the lease on the board."""


class RefusedError(LinkError):
    """The agent did not carry out a request. `code` is one of hilt_board.protocol's failures."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code


class OutOfMemoryError(RefusedError):
    """The board has too little contiguous memory for a trial, also in a new worker.

    A fact of the board: another process may hold the memory, so it says nothing about the configuration.
    """


class BitstreamRefusedError(RefusedError):
    """The bitstream is not for this board, damaged, or different from its manifest."""

    permanent = True


class QuarantinedError(LinkError):
    """The board failed its canary, or did not come back, after all that could be tried; somebody must see to it."""

    permanent = True


class PowerError(LinkError):
    """The board's power cannot be switched: not configured, labgrid is missing, or its driver failed."""
