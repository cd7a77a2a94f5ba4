"""The builds of the accelerator that the tests of its models go over."""

from __future__ import annotations

from dataclasses import replace

from hilt.vta.accelerator import Accelerator, IsaRevision, load_parameters
from hilt.vta.parameters import VTAParameters

VARIANTS = {
    "pynq A": Accelerator(load_parameters("pynq"), IsaRevision.A),
    "pynq A, 2 read ports": Accelerator(load_parameters("pynq"), IsaRevision.A, read_ports=2),
    "pynq A, 4 read ports": Accelerator(load_parameters("pynq"), IsaRevision.A, read_ports=4),
    "pynq B": Accelerator(load_parameters("pynq"), IsaRevision.B),
    "ultra96 A, 128-bit bus": Accelerator(load_parameters("ultra96"), IsaRevision.A, bus_bits=128),
    "4x8 A": Accelerator(load_parameters("pynq_batched"), IsaRevision.A, bands=True),
    "4x8 B, 128-bit bus": Accelerator(load_parameters("pynq_batched"), IsaRevision.B, bus_bits=128, bands=True),
    "shallow inputs B": Accelerator(
        replace(load_parameters("pynq"), log_inp_buff_size=13, log_wgt_buff_size=17), IsaRevision.B, table=False
    ),
    "zcu102 wide, 128-bit bus": Accelerator(load_parameters("zcu102"), IsaRevision.WIDE, bus_bits=128),
}

_AT_NIGHT = ("4x8 A", "ultra96 A, 128-bit bus", "pynq A, 2 read ports", "shallow inputs B")
IN_EACH_RUN = [name for name in VARIANTS if name not in _AT_NIGHT]
"""The builds of `make test`. `make nightly` runs all."""

# Blocks of more than 16. Verilator needs a minute for each: `make test` builds the first, `make nightly` all.
WIDE_VARIANTS = {
    "1x32 A, 128-bit bus": Accelerator(load_parameters("block32"), IsaRevision.A, bus_bits=128),
    "1x32 A, 128-bit bus, 2 read ports": Accelerator(
        load_parameters("block32"), IsaRevision.A, bus_bits=128, read_ports=2
    ),
    "2x32 A, 128-bit bus, 4 read ports": Accelerator(
        load_parameters("batch2_block32"), IsaRevision.A, bus_bits=128, read_ports=4, bands=True
    ),
    "2x32 B, 128-bit bus": Accelerator(
        VTAParameters.from_name("2x32_i8w8a32_15_15_18_17"), IsaRevision.B, bus_bits=128, bands=True
    ),
    "2x16 wide": Accelerator(load_parameters("batch2"), IsaRevision.WIDE, bands=True),
    "1x64 B, 128-bit bus": Accelerator(
        VTAParameters.from_name("1x64_i8w8a32_15_15_19_17"), IsaRevision.B, bus_bits=128
    ),
}
