"""Sweep files: combinations, designs by name, and errors with the field's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.explore.design import Design
from hilt.explore.errors import SweepError
from hilt.explore.sweep import Sweep, read_sweep
from hilt.virtual.board_model import BOARD_MODELS


def sweep(tmp_path: Path, text: str) -> Sweep:
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    return read_sweep(path)


def test_values_are_combined_and_designs_added(tmp_path: Path) -> None:
    found = sweep(
        tmp_path,
        "[base]\nclock_mhz = 150\n[sweep]\nLOG_BLOCK = [3, 4]\nbus_bits = [64, 128]\n"
        '[[design]]\nname = "mine"\nLOG_BATCH = 1\n',
    )
    assert [(design.parameters.block, design.bus_bits) for design in found.designs[:3]] == [
        (8, 64), (16, 64), (16, 128),
    ]  # fmt: skip
    assert "LOG_BLOCK=3 bus_bits=128: LOG_BATCH and LOG_BLOCK give inp elements of 8 bytes" in found.refused[0]
    assert found.designs[3].title == "mine" and found.designs[3].parameters.batch == 2
    assert {design.clock_hz for design in found.designs} == {150_000_000}


def test_the_base_has_its_place_under_any_name(tmp_path: Path) -> None:
    swept = "[base]\nclock_mhz = 150\n[sweep]\nLOG_INP_BUFF_SIZE = [14, 15]\n"
    assert sweep(tmp_path, swept).base == 1, "pynq has 2^15 bytes"
    assert sweep(tmp_path, swept.replace("15]", "16]")).base is None
    assert sweep(tmp_path, '[[design]]\nname = "a"\nclock_mhz = 150\n[[design]]\nname = "b"\n').base == 1
    assert sweep(tmp_path, "").base == 0


def test_read_ports_are_swept_and_bring_as_many_times_the_bus(tmp_path: Path) -> None:
    one, two = sweep(tmp_path, "[base]\nmemory_gb_s = 1.2\n[sweep]\nread_ports = [1, 2]\n").designs
    assert (one.accelerator.read_ports, two.accelerator.read_ports) == (1, 2)
    assert one.memory.bandwidth == (8 * 64, 64) and two.memory.bandwidth == (12 * 64, 64)
    assert one.title != two.title and Design.from_dict(two.to_dict()) == two
    assert "read_ports" in one.to_dict()


def test_bands_are_of_designs_with_batch_lanes(tmp_path: Path) -> None:
    found = sweep(tmp_path, "[base]\nLOG_BATCH = 1\n[sweep]\nbands = [false, true]\n")
    images, bands = found.designs
    assert (images.accelerator.bands, bands.accelerator.bands) == (False, True)
    assert images.title != bands.title and Design.from_dict(bands.to_dict()) == bands
    refused = sweep(tmp_path, "[sweep]\nbands = [false, true]\n").refused
    assert "bands=True: bands with 1 batch lanes" in refused[0]


def test_an_own_parameter_file_is_the_base(tmp_path: Path) -> None:
    mapping = Design(sweep(tmp_path, "").designs[0].parameters).parameters.to_mapping() | {"LOG_ACC_BUFF_SIZE": 16}
    (tmp_path / "my.json").write_text(str(mapping).replace("'", '"'))
    (only,) = sweep(tmp_path, '[base]\nparameters = "my.json"\n').designs
    assert only.parameters.log_acc_buff_size == 16


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[sweep]\nLOG_BLOCK = [9]", "sweep.LOG_BLOCK is 9; hilt's VTA takes 2..6"),
        ("[sweep]\nLOG_BLOCKS = [4]", "there is no field sweep.LOG_BLOCKS; did you mean LOG_BLOCK"),
        ("[sweep]\nLOG_BLOCK = 4", "sweep.LOG_BLOCK is 4; give a list"),
        ("[sweep]\nLOG_BLOCK = [4.5]", "sweep.LOG_BLOCK is 4.5; give a whole number"),
        ("[base]\nbus_bits = 96", "base.bus_bits is 96; hilt's VTA takes 64 or 128"),
        ("[base]\nread_ports = 3", "base.read_ports is 3; hilt's VTA has 1, 2 or 4"),
        ("[base]\nread_ports = 1.5", "base.read_ports is 1.5; hilt's VTA has 1, 2 or 4"),
        ("[base]\nbands = 1", "base.bands is 1; give true or false"),
        ("[base]\nclock_mhz = 0", "base.clock_mhz is 0; give a number from 1 to 2000"),
        ("[base]\nparameters = 'pinq'", "base.parameters: no VTA parameters named 'pinq'"),
        ("[sweeps]\nLOG_BLOCK = [4]", r"there is no table \[sweeps\]; did you mean sweep"),
        ("[sweep", "is not TOML"),
        ("design = 1", r"write each design as \[\[design\]\]"),
        ("design = [1]", r"write each design as \[\[design\]\]"),
        ("base = 1", r"base is not a table; write \[base\]"),
        ("[base]\nparameters = 1", "base.parameters is 1; give a name such as pynq, or a .json file"),
        ("[base]\nparameters = 'pink'", "base.parameters: no VTA parameters named 'pink'"),
        ("[[design]]\nname = 1", "a design's name is 1; give text"),
        ("[base]\nprocessor = 'z80'", "base.processor is 'z80'; give cortex-a9 or cortex-a53"),
        ("[base]\nbands = 1", "base.bands is 1; give true or false"),
        ("[sweep]\nclock_mhz = []", r"sweep.clock_mhz is \[\]; give a list of values"),
        ("[sweep]\nclock_mhz = 100", "sweep.clock_mhz is 100; give a list of values"),
        (
            f"[sweep]\nclock_mhz = {list(range(1, 102))}\nread_ns = {list(range(1, 101))}",
            "the sweep has 10,100 combinations; give at most 10,000",
        ),
        ("[sweep]\nLOG_WGT_WIDTH = [2]", "sweep.LOG_WGT_WIDTH is 2; hilt's VTA takes 3..3"),
        ("[sweep]\nLOG_INP_BUFF_SIZE = [31]", "no combination makes a VTA; .*LOG_INP_BUFF_SIZE gives a buffer"),
    ],
)
def test_impossible_vta_parameters_are_refused_with_their_field(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SweepError, match=words):
        sweep(tmp_path, text)


def test_a_combination_that_makes_no_vta_is_left_out_with_a_line(tmp_path: Path) -> None:
    found = sweep(tmp_path, "[sweep]\nLOG_INP_BUFF_SIZE = [15, 21]\n")
    assert len(found.designs) == 1
    (line,) = found.refused
    assert line.startswith("LOG_INP_BUFF_SIZE=21: ") and "65536" in line


def test_a_design_survives_json_and_its_memory_follows_the_clock(tmp_path: Path) -> None:
    slow, fast = sweep(tmp_path, "[sweep]\nclock_mhz = [100, 200]\n").designs
    assert Design.from_dict(slow.to_dict()) == slow
    assert (slow.memory.read_latency, fast.memory.read_latency) == (32, 64)
    (limited,) = sweep(tmp_path, "[base]\nmemory_gb_s = 0.4\n").designs
    bytes_moved, cycles = limited.memory.bandwidth
    assert bytes_moved / cycles == pytest.approx(4, rel=0.02)  # 0.4 GB/s at 100 MHz


def test_combinations_with_one_reason_share_a_line(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text("[sweep]\nLOG_BLOCK = [3, 4]\nbus_bits = [64, 128]\nclock_mhz = [100, 125, 150]\n")
    found = read_sweep(path)
    assert len(found.designs) == 9
    (line,) = found.refused
    assert line.startswith("LOG_BLOCK=3 bus_bits=128 clock_mhz=100 and 2 more: LOG_BATCH and LOG_BLOCK give")


@pytest.mark.parametrize("name", [name for name, model in BOARD_MODELS.items() if model.form == "rtl"])
def test_a_design_without_times_has_the_memory_of_hilts_board(name: str) -> None:
    model = BOARD_MODELS[name]
    accelerator = model.accelerator
    design = Design(
        accelerator.parameters,
        bus_bits=model.bus_bits,
        read_ports=model.read_ports,
        clock_hz=model.clock_hz,
        bands=model.bands,
    )
    moved, cycles = design.memory.bandwidth
    asked = model.bandwidth_numerator / model.bandwidth_denominator or accelerator.bytes_per_cycle
    assert moved / cycles == asked
    assert design.memory.read_latency == model.read_latency
    assert design.memory.write_latency == model.write_latency


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"cannot read the sweep .*none\.toml: No such file"):
        read_sweep(tmp_path / "none.toml")
