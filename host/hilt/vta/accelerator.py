"""One VTA as programs, simulators and boards see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hilt.vta.fields import FieldOverflowError as FieldOverflowError
from hilt.vta.fields import Formats, formats
from hilt.vta.fields import IsaRevision as IsaRevision
from hilt.vta.parameters import ParameterError as ParameterError
from hilt.vta.parameters import VTAParameters as VTAParameters
from hilt.vta.parameters import load_parameters as load_parameters
from hilt_runtime import isa as isa_of_the_board
from hilt_runtime.isa import TABLE_BYTES as TABLE_BYTES

Hazards = Literal["interlock", "none"]
"""The fate of two updates of one accumulator element closer than the pipeline: the second waits, or a sum is lost
(HARDWARE.md section 3)."""

READ_PORTS = (1, 2, 4)
"""The ports of the memory that weights can come over."""


def bus_text(bits: int, read_ports: int) -> str:
    """Return a memory bus as text: `128 bit`, or `2 x 128 bit` over two read ports."""
    return f"{bits} bit" if read_ports == 1 else f"{read_ports} x {bits} bit"


@dataclass(frozen=True)
class Accelerator:
    """Parameters, ISA revision, memory bus and the rest that a build of the hardware fixes.

    Raises FieldOverflowError (a ValueError), naming the field, where ISA A or B cannot hold the parameters, and
    ParameterError for other values that no VTA has.
    """

    parameters: VTAParameters
    isa: IsaRevision
    bus_bits: int = 64
    hazards: Hazards = "interlock"
    instruction_queue_depth: int = 512
    clock_hz: int = 100_000_000
    table: bool = True
    """Whether STOREs can go by way of a table of 256 bytes, as hilt's VTA has it; public bitstreams have none. Programs
    without such STOREs take the same cycles with and without it."""
    read_ports: int = 1
    """Ports of the memory: with 2 or 4, each brings its part of every weight element, and the first the inputs. All
    else shares the second; of 4, store has it, compute the third and fetch the fourth. Programs are the same."""
    window: bool = True
    """Whether GEMMs can read inputs of earlier iterations, as hilt's VTA has it for blocks of 16 or more. Programs
    without such GEMMs take the same cycles with and without it."""
    bands: bool = False
    """Whether LOADs of INP shift batch lanes, so that these can hold bands of one image. Programs without such LOADs
    take the same cycles with and without it."""

    def __post_init__(self) -> None:
        if self.isa not in tuple(IsaRevision):
            raise ParameterError(f"the ISA revision {self.isa!r}; it is one of {', '.join(IsaRevision)}")
        object.__setattr__(self, "isa", IsaRevision(self.isa))  # a plain "B" is revision B
        if self.bus_bits not in (64, 128):
            raise ParameterError(f"a memory bus of {self.bus_bits} bits; hilt's VTA takes 64 or 128")
        if self.hazards not in ("interlock", "none"):
            raise ParameterError(f"hazards are {self.hazards!r}; they are 'interlock' or 'none'")
        if self.instruction_queue_depth < 2:
            raise ParameterError(f"an instruction queue of {self.instruction_queue_depth}; it must hold at least 2")
        if self.bands and self.parameters.batch not in isa_of_the_board.BANDED_BATCHES:
            raise ParameterError(f"bands with {self.parameters.batch} batch lanes; hilt's VTA has them with 2 or 4")
        if self.clock_hz <= 0:
            raise ParameterError(f"a clock of {self.clock_hz} Hz; it must be positive")
        if self.read_ports not in READ_PORTS:
            raise ParameterError(f"{self.read_ports} read ports; hilt's VTA has 1, 2 or 4")
        formats(self.parameters, self.isa)

    @classmethod
    def for_parameters(
        cls,
        parameters: VTAParameters,
        isa: IsaRevision | None = None,
        *,
        bus_bits: int = 64,
        hazards: Hazards = "interlock",
        instruction_queue_depth: int = 512,
        clock_hz: int = 100_000_000,
        table: bool = True,
        read_ports: int = 1,
        window: bool = True,
        bands: bool = False,
    ) -> Accelerator:
        """The accelerator of these parameters.

        With no ISA named: revision A, which is that of the public bitstreams, where it can hold the parameters,
        else the wide one.
        """
        if isa is None:
            try:
                formats(parameters, IsaRevision.A)
                isa = IsaRevision.A
            except FieldOverflowError:
                isa = IsaRevision.WIDE
        depth = instruction_queue_depth
        return cls(parameters, isa, bus_bits, hazards, depth, clock_hz, table, read_ports, window, bands)

    @property
    def formats(self) -> Formats:
        """Return the field positions of its instructions."""
        return formats(self.parameters, self.isa)

    @property
    def macs_per_cycle(self) -> int:
        """Multiply-accumulates of one GEMM micro-op, which is issued every cycle."""
        return self.parameters.batch * self.parameters.block**2

    @property
    def bus(self) -> str:
        """The memory bus as text."""
        return bus_text(self.bus_bits, self.read_ports)

    @property
    def bytes_per_cycle(self) -> int:
        """Bytes that the memory's ports move in a cycle."""
        return self.bus_bits // 8 * self.read_ports

    @property
    def instruction_bytes(self) -> int:
        return 8 * self.formats.instruction_words

    @property
    def uop_element_bytes(self) -> int:
        """4, or 8 in the wide ISA."""
        return 8 if self.isa is IsaRevision.WIDE else 4

    @property
    def uop_depth(self) -> int:
        """Micro-ops in the micro-op buffer; its size in bytes is the parameter, so half as many in the wide ISA."""
        return (1 << self.parameters.log_uop_buff_size) // self.uop_element_bytes

    @property
    def table_elements(self) -> int:
        """Return the elements of OUT that a STORE writes to the table; of one that is larger, the first 256 bytes."""
        return max(1, TABLE_BYTES // self.parameters.out_element_bytes)

    @property
    def window_rows(self) -> int:
        """Return the rows of a window GEMM's window; 0 if the accelerator has none, or waits for no accumulator."""
        if not self.window or self.hazards == "none":
            return 0
        return isa_of_the_board.window_rows(self.parameters.block)

    def require_rtl(self) -> None:
        """The golden model and the twin have no bus and no banks, hls/rtl has.

        It collects whole beats to elements, two beats of micro-ops to a row, and accumulators in two banks of two
        rows or more.

        Raises ParameterError, naming the field, for parameters that it has not.
        """
        beat = self.bus_bits // 8
        for kind in ("inp", "wgt"):
            element = getattr(self.parameters, f"{kind}_element_bytes")
            if element < beat:
                raise ParameterError(
                    f"LOG_BATCH and LOG_BLOCK give {kind} elements of {element} bytes, less than the {beat} of a beat "
                    f"of a memory bus of {self.bus_bits} bits; take larger blocks or a narrower bus"
                )
        part = self.parameters.wgt_element_bytes // self.read_ports
        if part < beat:
            raise ParameterError(
                f"{self.read_ports} read ports: each has {part} bytes of a wgt element, less than the {beat} of a beat"
            )
        uops = 1 << self.parameters.log_uop_buff_size
        if uops < 2 * beat:
            raise ParameterError(
                f"LOG_UOP_BUFF_SIZE gives a micro-op buffer of {uops} bytes; "
                f"on a memory bus of {self.bus_bits} bits hilt's VTA has {2 * beat} or more"
            )
        if self.parameters.acc_depth < 4:
            raise ParameterError(
                f"LOG_ACC_BUFF_SIZE gives a buffer of {self.parameters.acc_depth} elements; hilt's VTA has 4 or more"
            )

    def defines(self) -> dict[str, int]:
        """Return the macros that the golden model, the twin and the simulators are compiled with (C++)."""
        return {
            **{f"VTA_{key}": value for key, value in self.parameters.to_mapping().items()},
            "VTA_ISA_REVISION": self.isa.number,
            "VTA_BUS_WIDTH": self.bus_bits,
            "VTA_HAZARD_INTERLOCK": int(self.hazards == "interlock"),
            "VTA_TABLE": int(self.table),
            "VTA_READ_PORTS": self.read_ports,
            "VTA_WINDOW": int(self.window_rows > 0),
            "VTA_BANDS": int(self.bands),
            "VTA_INSN_QUEUE_DEPTH": self.instruction_queue_depth,
        }

    def rtl_parameters(self) -> dict[str, int]:
        """Return the parameters of the module vta_top, those of hls/rtl/vta_parameters.svh."""
        return {_parameter_name(macro): value for macro, value in self.defines().items()}


def _parameter_name(macro: str) -> str:
    """Return the RTL's name of a macro: LogInpWidth for VTA_LOG_INP_WIDTH."""
    if macro == "VTA_BUS_WIDTH":
        return "BusBits"
    return "".join(word.capitalize() for word in macro.removeprefix("VTA_").split("_"))
