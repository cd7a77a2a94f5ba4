"""The builds of the accelerator that the tests of its models go over."""

from __future__ import annotations

from dataclasses import replace

from hilt.vta.accelerator import Accelerator, IsaRevision, load_parameters

VARIANTS = {
    "pynq A": Accelerator(load_parameters("pynq"), IsaRevision.A),
    "pynq B": Accelerator(load_parameters("pynq"), IsaRevision.B),
    "ultra96 A, 128-bit bus": Accelerator(load_parameters("ultra96"), IsaRevision.A, bus_bits=128),
    "4x8 A": Accelerator(load_parameters("pynq_batched"), IsaRevision.A),
    "4x8 B, 128-bit bus": Accelerator(load_parameters("pynq_batched"), IsaRevision.B, bus_bits=128),
    "shallow inputs B": Accelerator(
        replace(load_parameters("pynq"), log_inp_buff_size=13, log_wgt_buff_size=17), IsaRevision.B
    ),
    "zcu102 wide, 128-bit bus": Accelerator(load_parameters("zcu102"), IsaRevision.WIDE, bus_bits=128),
}
