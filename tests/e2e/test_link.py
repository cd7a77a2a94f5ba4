"""The link over real SSH on loopback: trust, deployment and refusals."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from hilt import paths
from hilt.link import agent
from hilt.link import agent as agent_module
from hilt.link.agent import PACKAGES, VIRTUAL_PACKAGE, AgentConnection, build_archive, deploy
from hilt.link.board_registry import Endpoint
from hilt.link.deadline import Deadline
from hilt.link.errors import (
    AgentError,
    AuthenticationError,
    BitstreamRefusedError,
    BoardBusyError,
    HostKeyChangedError,
    LinkLostError,
    LinkTimeoutError,
    RefusedError,
    UnknownHostKeyError,
    UnreachableError,
    UploadError,
)
from hilt.link.host_keys import HostKeys, fingerprint
from hilt.link.session import SshSession
from hilt.measure.board_description import VirtualTarget
from hilt.virtual.directory import BoardDirectory
from hilt.virtual.supervisor_control import SupervisorControl


@pytest.fixture
def target(shared_home: Path) -> Iterator[VirtualTarget]:
    board = VirtualTarget("virtual:pynq", form="golden")
    yield board
    board.release()


@pytest.fixture
def endpoint(target: VirtualTarget) -> Endpoint:
    return target.endpoint()


@pytest.fixture
def fresh(hilt_home: Path) -> Iterator[Endpoint]:
    """A board that nobody has used."""
    board = VirtualTarget("virtual:pynq", form="golden")
    yield board.endpoint()
    board.release()


def connect(endpoint: Endpoint) -> SshSession:
    return SshSession.connect(endpoint, HostKeys(), Deadline(30))


def board_home() -> Path:
    return BoardDirectory("pynq").home


def write_key(path: Path, encryption: KeySerializationEncryption | None = None) -> str:
    key = Ed25519PrivateKey.generate()
    data = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, encryption or NoEncryption())
    path.write_bytes(data)
    path.chmod(0o600)
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


# --- who is trusted ---


def test_an_unknown_host_key_is_refused_with_its_fingerprint_and_can_be_accepted(fresh: Endpoint) -> None:
    unknown = replace(fresh, host_key=None)
    with pytest.raises(UnknownHostKeyError) as refused:
        connect(unknown)
    own_key = BoardDirectory("pynq").host_key.with_suffix(".pub")
    if shutil.which("ssh-keygen"):
        shown = subprocess.run(["ssh-keygen", "-lf", str(own_key)], capture_output=True, text=True, check=True).stdout
        assert refused.value.fingerprint == shown.split()[1]
    assert refused.value.fingerprint == fingerprint(own_key.read_text())
    assert refused.value.fingerprint in str(refused.value)
    assert not board_home().joinpath(agent_module.DIRECTORY).exists()

    HostKeys().accept(refused.value)
    with connect(unknown) as session:
        assert session.execute(["true"], Deadline(30)).status == 0


def test_a_changed_host_key_is_refused_with_both_fingerprints(endpoint: Endpoint, tmp_path: Path) -> None:
    unknown = replace(endpoint, host_key=None)
    other = write_key(tmp_path / "other")
    HostKeys().accept(UnknownHostKeyError(unknown.host, unknown.port, other, fingerprint(other)))
    before = HostKeys().path.read_text()
    with pytest.raises(HostKeyChangedError, match="CHANGED.*remove its line from .*known_hosts") as refused:
        connect(unknown)
    now = BoardDirectory("pynq").host_public_key()
    assert (refused.value.expected, refused.value.received) == (fingerprint(other), fingerprint(now))
    assert HostKeys().path.read_text() == before


def test_a_virtual_board_must_show_the_key_of_its_directory(endpoint: Endpoint, tmp_path: Path) -> None:
    with pytest.raises(HostKeyChangedError):
        connect(replace(endpoint, host_key=write_key(tmp_path / "other")))


def test_a_key_that_the_board_does_not_know_is_refused(endpoint: Endpoint, tmp_path: Path) -> None:
    write_key(tmp_path / "stranger")
    with pytest.raises(AuthenticationError, match="refuses key .*stranger.*authorized_keys"):
        connect(replace(endpoint, key_file=tmp_path / "stranger"))


def test_another_user_is_refused(endpoint: Endpoint) -> None:
    with pytest.raises(AuthenticationError):
        connect(replace(endpoint, user="root"))


def test_unusable_keys_name_the_next_step(endpoint: Endpoint, tmp_path: Path) -> None:
    write_key(tmp_path / "locked", BestAvailableEncryption(b"secret"))
    with pytest.raises(AuthenticationError, match="passphrase.*ssh-add"):
        connect(replace(endpoint, key_file=tmp_path / "locked"))
    with pytest.raises(AuthenticationError, match="there is no key .*absent"):
        connect(replace(endpoint, key_file=tmp_path / "absent"))


def test_nobody_there(target: VirtualTarget, endpoint: Endpoint) -> None:
    supervisor = SupervisorControl.find(BoardDirectory("pynq"))
    assert supervisor is not None
    with supervisor:
        supervisor.power_off()
    with pytest.raises(UnreachableError, match="virtual:pynq is not reachable at 127.0.0.1 port"):
        connect(endpoint)


# --- sessions ---


def test_commands_are_words_that_no_shell_reads_further(endpoint: Endpoint) -> None:
    with connect(endpoint) as session:
        for word in ("a b", "a;b", "$HOME", "`id`", "a\nb", "'", "", "--x=1"):
            with pytest.raises(ValueError, match="not a plain word"):
                session.execute(["echo", word], Deadline(30))


def test_a_command_has_a_deadline(endpoint: Endpoint) -> None:
    with connect(endpoint) as session:
        with pytest.raises(LinkTimeoutError, match="sleep on virtual:pynq took too long"):
            session.execute(["sleep", "1000"], Deadline(0.2))
        assert session.execute(["echo", "alive"], Deadline(30)).output == b"alive\n"


def test_a_closed_session_says_so(endpoint: Endpoint) -> None:
    session = connect(endpoint)
    session.close()
    with pytest.raises(LinkLostError):
        session.execute(["true"], Deadline(30))


def test_uploads_arrive_whole_under_their_name_only(endpoint: Endpoint) -> None:
    data = os.urandom(300_000)
    with connect(endpoint) as session:
        session.put(data, "folder/file", Deadline(60))
        assert session.sha256("folder/file", Deadline(30)) == hashlib.sha256(data).hexdigest()
        assert [path.name for path in (board_home() / "folder").iterdir()] == ["file"]
        assert session.sha256("folder/absent", Deadline(30)) is None
        (board_home() / "folder").chmod(0o500)
        if os.geteuid() != 0:  # root may write anywhere
            with pytest.raises(UploadError, match="cannot be written"):
                session.put(data, "folder/other", Deadline(60))
        (board_home() / "folder").chmod(0o700)
        (board_home() / "plain").write_bytes(b"")
        with pytest.raises(UploadError, match="cannot be written"):
            session.put(data, "plain/file", Deadline(60))


# --- the agent ---


def test_the_agent_travels_once(fresh: Endpoint) -> None:
    with AgentConnection.open(fresh, "first", Deadline(60)) as connection:
        assert connection.uploaded
        assert connection.welcome.agent == build_archive(virtual=True).sha256
        boot = connection.welcome.boot_id
    with AgentConnection.open(fresh, "second", Deadline(60)) as connection:
        assert not connection.uploaded
        assert connection.welcome.boot_id == boot


def test_a_damaged_agent_is_sent_again(fresh: Endpoint) -> None:
    archive = build_archive(virtual=True)
    with connect(fresh) as session:
        assert deploy(session, archive, Deadline(60))
        deployed = board_home() / archive.remote_path
        deployed.write_bytes(archive.data[:-1])
        assert deploy(session, archive, Deadline(60))
        assert deployed.read_bytes() == archive.data
        assert not deploy(session, archive, Deadline(60))


def test_the_archive_depends_on_its_contents_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "hilt_board"
    for package in map(paths.board_package_directory().with_name, (*PACKAGES, VIRTUAL_PACKAGE)):
        shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in copy.rglob("*"):
        os.utime(file, (1e9, 1e9))
        file.chmod(0o755)
    (copy / "notes.txt").write_text("not code")
    monkeypatch.setattr(paths, "board_package_directory", lambda: copy)
    again = agent._archive.__wrapped__
    assert again(True, platform.machine()) == build_archive(virtual=True)
    (copy / "more.py").write_text("")
    assert again(True, platform.machine()).sha256 != build_archive(virtual=True).sha256


def test_an_agent_that_cannot_start_says_why(fresh: Endpoint) -> None:
    (board_home() / ".hilt").mkdir(mode=0o755)
    (board_home() / ".hilt").chmod(0o755)
    with pytest.raises(AgentError, match=r"does not start on virtual:pynq: .*chmod 700"):
        AgentConnection.open(fresh, "test", Deadline(60))


def test_one_client_at_a_time_and_the_other_is_told_who(endpoint: Endpoint) -> None:
    with AgentConnection.open(endpoint, "ann", Deadline(60)), pytest.raises(BoardBusyError, match="in use by ann"):
        AgentConnection.open(endpoint, "bob", Deadline(60))
    with AgentConnection.open(endpoint, "bob", Deadline(60)):
        pass


def test_a_corrupt_blob_is_refused_and_not_kept(endpoint: Endpoint) -> None:
    data = os.urandom(2_500_000)
    digest = hashlib.sha256(data).hexdigest()
    damaged = data[:1_200_000] + bytes([data[1_200_000] ^ 1]) + data[1_200_001:]
    with AgentConnection.open(endpoint, "test", Deadline(60)) as connection:
        client = connection.client
        with pytest.raises(RefusedError) as refused:
            client.upload_blob(digest, damaged, Deadline(60))
        assert refused.value.code == "blob_corrupt"
        assert client.missing_blobs([digest], Deadline(30)) == {digest}
        assert client.put(data, Deadline(60)) == digest
        assert client.missing_blobs([digest], Deadline(30)) == set()


def test_a_bitstream_that_differs_from_its_manifest_is_refused(target: VirtualTarget, endpoint: Endpoint) -> None:
    with AgentConnection.open(endpoint, "test", Deadline(60)) as connection:
        client = connection.client
        whole = target.bitstream()
        bitstream = client.put(whole, Deadline(60))
        other = VirtualTarget("virtual:pynq_batched", form="golden").manifest
        claim = replace(target.manifest, identity=other.identity, parameters=other.parameters)
        with pytest.raises(BitstreamRefusedError, match="identity_mismatch"):
            client.program(bitstream, claim, Deadline(60))
        wrong_part = replace(target.manifest, part="xczu7ev-ffvc1156-2-e")
        with pytest.raises(BitstreamRefusedError, match="7z020clg400"):
            client.program(bitstream, wrong_part, Deadline(60))
        cut = client.put(whole[:-1000], Deadline(60))
        with pytest.raises(BitstreamRefusedError, match="truncated"):
            client.program(cut, target.manifest, Deadline(60))
        assert client.program(bitstream, target.manifest, Deadline(60)).bitstream == bitstream


def test_a_killed_daemon_is_noticed_and_started_again(endpoint: Endpoint) -> None:
    with AgentConnection.open(endpoint, "test", Deadline(60)) as connection:
        connection.client.shutdown(Deadline(60))
        with pytest.raises(LinkLostError):
            connection.client.status(Deadline(30))
    with AgentConnection.open(endpoint, "test", Deadline(60)) as connection:
        assert connection.client.status(Deadline(30)).trials == 0
