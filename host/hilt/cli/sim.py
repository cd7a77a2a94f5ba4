"""`hilt sim`: a program made elsewhere, on the RTL or the golden model."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hilt.atomic_write import UnwritableFileError
from hilt.cli.files import check_folder, replaceable
from hilt.cli.formatting import print_json
from hilt.cli.prose import say_text
from hilt.cli.work import CommandWork
from hilt.simulator.build import Form, build, quick_build
from hilt.simulator.compilation import BuildError
from hilt.simulator.device import DeviceStatus, MemoryModel, SimulatorError
from hilt.simulator.driver import Execution
from hilt.simulator.image_run import Dump, Image, ImageError, memory_for, read_image, run_images
from hilt.simulator.toolchain import MissingToolError
from hilt.vta.accelerator import (
    Accelerator,
    FieldOverflowError,
    Hazards,
    IsaRevision,
    ParameterError,
    load_parameters,
)


class Device(StrEnum):
    RTL = "rtl"
    GOLDEN = "golden"


class HazardMode(StrEnum):
    INTERLOCK = "interlock"
    NONE = "none"


_COMPILING = {
    Device.RTL: "compiling the RTL, once: a minute or two",
    Device.GOLDEN: "compiling the golden model, once",
}
_HAZARDS: dict[HazardMode, Hazards] = {HazardMode.INTERLOCK: "interlock", HazardMode.NONE: "none"}
_EXIT = {DeviceStatus.DONE: 0, DeviceStatus.RUNNING: 1, DeviceStatus.FAULT: 3}
_BAD_INPUT, _NO_MODEL = 2, 3


Params = Annotated[str, typer.Option(help="VTA parameters: pynq, zcu102, ..., or a TVM parameter file (.json).")]
Images = Annotated[list[str], typer.Option(metavar="FILE@ADDR", help="File to place at a byte address.")]
Insns = Annotated[str, typer.Option(metavar="ADDR:COUNT", help="Byte address and number of instructions.")]
Model = Annotated[Device, typer.Option(help="The Verilated RTL, or the untimed golden model.")]
Isa = Annotated[IsaRevision | None, typer.Option(help="ISA revision; A where it fits, else wide.")]
Dumps = Annotated[
    list[str] | None, typer.Option(metavar="ADDR:BYTES:FILE", help="Memory to write to a file after the run.")
]
MaxCycles = Annotated[int, typer.Option(min=1, help="Where to stop a program that does not finish.")]
Bus = Annotated[int, typer.Option(help="Width of the memory bus in bits.")]
Latency = Annotated[int, typer.Option(min=0, max=1 << 20, help="Read latency of the memory in cycles.")]
HazardChoice = Annotated[
    HazardMode, typer.Option(help="Accumulator updates too close: wait, or lose a sum as HLS bitstreams do.")
]
Base = Annotated[str, typer.Option(help="First byte address of the memory; chosen from images and dumps.")]
MemoryBytes = Annotated[str, typer.Option(help="Bytes of memory; chosen from images and dumps.")]
WavesFile = Annotated[
    Path | None, typer.Option(metavar="FILE.fst", help="Write every signal of the RTL as a waveform (slow).")
]


def sim(
    params: Params,
    image: Images,
    insns: Insns,
    device: Model = Device.RTL,
    isa: Isa = None,
    dump: Dumps = None,
    max_cycles: MaxCycles = 100_000_000,
    bus: Bus = 64,
    latency: Latency = 32,
    hazards: HazardChoice = HazardMode.INTERLOCK,
    base: Base = "",
    memory: MemoryBytes = "",
    waves: WavesFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run instructions on a simulated VTA: place files in memory, run, write pieces of memory to files.

    Addresses and sizes are in bytes, decimal or 0x.... Every dram_base counts from address 0.

    Exit code: 0 done, 1 still running at --max-cycles, 2 bad input, 3 a fault, or a model that could not be built.
    """
    try:
        accelerator = Accelerator.for_parameters(load_parameters(params), isa, bus_bits=bus, hazards=_HAZARDS[hazards])
        images = [_image(text) for text in image]
        dumps = [_dump(text) for text in dump or ()]
        place = _numbers("--insns", insns, "ADDR:COUNT")
        start, size = memory_for(images, dumps, _given("--base", base), _given("--memory", memory))
        model = MemoryModel(start, size, read_latency=latency)
        if waves is not None:
            _check_waves(waves, device)
        with CommandWork(_COMPILING[device]) as work:
            form: Form = device.value
            library = build(accelerator, form, "trace") if waves is not None else quick_build(accelerator, form)
            work.begin(f"running {place[1]:,} instructions")
            execution = run_images(library, accelerator, images, place, dumps, model, max_cycles, waves)
    except (ImageError, ParameterError, FieldOverflowError, SimulatorError, UnwritableFileError) as error:
        _fail(_BAD_INPUT, error)
    except (BuildError, MissingToolError) as error:
        _fail(_NO_MODEL, error)
    if as_json:
        print_json(_as_json(device, accelerator, execution), "sim")
    else:
        typer.echo(_as_text(device, execution))
    raise typer.Exit(_EXIT[execution.status])


def _given(option: str, text: str) -> int | None:
    return _number(option, text) if text else None


def _check_waves(path: Path, device: Device) -> None:
    if device is not Device.RTL:
        raise ImageError(f"--waves is of the RTL's signals; the {device} model has none")
    check_folder(path)


def _fail(code: int, error: Exception) -> None:
    say_text(f"hilt sim: {error}", err=True)
    raise typer.Exit(code)


def _number(name: str, text: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        raise ImageError(f"{name}: {text!r} is not a number (decimal or 0x...)") from None
    if value < 0:
        raise ImageError(f"{name}: {text} is negative")
    return value


def _numbers(name: str, text: str, form: str) -> tuple[int, int]:
    first, colon, second = text.partition(":")
    if not colon:
        raise ImageError(f"{name} {text!r} is not {form}")
    return _number(name, first), _number(name, second)


def _image(text: str) -> Image:
    file, at, address = text.rpartition("@")
    if not at or not file:
        raise ImageError(f"--image {text!r} is not FILE@ADDR")
    return read_image(Path(file), _number("--image", address))


def _dump(text: str) -> Dump:
    address, _, rest = text.partition(":")
    size, _, file = rest.partition(":")
    if not file:
        raise ImageError(f"--dump {text!r} is not ADDR:BYTES:FILE")
    return Dump(_number("--dump", address), _number("--dump", size), replaceable(Path(file)))


def _as_json(device: Device, accelerator: Accelerator, execution: Execution) -> dict[str, Any]:
    """`cycles` and the stages' busy, starved and stalled are times only where `timed`.

    The golden model counts instructions and micro-ops.
    """
    fault = execution.fault
    return {
        "status": execution.status.name.lower(),
        "cycles": execution.cycles,
        "timed": device is Device.RTL,
        "fault": {"code": int(fault.code), "name": fault.code.name, "address": fault.address} if fault else None,
        "device": device.value,
        "parameters": accelerator.parameters.name,
        "isa": str(accelerator.isa),
        "counters": asdict(execution.counters),
    }


def _as_text(device: Device, execution: Execution) -> str:
    untimed = ", each an instruction or a micro-op: the golden model has no time" if device is Device.GOLDEN else ""
    status = {
        DeviceStatus.DONE: "done",
        DeviceStatus.RUNNING: "still running at the limit",
        DeviceStatus.FAULT: f"fault: {execution.fault}",
    }[execution.status]
    return f"{status}\n{execution.cycles} cycles{untimed}"
