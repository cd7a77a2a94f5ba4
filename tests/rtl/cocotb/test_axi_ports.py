"""The accelerator's AXI ports against models that are not ours (cocotbext-axi), every channel pausing at random.

cocotbext-axi's slaves check that bursts stay within 4 KiB and that the last beat is marked; axi_rules.sv the rest.
"""

from __future__ import annotations

import json

import pytest
from find_libpython import find_libpython

from hilt.simulator.build import build
from tests.rtl.cocotb.checks import bench_accelerator, second_accelerator
from tests.rtl.cocotb.simulation import Simulation

INSTRUCTIONS = 40


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    if find_libpython() is None:
        pytest.skip("cocotb needs Python as a shared library (Debian: apt install libpython3-dev)")
    for accelerator in (bench_accelerator(), second_accelerator()):
        build(accelerator, "golden")
    return Simulation()


def run(simulation: Simulation, check: str, **settings: object) -> None:
    print(check, settings)
    simulation.run(check, HILT_CHECK=json.dumps(settings))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_programs_leave_golden_s_memory(simulation: Simulation, seed: int) -> None:
    run(simulation, "random_programs", seed=seed, instructions=INSTRUCTIONS)


def test_a_convolution_is_right(simulation: Simulation) -> None:
    run(simulation, "convolution", seed=11)


@pytest.mark.parametrize(
    ("port", "response"),
    [("fetch", "DECERR"), ("load", "SLVERR"), ("load", "DECERR"), ("compute", "SLVERR"), ("store", "DECERR")],
)
def test_a_bus_error_ends_the_run_and_is_told(simulation: Simulation, port: str, response: str) -> None:
    run(simulation, "bus_error", seed=21 + len(port), port=port, response=response)


def test_a_soft_reset_in_mid_transfer(simulation: Simulation) -> None:
    run(simulation, "soft_reset", seed=31)


def test_registers_under_pauses(simulation: Simulation) -> None:
    run(simulation, "registers", seed=41)


def test_the_rules_see_a_broken_master(simulation: Simulation) -> None:
    run(simulation, "broken_masters_are_noticed", seed=51)


def test_two_accelerators_of_other_parameters_run_at_once(simulation: Simulation) -> None:
    run(simulation, "two_at_once", seed=61, instructions=INSTRUCTIONS)
