"""The PGO workload: a program that every accelerator can run, and that keeps all of it busy."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from hilt.simulator.build import build
from hilt.simulator.compilation import LOG
from hilt.simulator.device import DeviceStatus, MemoryModel, SimulatedDevice
from hilt.simulator.driver import execute
from hilt.simulator.pgo_workload import pgo_workload, run
from hilt.vta.accelerator import Accelerator, IsaRevision, load_parameters
from hilt.vta.isa import AluOpcode, MemoryType, Opcode, decode

PYNQ = Accelerator(load_parameters("pynq"), IsaRevision.A)
SMALLEST = Accelerator(
    replace(
        load_parameters("pynq"), log_uop_buff_size=4, log_inp_buff_size=5, log_wgt_buff_size=9, log_acc_buff_size=7
    ),
    IsaRevision.A,
)
ACCELERATORS = {
    "pynq": PYNQ,
    "4x8, 128-bit bus": Accelerator(load_parameters("pynq_batched"), IsaRevision.B, bus_bits=128),
    "zcu102": Accelerator(load_parameters("zcu102"), IsaRevision.WIDE, bus_bits=128),
    "two elements a buffer": SMALLEST,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ACCELERATORS)
def test_every_accelerator_can_run_it(name: str) -> None:
    accelerator = ACCELERATORS[name]
    base, image, instructions = pgo_workload(accelerator)
    with SimulatedDevice(build(accelerator, "golden"), MemoryModel(base, len(image))) as device:
        device.write_memory(base, image)
        execution = execute(device, base, instructions, 1_000_000)
        written = device.memory != image
    assert execution.status is DeviceStatus.DONE, execution
    assert written.any()


def test_it_has_all_that_a_convolution_has() -> None:
    _, image, count = pgo_workload(PYNQ)
    words = image[: count * PYNQ.instruction_bytes].view(np.uint64).reshape(count, -1)
    records = decode(words, PYNQ)
    assert set(records["opcode"]) == set(Opcode)
    loads = records[records["opcode"] == Opcode.LOAD]
    assert set(loads["memory_type"]) == {MemoryType.UOP, MemoryType.WGT, MemoryType.INP, MemoryType.ACC}
    assert loads["y_pad_0"].any()
    assert set(records[records["opcode"] == Opcode.ALU]["alu_opcode"]) == set(AluOpcode) - {AluOpcode.MUL}


@pytest.mark.rtl
def test_the_rtl_is_compiled_from_its_profile_and_profiles_no_more() -> None:
    library = build(PYNQ, "rtl")
    log = (library.parent / LOG).read_text()
    assert "rehearsed " in log
    assert "-fprofile-use" in log
    assert "-include " in log and "verilated.cpp" not in log  # the header and the runtime of all models
    assert "profile count data" not in log  # g++ found the counts of each file that it compiled by them
    symbols = subprocess.run(["nm", "-D", str(library)], capture_output=True, text=True, check=True).stdout
    assert "vta_create" in symbols
    assert "gcov" not in symbols
    assert run(library) > 50_000


@pytest.mark.parametrize("name", ACCELERATORS)
def test_it_is_as_it_was(name: str, snapshot: SnapshotAssertion) -> None:
    """Models of one accelerator that were built at different times are compiled from the same profile."""
    base, image, count = pgo_workload(ACCELERATORS[name])
    words = [f"at {base:#x}", f"{count} instructions", f"{len(image)} bytes", hashlib.sha256(image).hexdigest()[:16]]
    assert ", ".join(words) == snapshot
