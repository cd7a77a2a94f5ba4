import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hilt import paths
from hilt.vta.accelerator import (
    Accelerator,
    FieldOverflowError,
    IsaRevision,
    ParameterError,
    VTAParameters,
    load_parameters,
)
from tests.unit.vta.variants import PYNQ_A, ZCU102


def test_names_are_those_of_the_public_bitstreams() -> None:
    assert load_parameters("pynq").name == "1x16_i8w8a32_15_15_18_17"
    assert load_parameters("pynq_batched").name == "4x8_i8w8a32_15_16_16_18"


def test_a_parameter_file_is_read_once_and_again_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, reads, read_text = tmp_path / "mine.json", [], Path.read_text
    values = load_parameters("pynq").to_mapping()
    path.write_text(json.dumps(values))
    os.utime(path, ns=(1, 1))
    monkeypatch.setattr(Path, "read_text", lambda self, **options: reads.append(self) or read_text(self, **options))
    assert load_parameters(path) is load_parameters(path)
    assert reads == [path]
    path.write_text(json.dumps({**values, "LOG_INP_BUFF_SIZE": 14}))
    assert load_parameters(path).log_inp_buff_size == 14
    assert reads == [path, path]


def test_depths_and_elements_are_those_of_hardware_md() -> None:
    parameters = load_parameters("pynq")
    assert (parameters.inp_depth, parameters.wgt_depth, parameters.acc_depth) == (2048, 1024, 2048)
    assert PYNQ_A.uop_depth == 8192
    assert parameters.inp_element_bytes == parameters.out_element_bytes == 16
    assert (parameters.wgt_element_bytes, parameters.acc_element_bytes) == (256, 64)
    assert PYNQ_A.macs_per_cycle == 256


def test_wide_is_chosen_where_a_overflows_and_only_there() -> None:
    assert PYNQ_A.isa is IsaRevision.A
    assert ZCU102.isa is IsaRevision.WIDE
    assert (ZCU102.uop_depth, ZCU102.uop_element_bytes, ZCU102.instruction_bytes) == (8192, 8, 32)


@pytest.mark.parametrize("isa", [IsaRevision.A, IsaRevision.B])
def test_a_revision_that_cannot_hold_the_parameters_is_refused_by_field(isa: IsaRevision) -> None:
    message = "field iter_in needs bits 51..64 of a 64-bit word; use the wide ISA"
    with pytest.raises(FieldOverflowError, match=message) as raised:
        Accelerator.for_parameters(load_parameters("zcu102"), isa)
    assert raised.value.field == "iter_in"


def test_defines_are_the_macros_of_the_architecture() -> None:
    defines = Accelerator.for_parameters(load_parameters("pynq"), IsaRevision.B, bus_bits=128, hazards="none").defines()
    assert defines == {
        "VTA_LOG_INP_WIDTH": 3,
        "VTA_LOG_WGT_WIDTH": 3,
        "VTA_LOG_ACC_WIDTH": 5,
        "VTA_LOG_BATCH": 0,
        "VTA_LOG_BLOCK": 4,
        "VTA_LOG_UOP_BUFF_SIZE": 15,
        "VTA_LOG_INP_BUFF_SIZE": 15,
        "VTA_LOG_WGT_BUFF_SIZE": 18,
        "VTA_LOG_ACC_BUFF_SIZE": 17,
        "VTA_ISA_REVISION": 1,
        "VTA_BUS_WIDTH": 128,
        "VTA_HAZARD_INTERLOCK": 0,
        "VTA_TABLE": 1,
        "VTA_READ_PORTS": 1,
        "VTA_WINDOW": 0,
        "VTA_BANDS": 0,
        "VTA_INSN_QUEUE_DEPTH": 512,
    }


def test_the_rtl_has_the_parameters_of_an_accelerator_and_no_other() -> None:
    header = (paths.hls_directory() / "rtl" / "vta_parameters.svh").read_text()
    accelerator = Accelerator.for_parameters(load_parameters("pynq"), IsaRevision.B, bus_bits=128, hazards="none")
    parameters = accelerator.rtl_parameters()
    assert re.findall(r"^parameter (?:int unsigned|bit) (\w+)", header, re.MULTILINE) == list(parameters)
    assert parameters["LogWgtBuffSize"] == 18
    assert parameters["BusBits"] == 128
    assert parameters["HazardInterlock"] == 0
    passed = (paths.hls_directory() / "rtl" / "vta_passed.svh").read_text()
    assert re.findall(r"^\.(\w+)\(\1\)", passed, re.MULTILINE) == list(parameters)


def test_bands_are_of_two_or_four_lanes() -> None:
    assert Accelerator.for_parameters(load_parameters("pynq_batched"), bands=True).defines()["VTA_BANDS"] == 1
    for name in ("pynq", "8x8_i8w8a32_15_15_18_17"):
        parameters = load_parameters(name) if name == "pynq" else VTAParameters.from_name(name)
        with pytest.raises(ParameterError, match="bands with [18] batch lanes"):
            Accelerator.for_parameters(parameters, bands=True)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("LOG_BLOCK", 9, "LOG_BLOCK is 9"),
        ("LOG_INP_WIDTH", 4, "LOG_INP_WIDTH is 4"),
        ("LOG_BATCH", "0", "LOG_BATCH is '0'; it must be an integer"),
        ("LOG_BATCH", True, "LOG_BATCH is True"),
        ("LOG_WGT_BUFF_SIZE", 3, "LOG_WGT_BUFF_SIZE gives a buffer of 0 elements"),
        ("LOG_INP_BUFF_SIZE", 30, "LOG_INP_BUFF_SIZE gives a buffer of 67108864 elements"),
        ("LOG_OUT_WIDTH", 4, "LOG_OUT_WIDTH is 4 but LOG_INP_WIDTH is 3"),
    ],
)
def test_nonsense_is_refused_with_the_field_named(tmp_path: Path, key: str, value: object, message: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(json.dumps({**load_parameters("pynq").to_mapping(), key: value}))
    with pytest.raises(ParameterError, match=message):
        load_parameters(path)


def test_files_that_are_no_parameters_say_so(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="no VTA parameters named 'pynk'; known are .*pynq"):
        load_parameters("pynk")
    with pytest.raises(ParameterError, match="cannot read"):
        load_parameters(tmp_path / "missing.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(ParameterError, match="not JSON"):
        load_parameters(broken)
    broken.write_text("{}")
    with pytest.raises(ParameterError, match="LOG_INP_WIDTH is missing"):
        load_parameters(broken)


def test_a_file_by_path_is_the_file_by_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(load_parameters("zcu102").to_mapping()))
    assert load_parameters(path) == load_parameters("zcu102")
    assert VTAParameters.from_mapping(load_parameters("pynq").to_mapping()) == load_parameters("zcu104")


def test_a_revision_by_its_name_is_that_revision() -> None:
    parameters = VTAParameters.from_name("1x16_i8w8a32_15_15_18_17")
    named, given = (Accelerator.for_parameters(parameters, isa) for isa in ("B", IsaRevision.B))  # type: ignore[arg-type]
    assert named == given and named.isa is IsaRevision.B and named.formats == given.formats
    with pytest.raises(ParameterError, match="the ISA revision 'C'; it is one of A, B, wide"):
        Accelerator.for_parameters(parameters, "C")  # type: ignore[arg-type]


def test_read_ports_are_one_two_or_four_and_each_has_whole_beats_of_a_weight() -> None:
    two = replace(PYNQ_A, read_ports=2)
    two.require_rtl()
    replace(PYNQ_A, read_ports=4).require_rtl()
    assert (PYNQ_A.bytes_per_cycle, two.bytes_per_cycle) == (8, 16)
    assert two.defines() == PYNQ_A.defines() | {"VTA_READ_PORTS": 2}
    with pytest.raises(ParameterError, match="3 read ports; hilt's VTA has 1, 2 or 4"):
        replace(PYNQ_A, read_ports=3)
    small = Accelerator(VTAParameters(3, 3, 5, 2, 2, 13, 10, 8, 12), IsaRevision.B, bus_bits=128, read_ports=2)
    with pytest.raises(ParameterError, match="2 read ports: each has 8 bytes of a wgt element, less than the 16"):
        small.require_rtl()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bus_bits": 32}, "a memory bus of 32 bits; hilt's VTA takes 64 or 128"),
        ({"hazards": "some"}, "hazards are 'some'; they are 'interlock' or 'none'"),
        ({"instruction_queue_depth": 1}, "an instruction queue of 1; it must hold at least 2"),
        ({"clock_hz": 0}, "a clock of 0 Hz; it must be positive"),
        ({"clock_hz": -1}, "a clock of -1 Hz; it must be positive"),
    ],
)
def test_an_accelerator_that_cannot_be_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=f"^{words}$"):
        replace(PYNQ_A, **change)


def test_the_least_accelerator_is_one() -> None:
    least = replace(PYNQ_A, bus_bits=128, hazards="none", instruction_queue_depth=2, clock_hz=1)
    assert least.bytes_per_cycle == 16


@pytest.mark.parametrize(
    ("bus_bits", "accumulators", "words"),
    [
        (128, 8, "LOG_UOP_BUFF_SIZE gives a micro-op buffer of 16 bytes; on a memory bus of 128 bits .* 32 or more"),
        (64, 7, "LOG_ACC_BUFF_SIZE gives a buffer of 2 elements; hilt's VTA has 4 or more"),
    ],
)
def test_the_rtl_needs_buffers_of_a_few_elements(bus_bits: int, accumulators: int, words: str) -> None:
    Accelerator(VTAParameters(3, 3, 5, 0, 4, 4, 10, 12, 8), IsaRevision.B).require_rtl()
    small = Accelerator(VTAParameters(3, 3, 5, 0, 4, 4, 10, 12, accumulators), IsaRevision.B, bus_bits=bus_bits)
    with pytest.raises(ParameterError, match=words):
        small.require_rtl()
