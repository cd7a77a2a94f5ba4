"""The link against OpenSSH's own server: key authentication, host keys, the agent deployed and spoken with.

The server runs on 127.0.0.1 for this test alone, without privileges, or, where the test is root's, in a mount namespace
of its own that has the user which it wants to separate itself as. Taken from the machine, else from its package
repository into a temporary directory; nothing is installed.
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hilt import paths
from hilt.link.agent import AgentConnection, build_archive
from hilt.link.board_registry import Endpoint
from hilt.link.deadline import Deadline
from hilt.link.errors import AuthenticationError, HostKeyChangedError, UnknownHostKeyError
from hilt.link.host_keys import HostKeys, fingerprint
from hilt.link.session import SshSession
from hilt.virtual.board_model import board_model
from tests.e2e.test_link import write_key

PACKAGES = ("openssh-server", "openssh-sftp-server", "libwrap0")
_SECONDS = 60


@dataclass(frozen=True)
class OpenSSH:
    endpoint: Endpoint
    log: Path


@dataclass(frozen=True)
class Program:
    """The package's programs: the server, its SFTP server, and the folder of its libraries."""

    sshd: Path
    sftp: Path
    libraries: Path | None


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    found = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    sftp = [Path(each) for each in ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server")]
    if found:
        there = [each for each in sftp if each.exists()]
        return Program(Path(found), there[0] if there else Path("internal-sftp"), None)
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        pytest.skip("no OpenSSH server on this machine, and no apt-get and dpkg to get one")
    directory = tmp_path_factory.mktemp("openssh")
    try:
        got = subprocess.run(
            ["apt-get", "download", *PACKAGES], cwd=directory, capture_output=True, text=True, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        pytest.skip("no OpenSSH server on this machine; the package repository does not answer")
    if got.returncode != 0:
        pytest.skip(f"no OpenSSH server on this machine; apt-get download: {got.stderr.strip().splitlines()[-1]}")
    for package in directory.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, directory / "root"], check=True)
    root = directory / "root"
    libraries = next(root.rglob("libwrap.so.0")).parent
    return Program(root / "usr/sbin/sshd", root / "usr/lib/openssh/sftp-server", libraries)


@pytest.fixture
def server(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenSSH]:
    monkeypatch.setenv("HILT_HOME", str(tmp_path / "hilt-home"))
    (tmp_path / "hilt-home").mkdir()
    tmp_path.chmod(0o755)
    write_key(tmp_path / "host_key")
    (tmp_path / "authorized_keys").write_text(write_key(tmp_path / "client_key") + "\n")
    port = _free_port()
    log = tmp_path / "sshd.log"
    settings = {
        "ListenAddress": "127.0.0.1",
        "Port": port,
        "HostKey": tmp_path / "host_key",
        "AuthorizedKeysFile": tmp_path / "authorized_keys",
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        "Subsystem": f"sftp {program.sftp}",
        "SetEnv": f"HILT_AGENT_HOME={tmp_path}/agent HILT_VERILATED={_board(tmp_path)}",
    }
    index = tmp_path / "sshd_config"
    index.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    words = [str(program.sshd), "-D", "-e", "-f", str(index)]
    environment = {**os.environ, **({"LD_LIBRARY_PATH": str(program.libraries)} if program.libraries else {})}
    with log.open("wb") as errors:
        command = _apart(words, tmp_path) if os.geteuid() == 0 else words
        process = subprocess.Popen(command, env=environment, stderr=errors, start_new_session=True)
    try:
        _wait_for(process, port, log)
        yield OpenSSH(
            Endpoint("desk", "127.0.0.1", port, getpass.getuser(), tmp_path / "client_key", None, _python(), False), log
        )
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(_SECONDS)


def _apart(words: list[str], directory: Path) -> list[str]:
    """Return the command that runs these words in a mount namespace of their own.

    As root sshd needs a user `sshd` and /run/sshd; the namespace has them, and nobody else sees them.
    """
    users = Path("/etc/passwd").read_text()
    if "\nsshd:" not in users:
        users += "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"
    (directory / "passwd").write_text(users)
    (directory / "run" / "sshd").mkdir(parents=True, mode=0o755)
    script = 'mount --bind "$0/passwd" /etc/passwd && mount --bind "$0/run" /run && exec "$@"'
    apart = ["unshare", "--mount", "sh", "-c", script, str(directory)]
    tried = subprocess.run([*apart, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"as root sshd needs a mount namespace, which cannot be had: {tried.stderr.strip()}")
    return [*apart, *words]


def _board(directory: Path) -> Path:
    """Write the settings of the device that the agent's pynq finds on this "board"."""
    path = directory / "board_model.json"
    path.write_text(json.dumps(board_model("pynq").device_settings()))
    return path


def _python() -> str:
    if not paths.board_python().exists():
        pytest.skip(f"no board environment at {paths.board_python()}: make setup")
    return str(paths.board_python())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = Deadline(_SECONDS)
    while process.poll() is None and not deadline.passed:
        if "Server listening" in log.read_text():
            return
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
    pytest.fail(f"sshd does not start: {log.read_text()}")


def accepted(endpoint: Endpoint) -> Endpoint:
    with pytest.raises(UnknownHostKeyError) as unknown:
        SshSession.connect(endpoint, HostKeys(), Deadline(_SECONDS))
    HostKeys().accept(unknown.value)
    return endpoint


def test_its_key_is_asked_about_then_known_then_another_is_refused(server: OpenSSH, tmp_path: Path) -> None:
    endpoint = accepted(server.endpoint)
    public = tmp_path / "host_key.pub"
    if shutil.which("ssh-keygen"):
        public.write_bytes(subprocess.run(["ssh-keygen", "-yf", tmp_path / "host_key"], capture_output=True).stdout)
        known = HostKeys().of("127.0.0.1", endpoint.port)[0]
        assert fingerprint(" ".join(public.read_text().split()[:2])) == fingerprint(known)
    with SshSession.connect(endpoint, HostKeys(), Deadline(_SECONDS)) as session:
        assert session.execute(["true"], Deadline(_SECONDS)).status == 0
    other = write_key(tmp_path / "other")
    HostKeys().path.unlink()
    HostKeys().accept(UnknownHostKeyError("127.0.0.1", endpoint.port, other, fingerprint(other)))
    before = server.log.read_text().count("Accepted publickey")
    with pytest.raises(HostKeyChangedError, match="CHANGED.*nothing was sent"):
        SshSession.connect(endpoint, HostKeys(), Deadline(_SECONDS))
    assert server.log.read_text().count("Accepted publickey") == before == 1


def test_a_key_that_is_not_authorized_is_refused(server: OpenSSH, tmp_path: Path) -> None:
    endpoint = accepted(server.endpoint)
    write_key(tmp_path / "stranger")
    with pytest.raises(AuthenticationError, match="ssh-copy-id"):
        SshSession.connect(replace(endpoint, key_file=tmp_path / "stranger"), HostKeys(), Deadline(_SECONDS))


def test_the_agent_is_deployed_and_spoken_with(server: OpenSSH, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSH's SFTP uploads the agent into this user's home, and the agent answers.

    The test removes each file that was not there before.
    """
    endpoint = accepted(server.endpoint)
    directory = Path.home() / ".hilt-agents"
    before = set(directory.iterdir()) if directory.exists() else None
    try:
        with AgentConnection.open(endpoint, "test", Deadline(_SECONDS)) as agent:
            assert agent.welcome.agent == build_archive(virtual=True).sha256
            assert agent.client.status(Deadline(_SECONDS)).holder == "test"
            agent.client.shutdown(Deadline(_SECONDS))
    finally:
        if before is None:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            for path in set(directory.iterdir()) - before:
                path.unlink()
