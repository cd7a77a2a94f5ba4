"""Board models of the user's own: from a parameter file, a TOML file, or a name that was kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hilt.cli.main import run as hilt
from hilt.measure import describe_board
from hilt.virtual.board_model import board_model
from hilt.virtual.errors import BoardNameError, UnknownBoardModelError
from hilt.virtual.names import parse_virtual_name
from hilt.virtual.own_models import canonical, kept_names
from hilt.vta.parameters import load_parameters


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    values = load_parameters("pynq").to_mapping() | {"LOG_ACC_BUFF_SIZE": 16, "TARGET": "mine"}
    (tmp_path / "my.json").write_text(json.dumps(values))
    return tmp_path


def test_a_parameter_file_is_a_board(home: Path) -> None:
    board = describe_board("virtual:my.json")
    assert board.accelerator.parameters.name == "1x16_i8w8a32_15_15_18_16"
    assert board.bitstream != describe_board("virtual:pynq").bitstream
    assert canonical("virtual:my.json?rate=0.1") == f"virtual:{home / 'my.json'}?rate=0.1"
    assert canonical("virtual:pynq") == "virtual:pynq" and canonical("desk") == "desk"


def test_two_files_of_one_name_are_two_boards(home: Path) -> None:
    (home / "other").mkdir()
    (home / "other" / "my.json").write_text((home / "my.json").read_text())
    first, second = (parse_virtual_name(f"virtual:{path}")[1] for path in ("my.json", "other/my.json"))
    assert first.name != second.name and first.name == parse_virtual_name(f"virtual:{home / 'my.json'}")[1].name


def test_a_toml_file_sets_memory_clock_and_bus(home: Path) -> None:
    (home / "fast.toml").write_text(
        'parameters = "my.json"\nbus_bits = 128\nclock_mhz = 200\nread_latency = 60\nbytes_per_cycle = 4.0\n'
        "read_ports = 2\n"
    )
    model = board_model("fast.toml")
    assert (model.bus_bits, model.clock_hz, model.read_latency, model.write_latency) == (128, 200_000_000, 60, 16)
    numerator, denominator = model.memory_model.bandwidth
    assert numerator / denominator == 4
    assert model.accelerator.parameters.log_acc_buff_size == 16
    assert model.accelerator.read_ports == 2


def test_a_new_virtual_board_is_listed_and_found(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["boards", "new-virtual", "mine", "--parameters", "my.json", "--clock-mhz", "150"]) == 0
    assert kept_names() == ["mine"]
    capsys.readouterr()
    assert hilt(["boards", "--json"]) == 0
    listed = {board["board"]: board for board in json.loads(capsys.readouterr().out)["items"]}
    assert listed["virtual:mine"]["clock_hz"] == 150_000_000
    assert hilt(["boards", "new-virtual", "mine"]) == 2
    assert "virtual:mine is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("read_latency = 0", "read_latency is 0; give a whole number from 1"),
        ("read_latncy = 5", "has a field 'read_latncy'; the fields are"),
        ("bus_bits = 96", "a memory bus of 96 bits"),
        ("parameters = 'nowhere.json'", "cannot read VTA parameters"),
        ("base = 'pink'", "base is 'pink'; there are pynq"),
        ("clock_mhz = ", "is not TOML"),
        ("# \udcff", "bad.toml is not TOML: .* invalid start byte"),
        ("x = " + "[" * 100_000, "is not TOML: it is nested too deep"),
    ],
    ids=lambda text: text[:16],
)
def test_a_wrong_field_is_named(home: Path, content: str, words: str) -> None:
    (home / "bad.toml").write_text(content, errors="surrogateescape")
    with pytest.raises(BoardNameError, match=words):
        board_model("bad.toml")


def test_parameters_that_make_no_vta_are_refused_with_the_field(home: Path) -> None:
    values = json.loads((home / "my.json").read_text()) | {"LOG_BLOCK": 9}
    (home / "my.json").write_text(json.dumps(values))
    with pytest.raises(BoardNameError, match="LOG_BLOCK is 9; hilt's VTA takes 2..6"):
        board_model("my.json")


def test_an_unknown_name_is_still_unknown() -> None:
    with pytest.raises(UnknownBoardModelError, match="did you mean virtual:pynq"):
        board_model("pinq")


@pytest.mark.parametrize(("rate", "bandwidth"), [("0.015625", (1, 64)), ("4.0", (256, 64)), ("64", (4096, 64))])
def test_a_rate_is_in_sixtyfourths_of_a_byte(home: Path, rate: str, bandwidth: tuple[int, int]) -> None:
    (home / "own.toml").write_text(f"bytes_per_cycle = {rate}\n")
    assert board_model("own.toml").memory_model.bandwidth == bandwidth
