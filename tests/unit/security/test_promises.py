"""DESIGN.md's promises about the link and both packages, line by line.

The tests of a whole board are in tests/e2e.
"""

from __future__ import annotations

import ast
import functools
import stat
import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt import paths
from hilt.link.board_registry import REMOTE_PATH, Endpoint
from hilt.link.errors import BoardFileError
from hilt.link.session import SshSession
from hilt_board.home import HomeError, open_home
from hilt_board.protocol import PROTOCOL_VERSION, FrameDecoder, FrameError
from hilt_board.unix_socket import listen

from ..parsed import nodes

PACKAGES = (Path(paths.__file__).parent, paths.board_package_directory())
UNPICKLING = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
SHELLS = {("os", "system"), ("os", "popen"), ("subprocess", "getoutput"), ("subprocess", "getstatusoutput")}
LISTENING = {"create_server", "start_server", "listen", "bind", "HTTPServer", "TCPServer"}


@functools.cache
def modules() -> list[tuple[str, Path]]:
    return [
        (f"{package.name}/{path.relative_to(package)}", path)
        for package in PACKAGES
        for path in sorted(package.rglob("*.py"))
    ]


def calls(module: Path) -> Iterator[ast.Call]:
    return (node for node in nodes(module) if isinstance(node, ast.Call))


def name_of(node: ast.expr) -> str:
    """Return a dotted name such as `a.b.c`, or an empty string for any other expression."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def test_nothing_is_unpickled() -> None:
    for where, module in modules():
        for node in nodes(module):
            if isinstance(node, ast.Import):
                assert not {each.name.split(".")[0] for each in node.names} & UNPICKLING, where
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in UNPICKLING, where
            elif isinstance(node, ast.Call) and name_of(node.func).split(".")[0] in ("np", "numpy", "torch"):
                allowed = [each for each in node.keywords if each.arg in ("allow_pickle", "weights_only")]
                for each in allowed:
                    wanted = each.arg == "weights_only"
                    assert isinstance(each.value, ast.Constant) and each.value.value is wanted, where
                assert name_of(node.func) != "torch.load" or allowed, f"{where}: unpickles unless told not to"


def test_no_code_comes_from_data() -> None:
    for where, module in modules():
        for call in calls(module):
            assert name_of(call.func) not in ("eval", "exec", "compile", "yaml.load", "yaml.unsafe_load"), where


def test_no_shell_reads_a_string() -> None:
    """But the virtual board's SSH server, which is one: it runs the command that a session asks for, as sshd does."""
    shells = []
    for where, module in modules():
        for call in calls(module):
            assert tuple(name_of(call.func).split(".")) not in SHELLS, where
            assert not any(each.arg == "shell" for each in call.keywords), where
            assert not name_of(call.func).endswith("create_subprocess_shell"), where
            constants = [each.value for each in call.args if isinstance(each, ast.Constant)]
            if {"/bin/sh", "-c"} <= set(constants):
                shells.append(where)
    assert shells == ["hilt/virtual/ssh_server.py"]


@pytest.mark.parametrize(
    "word", ["a b", "a;b", "$(id)", "`id`", "a|b", "a&b", "a>b", "*", "~", "a\nb", "'", '"', "\\", "", "é", "x" * 300]
)
def test_shell_syntax_is_no_word_of_a_command(word: str) -> None:
    assert not REMOTE_PATH.match(word)
    with pytest.raises(ValueError, match="not a plain word"):
        SshSession._open(object.__new__(SshSession), ["sha256sum", word], None)  # type: ignore[arg-type]
    with pytest.raises(BoardFileError):
        Endpoint(name="x", host="board", python=word)


@pytest.mark.parametrize("host", ["-oProxyCommand=id", "a b", "", "a;b", "$HOST"])
def test_a_host_is_a_host(host: str) -> None:
    with pytest.raises(BoardFileError, match="no host name"):
        Endpoint(name="x", host=host)


def test_only_virtual_boards_listen_on_tcp_and_only_on_loopback() -> None:
    """Listening anywhere else would be one of these calls."""
    listening = []
    for where, module in modules():
        for call in calls(module):
            name = name_of(call.func)
            if name.rpartition(".")[2] in LISTENING:
                listening.append((where, name))
    tcp = [each for each in listening if "asyncssh" in each[1] or "server" in each[1].rpartition(".")[2].lower()]
    assert {where for where, _ in tcp} <= {"hilt/virtual/ssh_server.py"}, tcp
    assert not any(where.startswith("hilt_board") and "unix" not in where for where, _ in tcp)
    source = (PACKAGES[0] / "virtual" / "ssh_server.py").read_text()
    assert source.count("asyncssh.listen(") == source.count('asyncssh.listen("127.0.0.1"')


def test_no_socket_is_made_for_the_internet_but_to_connect() -> None:
    families = {
        (where, name_of(call.args[0]) if call.args else "")
        for where, module in modules()
        for call in calls(module)
        if name_of(call.func) == "socket.socket"
    }
    assert {family for _, family in families} <= {"socket.AF_UNIX", ""}, families
    unnamed = {where for where, family in families if not family}
    assert unnamed <= {"hilt_board/worker.py", "hilt/virtual/linux/system.py"}, families
    source = (PACKAGES[0] / "virtual" / "linux" / "system.py").read_text()
    assert source.count(".bind(") == source.count('.bind(("127.0.0.1"') == 1


def test_the_agents_socket_and_directory_are_its_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_AGENT_HOME", str(tmp_path / "agent"))
    home = open_home()
    with listen(home):
        assert stat.S_IMODE(home.socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    home.root.chmod(0o755)
    with pytest.raises(HomeError, match="open to others"):
        open_home()


@pytest.mark.parametrize("sizes", [(2**32 - 1, 0), (2, 2**32 - 1), (1 << 21, 0), (2, (64 << 20) + 1)])
def test_no_size_is_believed_before_it_is_bounded(sizes: tuple[int, int]) -> None:
    start = struct.pack("<4sHHIII", b"HILT", PROTOCOL_VERSION, 0, *sizes, 0)
    tracemalloc.start()
    try:
        with pytest.raises(FrameError, match="allowed are"):
            FrameDecoder().feed(start + struct.pack("<I", zlib.crc32(start)))
        assert tracemalloc.get_traced_memory()[1] < 1 << 16
    finally:
        tracemalloc.stop()
