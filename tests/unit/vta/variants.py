"""The accelerators that the tests of hilt.vta go over."""

from hilt.vta.accelerator import Accelerator, IsaRevision, load_parameters

PYNQ_A = Accelerator.for_parameters(load_parameters("pynq"))
PYNQ_B = Accelerator.for_parameters(load_parameters("pynq"), IsaRevision.B)
BATCHED = Accelerator.for_parameters(load_parameters("pynq_batched"))
ZCU102 = Accelerator.for_parameters(load_parameters("zcu102"))
ALL = (PYNQ_A, PYNQ_B, BATCHED, ZCU102)
