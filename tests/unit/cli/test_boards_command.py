"""`hilt boards`: an address and its parts, the values of an entry of boards.toml, and the output of each command."""

from __future__ import annotations

import ipaddress
import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.cli import boards, host_keys
from hilt.cli.main import run as hilt
from hilt.link import quarantine
from hilt.link.errors import BoardBusyError, UnknownHostKeyError
from hilt.measure import board_description, describe_board, doctor, lease, selftest
from hilt.measure.doctor import Finding

USERS = st.from_regex(r"[a-z_][a-z0-9_-]{0,31}", fullmatch=True)
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9.-]{0,40}", fullmatch=True)
SIX = st.ip_addresses(v=6).map(str)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.delenv("HILT_DEBUG", raising=False)
    return tmp_path


@settings(max_examples=40)
@given(USERS, st.one_of(NAMES, SIX), st.one_of(st.none(), st.integers(1, 65535)))
def test_an_address_comes_apart_into_what_it_was_made_of(user: str, host: str, port: int | None) -> None:
    expected = {"host": host, "user": user, **({} if port is None else {"port": port})}
    written = f"[{host}]" if ":" in host and port is not None else host
    assert boards._address(f"{user}@{written}" + ("" if port is None else f":{port}")) == expected


@settings(max_examples=40)
@given(st.text("ab@[]:.1", max_size=12))
def test_any_text_is_an_address_or_refused_in_one_way(text: str) -> None:
    try:
        parts = boards._address(text)
    except typer.BadParameter as error:
        assert "is not USER@HOST" in error.message
    else:
        assert parts["user"] and parts["host"] and not set(parts["host"]) & set("[]")


@pytest.mark.parametrize(
    "text", ["", "host", "@host", "pi@", "pi@[::1", "pi@[::1]22", "pi@h:", "pi@h:ssh", "pi@[]:22", "pi@[[]"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"is not USER@HOST\[:PORT\]"):
        boards._address(text)


def test_an_address_of_six_groups_keeps_its_colons() -> None:
    assert ipaddress.ip_address(boards._address("pi@fe80::1:22")["host"]) == ipaddress.ip_address("fe80::1:22")


@pytest.fixture
def added(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The boards whose key was asked for; each is the right one."""
    asked: list[str] = []
    monkeypatch.setattr(host_keys, "confirm_host_key", asked.append)
    return asked


def entry(home: Path, name: str = "desk") -> Any:
    return tomllib.loads((home / "boards.toml").read_text())[name]


def test_an_added_board_has_what_was_said_and_no_more(
    home: Path, added: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert hilt(["boards", "add", "desk", "pi@host:2222", "--bitstream", "pynq"]) == 0
    assert entry(home) == {"host": "host", "port": 2222, "user": "pi", "bitstream": "pynq"}
    assert added == ["desk"] and "`hilt boards check desk` says whether it is ready" in capsys.readouterr().out
    options = ["--key", "/k", "--python", "/usr/bin/python3", "--no-sudo"]
    assert hilt(["boards", "add", "lab", "pi@host", "--bitstream", "pynq", *options]) == 0
    assert entry(home, "lab") == {
        **{"host": "host", "user": "pi", "bitstream": "pynq"},
        **{"key": "/k", "python": "/usr/bin/python3", "sudo": False},
    }


def test_a_board_whose_key_is_not_confirmed_is_not_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        assert entry(home, name)["host"] == "host", "the key is asked for by its entry"
        raise UnknownHostKeyError("host", 22, "ssh-ed25519 AAAA", "SHA256:abc")

    monkeypatch.setattr(host_keys, "confirm_host_key", refuse)
    assert hilt(["boards", "add", "desk", "pi@host", "--bitstream", "pynq"]) == 3
    assert (home / "boards.toml").read_text() == ""


def test_a_board_of_an_unknown_bitstream_is_not_added(home: Path, added: list[str]) -> None:
    assert hilt(["boards", "add", "desk", "pi@host", "--bitstream", "pinq"]) == 2
    assert added == [] and not (home / "boards.toml").exists()


def test_a_new_virtual_board_may_have_a_parameter_file_of_any_name(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = home / "\N{GRINNING FACE}.json"
    own.write_text(json.dumps(describe_board("virtual:pynq").accelerator.parameters.to_mapping()))
    words = ["--parameters", str(own), "--clock-mhz", "142.5", "--read-latency", "40", "--jitter", "0"]
    assert hilt(["boards", "new-virtual", "mine", *words]) == 0
    (kept,) = (home / "board-models").iterdir()
    assert tomllib.loads(kept.read_text()) == {
        **{"parameters": str(own), "base": "pynq", "clock_mhz": 142.5, "read_latency": 40, "jitter": 0}
    }
    assert f"virtual:mine is in {kept}" in capsys.readouterr().out.replace("\n", " ")
    assert describe_board("virtual:mine").clock_hz == 142_500_000


@pytest.mark.parametrize(
    "words",
    [["show", "\udcff"], ["boards", "release", "d\udcff"], ["space", "resnet18.C5", "--board", "virtual:\udcff.json"]],
)
def test_bytes_that_are_no_text_are_the_users(home: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(words) == 2
    said = capsys.readouterr().err
    assert "has bytes that are no text: take another name" in said and "fault of hilt" not in said


class Target:
    """A board that a command resolves: its calls are noted, its release last."""

    def __init__(self, virtual: bool = True, power: Any = None) -> None:
        self.did: list[str] = []
        self.virtual, self._power = virtual, power
        self.description = SimpleNamespace(name="desk")

    def prepare(self, tell: Callable[[str], None]) -> None:
        self.did.append("prepare")
        tell("building its model")

    def endpoint(self) -> str:
        return "endpoint"

    def power(self) -> Any:
        return self._power

    def release(self) -> None:
        self.did.append("release")


@pytest.fixture
def target(home: Path, added: list[str], monkeypatch: pytest.MonkeyPatch) -> Target:
    made = Target()
    monkeypatch.setattr(board_description, "resolve", lambda name: made)
    return made


def finds(monkeypatch: pytest.MonkeyPatch, *findings: Finding | Exception) -> None:
    def check(target: object) -> Iterator[Finding]:
        for finding in findings:
            if isinstance(finding, Exception):
                raise finding
            yield finding

    monkeypatch.setattr(doctor, "check_board", check)


WELL, BAD = Finding("SSH", True, "root@host"), Finding("agent", False, "no room", "make room")


def test_a_check_names_each_finding_and_the_mend_of_a_bad_one(
    target: Target, added: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finds(monkeypatch, WELL)
    assert hilt(["boards", "check", "desk"]) == 0
    said = capsys.readouterr()
    assert said.out == "ok    SSH: root@host\n" and said.err == "building its model\n"
    finds(monkeypatch, WELL, BAD)
    assert hilt(["boards", "check", "desk"]) == 3
    assert capsys.readouterr().out == "ok    SSH: root@host\nFAIL  agent: no room\n      make room\n"
    assert added == ["desk"] * 2 and target.did == ["prepare", "release"] * 2


def test_a_check_for_programs_is_json_alone(
    target: Target, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finds(monkeypatch, WELL, BAD)
    assert hilt(["boards", "check", "desk", "--json"]) == 3
    items = json.loads(capsys.readouterr().out)["items"]
    assert items[1] == {"what": "agent", "well": False, "found": "no room", "mend": "make room"}
    assert [item["well"] for item in items] == [True, False]


def test_a_board_is_released_whatever_ends_its_check(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, WELL, BoardBusyError("in use"))
    assert hilt(["boards", "check", "desk"]) == 3
    assert target.did == ["prepare", "release"]


@pytest.mark.parametrize("virtual", [True, False])
@pytest.mark.parametrize("well", [True, False])
def test_a_selftest_keeps_a_real_boards_memory_and_writes_its_page(
    home: Path,
    target: Target,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    virtual: bool,
    well: bool,
) -> None:
    target.virtual = virtual
    asked: list[Any] = []
    written: list[Any] = []

    def test_board(board: Target, settings: Any, keep: Callable[[Any], None]) -> Iterator[selftest.Check]:
        asked.append(settings)
        keep(SimpleNamespace(values=lambda: {"read_latency": 32.0}))
        yield selftest.Check("memory", True, "32 cycles")
        yield selftest.Check("drift", well, "0 %")

    monkeypatch.setattr(selftest, "selftest", test_board)
    monkeypatch.setattr(selftest, "page_text", lambda board, checks: f"{len(checks)} checks\n")
    monkeypatch.setattr(
        "hilt.link.board_registry.write_memory", lambda *values: written.append(values) or "boards.toml"
    )
    page = home / "page.md"
    words = ["boards", "selftest", "desk", "--minutes", "0.5", "--layers", "2", "--output", str(page)]
    assert hilt(words) == (0 if well else 3)
    said = capsys.readouterr()
    drift = f"{'ok  ' if well else 'FAIL'}  drift: 0 %"
    assert said.out == f"ok    memory: 32 cycles\n{drift}\n\n2 checks\n\n"
    assert page.read_text() == "2 checks\n"
    assert (asked[0].minutes, tuple(asked[0].layers)) == (0.5, tuple(selftest.LAYERS[:2]))
    assert written == ([] if virtual else [("desk", {"read_latency": 32.0})])
    assert ("the memory that was found is in boards.toml" in said.err) is not virtual
    assert target.did == ["prepare", "release"]
    assert hilt(["boards", "selftest", "desk", "--json"]) == (0 if well else 3)
    said = capsys.readouterr()
    assert [item["name"] for item in json.loads(said.out)["items"]] == ["memory", "drift"]
    assert (asked[1].minutes, tuple(asked[1].layers)) == (5.0, tuple(selftest.LAYERS))


@pytest.mark.parametrize("switch", ["on", "off", "cycle"])
def test_power_is_switched(target: Target, capsys: pytest.CaptureFixture[str], switch: str) -> None:
    did: list[str] = []
    target._power = SimpleNamespace(**{each: lambda each=each: did.append(each) for each in ("on", "off", "cycle")})
    assert hilt(["boards", "power", switch, "desk"]) == 0
    assert did == [switch] and f"desk: power {switch}" in capsys.readouterr().out


def test_a_board_without_a_switch_says_how_it_gets_one(target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["boards", "power", "on", "desk"]) == 3
    assert "board desk has no power switch: give it a table `power`" in " ".join(capsys.readouterr().err.split())


def test_the_log_and_the_service_are_the_agents_own_commands(
    home: Path, target: Target, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []

    def run_agent(endpoint: str, words: tuple[str, ...], deadline: object) -> str:
        asked.append((endpoint, words))
        return "all \x1b[2Jwell\n\n"

    monkeypatch.setattr("hilt.link.agent.run_agent", run_agent)
    assert hilt(["boards", "logs", "desk"]) == 0
    assert capsys.readouterr().out == "all [2Jwell\n"
    assert hilt(["boards", "add", "desk", "pi@host", "--bitstream", "pynq", "--service"]) == 0
    assert asked == [("endpoint", ("log",)), ("endpoint", ("install-service",))]
    assert target.did == ["release"] * 2


@pytest.mark.parametrize(
    ("apart", "holder", "said"),
    [
        (True, None, "desk is released\n"),
        (False, "hilt of ann", "desk is released: hilt of ann, which held it, has ended\n"),
        (False, None, "desk is free: it was not quarantined, and nothing held it\n"),
    ],
)
def test_a_release_says_what_held_the_board(
    target: Target,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    apart: bool,
    holder: str | None,
    said: str,
) -> None:
    monkeypatch.setattr(quarantine, "release", lambda name: apart)
    monkeypatch.setattr(lease, "end_lease", lambda board: holder)
    assert hilt(["boards", "release", "desk"]) == 0
    assert capsys.readouterr().out == said
    assert target.did == ([] if apart else ["prepare", "release"])


def test_the_list_shows_a_quarantined_board_that_has_no_entry(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("virtual:pynq@left", "gone", "virtual:pynq"):
        quarantine.quarantine(name, "it hung")
    assert hilt(["boards", "--json"]) == 0
    items = {item["board"]: item for item in json.loads(capsys.readouterr().out)["items"]}
    assert items["virtual:pynq@left"]["quarantined"] == items["virtual:pynq"]["quarantined"] == "it hung"
    assert items["virtual:zcu102"]["quarantined"] is None and "gone" not in items
    pynq = describe_board("virtual:pynq")
    assert items["virtual:pynq"] == {
        "board": "virtual:pynq",
        "parameters": pynq.accelerator.parameters.name,
        "isa": "A",
        "bus_bits": 64,
        "read_ports": pynq.accelerator.read_ports,
        "hazards": pynq.accelerator.hazards,
        "clock_hz": 100_000_000,
        "bitstream": pynq.bitstream,
        "deterministic": True,
        "quarantined": "it hung",
    }
    assert hilt(["boards"]) == 0
    said = capsys.readouterr().out
    assert "gone is quarantined: it hung; see to it, then `hilt boards release gone`" in " ".join(said.split())
    row = next(line for line in said.splitlines() if line.startswith("virtual:pynq "))
    assert "100 MHz" in row and pynq.bitstream[:12] in row and pynq.bitstream[:13] not in row
