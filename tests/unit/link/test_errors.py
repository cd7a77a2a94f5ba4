"""Which errors of the link a retry may mend, and the words of those that make them themselves."""

from __future__ import annotations

from collections.abc import Iterator

from hilt.link import errors
from hilt.link.errors import HostKeyChangedError, LinkError, RefusedError, UnknownHostKeyError

PERMANENT = {
    "AuthenticationError",
    "BitstreamRefusedError",
    "BoardFileError",
    "HostKeyChangedError",
    "KnownHostsError",
    "QuarantinedError",
    "UnknownBoardError",
    "UnknownHostKeyError",
}


def kinds(base: type[LinkError]) -> Iterator[type[LinkError]]:
    yield base
    for kind in base.__subclasses__():
        yield from kinds(kind)


def test_what_a_person_must_repair_is_permanent_and_nothing_else() -> None:
    known = [kind for kind in kinds(LinkError) if kind.__module__ == errors.__name__]
    assert {kind.__name__ for kind in known if kind.permanent} == PERMANENT
    assert len(known) > 2 * len(PERMANENT)


def test_errors_of_host_keys_name_both_and_the_remedy() -> None:
    unknown = UnknownHostKeyError("desk", 22, "ssh-ed25519 AAAA", "SHA256:abc")
    assert (unknown.host, unknown.port, unknown.key, unknown.fingerprint) == (
        "desk",
        22,
        "ssh-ed25519 AAAA",
        "SHA256:abc",
    )
    assert str(unknown).startswith("host key of desk port 22 is not known: ssh-ed25519 SHA256:abc; compare it")
    changed = HostKeyChangedError("desk", 2222, "SHA256:old", "SHA256:new", "known_hosts:3")
    assert (changed.host, changed.port, changed.expected, changed.received) == (
        "desk",
        2222,
        "SHA256:old",
        "SHA256:new",
    )
    assert "has CHANGED: it was SHA256:old, now it is SHA256:new" in str(changed) and "known_hosts:3" in str(changed)
    refused = RefusedError("busy", "the board is programmed")
    assert refused.code == "busy" and str(refused) == "the board is programmed (busy)"
