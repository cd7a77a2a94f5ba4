"""The computers that QEMU emulates for virtual boards."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from hilt.virtual.errors import VirtualBoardError

_BINFMT = Path("/proc/sys/fs/binfmt_misc")


@dataclass(frozen=True)
class Computer:
    """A processor, with Debian's and QEMU's names of its parts."""

    architecture: str
    """Debian's name."""
    emulator: str
    """QEMU's program for the whole computer."""
    processor: str
    memory_mib: int
    interpreter: str
    """The name of QEMU's interpreter of single programs, as binfmt_misc lists it."""
    kernel: str
    """Debian's kernel package."""
    kernel_options: str
    compiler: str
    compiler_flags: tuple[str, ...]
    wheel_platforms: tuple[str, ...]
    """Platforms of PyPI's wheels that run on it."""

    @property
    def packages(self) -> dict[str, str]:
        """Return the Debian package of every program that this machine needs."""
        return {
            self.emulator: "qemu-system-arm",
            "mmdebstrap": "mmdebstrap",
            "arch-test": "arch-test",
            f"{self.interpreter}-static": "qemu-user-static",
            self.compiler: f"g++-{self.compiler.removesuffix('-g++').replace('_', '-')}",
            "mke2fs": "e2fsprogs",
        }

    def require_packages(self) -> None:
        """Raise VirtualBoardError, with apt's command, if a program is missing that emulates or builds."""
        missing = [package for program, package in self.packages.items() if not _found(program)]
        if missing:
            raise VirtualBoardError(
                f"an emulated {self.architecture} board needs programs that are not installed; "
                f"run `sudo apt-get install {' '.join(missing)}`"
            )

    def require_interpreter(self) -> None:
        """Raise VirtualBoardError if the kernel does not run programs of this processor through QEMU."""
        if not (_BINFMT / self.interpreter).exists():
            mount = "" if (_BINFMT / "status").exists() else f"mount -t binfmt_misc binfmt_misc {_BINFMT} && "
            raise VirtualBoardError(
                f"this machine does not run {self.architecture} programs by {self.interpreter}; "
                f"run `sudo sh -c '{mount}/usr/lib/systemd/systemd-binfmt'`"
            )


def _found(program: str) -> bool:
    path = os.environ.get("PATH", os.defpath)
    return shutil.which(program, path=f"{path}:/usr/sbin:/sbin") is not None


ARMHF = Computer(
    architecture="armhf",
    emulator="qemu-system-arm",
    processor="cortex-a15",
    memory_mib=512,
    interpreter="qemu-arm",
    kernel="linux-image-armmp",
    kernel_options="cma=128M",
    compiler="arm-linux-gnueabihf-g++",
    compiler_flags=("-mcpu=cortex-a9", "-mfpu=neon"),
    wheel_platforms=("linux_armv7l", "manylinux2014_armv7l", "manylinux_2_17_armv7l"),
)

ARM64 = Computer(
    architecture="arm64",
    emulator="qemu-system-aarch64",
    processor="cortex-a53",
    memory_mib=1024,
    interpreter="qemu-aarch64",
    kernel="linux-image-arm64",
    kernel_options="cma=256M",
    compiler="aarch64-linux-gnu-g++",
    compiler_flags=("-mcpu=cortex-a53",),
    wheel_platforms=("linux_aarch64", "manylinux2014_aarch64", "manylinux_2_17_aarch64"),
)

COMPUTERS = {computer.architecture: computer for computer in (ARMHF, ARM64)}
