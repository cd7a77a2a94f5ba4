"""The SD-card image of an emulated computer: Debian with OpenSSH, systemd, sudo, numpy and pynq.

`cache()/linux/<architecture>-<key>/` holds `card.img` (ext4), `vmlinuz` and `initrd.img`. `key` covers this file, the
files of the image and the computer. Debian comes from the mirror that this machine's apt uses, else mmdebstrap's own.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import io
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hilt import paths
from hilt.virtual.board_environment import REQUIREMENT
from hilt.virtual.directory import USER
from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.linux.computer import Computer

Report = Callable[[str], None]

CARD, KERNEL, INITRD = "card.img", "vmlinuz", "initrd.img"
_RELEASE, _PYTHON = "bookworm", "3.11"
_CARD_SIZE = "2G"
_PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "udev", "kmod", "initramfs-tools", "e2fsprogs", "iproute2", "procps"),
    *("openssh-server", "sudo", "libmagic1"),
    *("python3", "python3-numpy", "python3-cffi", "python3-psutil", "python3-setuptools"),
)
_WHEELS = (
    *("grpcio==1.64.0", "protobuf<6", "pydantic>=2", "jsonschema>=3.2"),
    *("ipython<9", "nest_asyncio", "tqdm", "python-magic", "pycparser<3"),
)
"""pynq's dependencies on PyPI, but for those that Debian has and PyPI has not for these processors."""
_PURE = (REQUIREMENT, "pynqmetadata==0.2.0", "pynqutils==0.1.3")
_SITE = f"usr/local/lib/python{_PYTHON}/dist-packages"
_SECONDS = 3 * 3600.0


@dataclass(frozen=True)
class CardImage:
    """The files that QEMU starts from. Nothing writes to them."""

    key: str
    card: Path
    kernel: Path
    initrd: Path


def built_image(computer: Computer) -> CardImage | None:
    """Return the image if it is in the cache."""
    image = _image(computer)
    return image if image.card.is_file() else None


def ensure_image(computer: Computer, report: Report) -> CardImage:
    """Return the image, and build it if it is not in the cache.

    Args:
        computer: The computer that it is for.
        report: Called with a short text before each step.

    Raises:
        VirtualBoardError: A program is missing, the kernel does not run the computer's programs, or a step failed.
    """
    computer.require_packages()
    image = _image(computer)
    folder = image.card.parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not image.card.is_file():
            computer.require_interpreter()
            began = time.monotonic()
            with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as work:
                _build(computer, Path(work), folder.with_suffix(".log"), report)
                (Path(work) / "made").rename(folder)
            report(f"the {computer.architecture} image took {time.monotonic() - began:.0f} s")
    return image


def _image(computer: Computer) -> CardImage:
    digest = hashlib.sha256(repr(computer).encode())
    digest.update(Path(__file__).read_bytes())
    for path in sorted((Path(__file__).parent / "files").iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    key = digest.hexdigest()[:16]
    folder = paths.cache() / "linux" / f"{computer.architecture}-{key}"
    return CardImage(key, folder / CARD, folder / KERNEL, folder / INITRD)


def _build(computer: Computer, work: Path, log: Path, report: Report) -> None:
    (work / "made").mkdir()
    report(f"fetching pynq's packages for {computer.architecture}")
    site = work / "site"
    _run(_pip("wheel", "--no-deps", "--wheel-dir", str(work / "wheels"), *_PURE), log, "pip wheel")
    platforms = [word for platform in computer.wheel_platforms for word in ("--platform", platform)]
    target = ["--target", str(site), "--python-version", _PYTHON, "--implementation", "cp", "--only-binary", ":all:"]
    abis = ["--abi", "cp311", "--abi", "abi3", "--abi", "none"]
    quiet = ["--no-compile", "--no-warn-conflicts"]
    _run(_pip("install", *quiet, *target, *platforms, *abis, *_WHEELS), log, "pip install")
    for wheel in sorted((work / "wheels").glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)  # noqa: S202  a wheel that pip has just built
    shutil.rmtree(site / "bin", ignore_errors=True)
    _write_overlay(work / "overlay.tar", site)
    report(f"installing Debian {_RELEASE} for {computer.architecture} (ten to thirty minutes)")
    environment = {
        "HILT_IMAGE": str(work / "made"),
        "HILT_USER": USER,
        "HILT_CARD_SIZE": _CARD_SIZE,
        "TMPDIR": str(work),
    }
    _run(_mmdebstrap(computer, work), log, "mmdebstrap", environment)


def _pip(*words: str) -> list[str]:
    if importlib.util.find_spec("pip") is None:
        raise VirtualBoardError(f"{sys.executable} has no pip, which fetches the emulated board's packages; install it")
    return [sys.executable, "-m", "pip", words[0], "--quiet", "--disable-pip-version-check", *words[1:]]


def _mmdebstrap(computer: Computer, work: Path) -> list[str]:
    overlay = shlex.quote(str(work / "overlay.tar"))
    finish = (Path(__file__).parent / "files" / "finish.sh").read_text(encoding="utf-8")
    excluded = ("doc", "locale", "man", "info")
    # As root mmdebstrap mounts /dev/shm and others of this machine below the new root. Those mounts end with their
    # namespace, so that removing a root that was left behind removes nothing of this machine.
    apart = ["unshare", "--mount"] if os.geteuid() == 0 else []
    return [
        *(*apart, "mmdebstrap", "--variant=minbase", f"--architectures={computer.architecture}", "--format=null"),
        *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in excluded),
        f"--include={','.join((*_PACKAGES, computer.kernel))}",
        # Before the kernel's package makes its initial RAM disk of every module that there is.
        f"--essential-hook=tar-in {overlay} /",
        f"--customize-hook={finish}",
        *(_RELEASE, "/dev/null", *_mirror()),
    ]


def _mirror() -> list[str]:
    """Return this machine's Debian mirror as a line of sources.list; nothing where it has none."""
    words = ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(RELEASE)|$(SITE)"]
    listed = subprocess.run(words, capture_output=True, text=True, check=False).stdout.splitlines()
    for line in sorted(set(listed)):
        origin, release, site = line.split("|")
        if origin == "Debian" and "-" not in release:
            return [f"deb {site} {_RELEASE} main"]
    return []


def _write_overlay(path: Path, site: Path) -> None:
    """Write the tar of the files that are not of a Debian package: root's, with fixed modes."""
    files = Path(__file__).parent / "files"
    with tarfile.open(path, "w") as archive:
        for name in sorted(path.name for path in files.iterdir()):
            target = _FILES.get(name)
            if target is not None:
                add_file(archive, target[0], (files / name).read_bytes(), target[1])
        for name, link in _LINKS.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, link
            archive.addfile(entry)
        for path in sorted(site.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                add_file(archive, f"{_SITE}/{path.relative_to(site)}", path.read_bytes(), 0o644)


def add_file(archive: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    """Add a file of root's, with no time."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


_FILES = {
    "fstab": ("etc/fstab", 0o644),
    "environment": ("etc/environment", 0o644),
    "sudoers": ("etc/sudoers.d/hilt", 0o440),
    "sshd.conf": ("etc/ssh/sshd_config.d/hilt.conf", 0o644),
    "journald.conf": ("etc/systemd/journald.conf.d/hilt.conf", 0o644),
    "initramfs.conf": ("etc/initramfs-tools/conf.d/hilt", 0o644),
    "modules": ("usr/share/initramfs-tools/modules.d/hilt", 0o644),
    "board-start.sh": ("usr/local/sbin/board-start", 0o755),
    "board-start.service": ("etc/systemd/system/board-start.service", 0o644),
}
_WANTED = "etc/systemd/system/multi-user.target.wants"
_MASKED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer"),
    *("e2scrub_reap.service", "systemd-logind.service", "getty.target", "systemd-update-utmp.service"),
    *("systemd-journal-flush.service", "systemd-pstore.service", "systemd-binfmt.service", "remote-fs.target"),
    *("systemd-udevd.service", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket"),
    *("systemd-udev-trigger.service", "systemd-modules-load.service", "dev-hugepages.mount", "dev-mqueue.mount"),
    *("sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-fs-fuse-connections.mount"),
)
"""Units that no board needs for hilt. Every one costs an emulated processor a second, udev ten."""
_LINKS = {
    f"{_WANTED}/board-start.service": "/etc/systemd/system/board-start.service",
    "etc/systemd/system/default.target": "/lib/systemd/system/multi-user.target",
    **{f"etc/systemd/system/{unit}": "/dev/null" for unit in _MASKED},
}


def _run(command: list[str], log: Path, step: str, environment: dict[str, str] | None = None) -> None:
    try:
        with log.open("ab") as output:
            status = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin",
                    **(environment or {}),
                },
                timeout=_SECONDS,
                check=False,
            ).returncode
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VirtualBoardError(f"the emulated board's image cannot be built: {step}: {error}; see {log}") from None
    if status:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [f"exit code {status}"]
        raise VirtualBoardError(f"the emulated board's image cannot be built: {step}: {lines[-1]}; see {log}")
