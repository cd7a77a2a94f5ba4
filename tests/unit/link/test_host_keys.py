"""known_hosts: an accepted key is found again, by host and port, and nothing else is."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.link.errors import UnknownHostKeyError
from hilt.link.host_keys import HostKeys, fingerprint, host_pattern

# Made for this test by ssh-keygen, whose -lf printed the fingerprint.
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPQKc1lBweQgZK8q/7KoZ43szrFqX5weK4fAxkD23UV/"
FINGERPRINT = "SHA256:7EhE9sd3QRIQaa3+GB4eTu+unT+XyVMsxUNRnXkgIvA"


def unknown(host: str, port: int, key: str = KEY) -> UnknownHostKeyError:
    return UnknownHostKeyError(host, port, key, fingerprint(key))


def test_fingerprint_is_that_of_openssh() -> None:
    assert fingerprint(KEY) == FINGERPRINT


def test_accepted_keys_are_found_by_host_and_port(tmp_path: Path) -> None:
    keys = HostKeys(tmp_path / "known_hosts")
    assert keys.of("board", 22) == []
    keys.accept(unknown("board", 22))
    keys.accept(unknown("board", 2222))
    keys.accept(unknown("board", 22))
    assert keys.of("board", 22) == [KEY]
    assert keys.of("board", 2222) == [KEY]
    assert keys.of("board", 23) == keys.of("boar", 22) == []
    assert keys.path.read_text() == f"board {KEY}\n[board]:2222 {KEY}\n"
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600


def test_a_last_line_without_an_end_stays_a_line(tmp_path: Path) -> None:
    """A last line without an end stays a line.

    An editor may leave such a line after somebody removed another one, as hilt's advice asks.
    """
    keys = HostKeys(tmp_path / "known_hosts")
    keys.path.write_bytes(f"board {KEY}".encode() + b"\n# caf\xe9")
    keys.accept(unknown("other", 22))
    assert keys.of("board", 22) == keys.of("other", 22) == [KEY]


def test_files_of_openssh_are_read(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    own, others = f"other,[board]:2222 {KEY} desk", [f"@revoked board {KEY}", f"|1|salt|hash {KEY}"]
    lines = ["# a comment", "", own, *others, "cut off"]
    path.write_text("\n".join(lines))
    assert HostKeys(path).of("board", 2222) == [KEY]
    assert HostKeys(path).of("board", 22) == []


names = st.from_regex(r"\A[a-z][a-z0-9.-]{0,20}\Z")
ports = st.integers(1, 65535)
blobs = st.binary(min_size=1, max_size=40).map(lambda data: "ssh-ed25519 " + base64.b64encode(data).decode())


@given(accepted=st.dictionaries(st.tuples(names, ports), blobs, max_size=6), asked=st.tuples(names, ports))
@pytest.mark.slow
def test_no_host_is_given_the_key_of_another(
    tmp_path_factory: pytest.TempPathFactory, accepted: dict[tuple[str, int], str], asked: tuple[str, int]
) -> None:
    keys = HostKeys(tmp_path_factory.mktemp("keys") / "known_hosts")
    for (host, port), key in accepted.items():
        keys.accept(unknown(host, port, key))
    for (host, port), key in accepted.items():
        assert keys.of(host, port) == [key]
    if asked not in accepted:
        assert keys.of(*asked) == []


def test_pattern() -> None:
    assert host_pattern("10.0.0.2", 22) == "10.0.0.2"
    assert host_pattern("10.0.0.2", 2222) == "[10.0.0.2]:2222"
