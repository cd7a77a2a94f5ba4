"""An inspection of a board before anything is loaded, for `hilt boards check`. It reads and changes nothing."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any, Dict, Optional

from .extension import virtual_board

_XRT = "XILINX_XRT"
_FPGA_MANAGER = Path("/sys/class/fpga_manager/fpga0/state")


def inspect(root: Path) -> Dict[str, Any]:
    """Return JSON-able facts; a fact that cannot be had is None. `root`: the agent's directory."""
    memory = _memory()
    disk = os.statvfs(str(root))
    facts: Dict[str, Any] = {
        "python": platform.python_version(),
        "python_path": sys.executable,
        "root": os.geteuid() == 0,
        "virtual": virtual_board() is not None,
        "image": _image(),
        "machine": platform.machine(),
        "xrt": os.environ.get(_XRT),
        "fpga_manager": _text(_FPGA_MANAGER),
        "memory_free": memory.get("MemAvailable"),
        "cma_total": memory.get("CmaTotal"),
        "cma_free": memory.get("CmaFree"),
        "disk_free": disk.f_bavail * disk.f_frsize,
        "temperature": temperature(),
    }
    facts.update(_packages())
    return facts


_SENSORS = Path("/sys/bus/iio/devices")


def temperature(sensors: Path = _SENSORS) -> Optional[float]:
    """Return the chip's temperature in degrees Celsius.

    The source is the kernel's sensor (XADC of a Zynq-7000, AMS of an UltraScale+), if there is one.
    """
    if virtual_board():
        return None  # that of the machine it is simulated on says nothing
    for device in sorted(sensors.glob("iio:device*")):
        for raw in sorted(device.glob("in_temp*_raw")):
            stem = raw.name[: -len("_raw")]
            value, scale = _text(raw), _text(device / (stem + "_scale"))
            if value is not None and scale is not None:
                offset = _text(device / (stem + "_offset")) or "0"
                return (float(value) + float(offset)) * float(scale) / 1000.0
    return None


def complete_environment() -> None:
    """Set the variables that a login shell of a PYNQ image sets and `sudo`, systemd and SSH commands do not.

    Without XILINX_XRT, pynq 2.7 and newer find no device at all (github.com/Xilinx/PYNQ/issues/1651). A virtual
    board has its own device and no other, whatever the shell that switched it on has set.
    """
    if virtual_board():
        for name in (_XRT, "PYNQ_REMOTE_DEVICES"):
            os.environ.pop(name, None)
    elif _XRT not in os.environ and _FPGA_MANAGER.exists():
        os.environ[_XRT] = "/usr"


def _packages() -> Dict[str, Any]:
    """Return versions of the packages, imported in the same way as by the worker, since that import can fail."""
    found: Dict[str, Any] = {"numpy": None, "pynq": None, "device": None, "import_error": None}
    try:
        import numpy

        found["numpy"] = numpy.__version__
        virtual = virtual_board()
        if virtual:
            virtual.register_device()
        import pynq

        found["pynq"] = str(getattr(pynq, "__version__", "unknown"))
        device = pynq.Device.active_device
        found["device"] = str(getattr(device, "name", device.tag))
    except Exception as error:  # whatever an image's pynq raises while it is imported
        found["import_error"] = "{}: {}".format(type(error).__name__, error)
    return found


def _memory() -> Dict[str, int]:
    """Return the bytes by the names of /proc/meminfo."""
    lines = (_text(Path("/proc/meminfo")) or "").splitlines()
    pairs = (line.split() for line in lines)
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in pairs if len(words) == 3}


def _image() -> Optional[str]:
    lines = (_text(Path("/etc/os-release")) or "").splitlines()
    names = [line.split("=", 1)[1].strip('"') for line in lines if line.startswith("PRETTY_NAME=")]
    revision = _text(Path("/home/xilinx/REVISION"))
    words = names[:1] + ([revision.splitlines()[0]] if revision else [])
    return ", ".join(words) or None


def _text(path: Path) -> Optional[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
