"""boards.toml: its fields, and the one-line error for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.link.board_registry import REMOTE_PATH, Endpoint, add_board, registered_board, registered_boards
from hilt.link.errors import BoardFileError, UnknownBoardError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    return tmp_path


def test_a_board_needs_host_and_bitstream_only(home: Path) -> None:
    (home / "boards.toml").write_text('[desk]\nhost = "192.168.2.99"\nbitstream = "pynq"\n')
    board = registered_board("desk")
    assert board.bitstream == "pynq"
    assert board.endpoint == Endpoint("desk", "192.168.2.99")
    assert (board.endpoint.port, board.endpoint.user, board.endpoint.sudo) == (22, "xilinx", True)
    assert board.endpoint.host_key is None and board.endpoint.key_file is None


def test_everything_can_be_said(home: Path) -> None:
    (home / "boards.toml").write_text(
        '[desk]\nhost = "pynq.local"\nport = 2222\nuser = "root"\nkey = "~/.ssh/board"\n'
        'python = "/usr/bin/python3"\nsudo = false\nbitstream = "ultra96"\n'
    )
    key = Path("~/.ssh/board").expanduser()
    assert registered_board("desk").endpoint == Endpoint(
        "desk", "pynq.local", 2222, "root", key, None, "/usr/bin/python3", False
    )


def test_unknown_boards_list_the_known(home: Path) -> None:
    with pytest.raises(UnknownBoardError, match=r"no board 'desk': .*none yet; virtual:pynq needs no hardware"):
        registered_board("desk")
    (home / "boards.toml").write_text('[desk]\nhost = "a"\nbitstream = "pynq"\n[lab]\nhost = "b"\nbitstream = "pynq"\n')
    with pytest.raises(UnknownBoardError, match=r"did you mean desk\? .*desk, lab"):
        registered_board("desc")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[desk\n", "cannot be read"),
        ("desk = 1\n", r"a table \[desk\] is needed"),
        ('[desk]\nhost = "a"\n', "bitstream is missing"),
        ('[desk]\nhost = "a"\nbitstream = "x"\npasswort = "b"\n', "unknown key 'passwort'; known are host, port"),
        ('[desk]\nhost = "a"\nbitstream = "x"\nport = "22"\n', "port must be a int, not '22'"),
        ('[desk]\nhost = "a"\nbitstream = "x"\nport = true\n', "port must be a int, not True"),
        ('[desk]\nhost = "a"\nbitstream = "x"\nport = 0\n', "port 0 is not from 1 to 65535"),
        ('[desk]\nhost = "a b"\nbitstream = "x"\n', "'a b' is no host name"),
        ('[desk]\nhost = "-oProxyCommand=x"\nbitstream = "x"\n', "is no host name"),
        ('[desk]\nhost = "a"\nbitstream = "x"\nuser = "a;b"\n', "is no user name"),
        ('[desk]\nhost = "a"\nbitstream = "x"\npython = "python3 -c x"\n', "plain path"),
        ('[desk]\nhost = "a"\nbitstream = "x"\npython = "-c"\n', "plain path"),
    ],
)
def test_an_error_is_one_line(home: Path, text: str, line: str) -> None:
    (home / "boards.toml").write_text(text)
    with pytest.raises(BoardFileError, match=line) as error:
        registered_boards()
    assert str(home / "boards.toml") in str(error.value) or "board desk" in str(error.value)
    assert "\n" not in str(error.value)


def test_no_remote_path_can_be_an_option_or_hold_shell_syntax() -> None:
    assert REMOTE_PATH.match("/usr/local/share/pynq-venv/bin/python3")
    for bad in ("", "-c", "a b", "a\n", "a;b", "a&b", "a|b", "$a", "`a`", "a*", "~a", "a'b", 'a"b', "a\\b", "ä"):
        assert not REMOTE_PATH.match(bad), bad


@pytest.mark.parametrize("key", ["~/Schlüssel/\U0001f511", '~/"\\', "~/\x7f"])
def test_a_key_file_of_any_name_reads_back_and_hides_no_other_board(home: Path, key: str) -> None:
    add_board("desk", {"host": "192.168.2.99", "bitstream": "pynq", "key": key})
    add_board("dataset_store", {"host": "192.168.2.98", "bitstream": "pynq"})
    assert list(registered_boards()) == ["desk", "dataset_store"]
    assert registered_board("desk").endpoint.key_file == Path(key).expanduser()


def test_a_key_file_whose_name_is_no_text_is_refused_and_nothing_is_written(home: Path) -> None:
    with pytest.raises(BoardFileError, match="no text"):
        add_board("desk", {"host": "192.168.2.99", "bitstream": "pynq", "key": "/keys/\udcff"})
    assert not registered_boards()
