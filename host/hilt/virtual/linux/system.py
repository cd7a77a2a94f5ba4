"""The power of an emulated board: starts QEMU, announces its SSH server, and ends QEMU when power goes.

Its disks are an SD card, a copy of the image, and a small one with the keys and the board model. One image serves
every board, because each takes its keys from the second disk at every boot.

`python -m hilt.virtual.linux.system NAME BOOT_ID ARCHITECTURE`: power is standard input staying open, as for
hilt.virtual.system. It writes {"port": N, "pid": P} on standard output once the board's OpenSSH answers.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tarfile
from pathlib import Path

from hilt.virtual.directory import BoardDirectory
from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.linux.computer import COMPUTERS, Computer
from hilt.virtual.linux.image import CardImage, add_file, built_image
from hilt.virtual.linux.monitor import MONITOR_SOCKET, NETWORK

CONSOLE = "console.log"
_PROCESSORS = 2
_PR_SET_PDEATHSIG = 1
_ASK_SECONDS = 2.0
"""Seconds for one look at whether SSH answers: QEMU accepts the connection itself, long before the board does."""
CARD, GIVEN = "card.img", "given.tar"
_GIVEN = {"host_key": 0o600, "authorized_keys": 0o644, "board_model.json": 0o644}
_COPY_SECONDS = 600.0


def main() -> None:
    name, _, architecture = sys.argv[1:]
    directory, computer = BoardDirectory(name), COMPUTERS[architecture]
    try:
        image = built_image(computer)
        if image is None:
            build = f"python -m hilt.virtual.linux {architecture}"
            raise VirtualBoardError(f"the {architecture} image is not built: run `{build}`")
        insert_card(directory, image)
        write_given(directory)
    except VirtualBoardError as error:
        sys.exit(str(error))
    port = _port(directory)
    (directory.root / MONITOR_SOCKET).unlink(missing_ok=True)
    command = emulator_command(computer, image, port)
    qemu = subprocess.Popen(command, cwd=directory.root, stdin=subprocess.DEVNULL, stdout=sys.stderr, preexec_fn=_die)
    try:
        if _wait(qemu, port):
            sys.stdout.write(json.dumps({"port": port, "pid": qemu.pid}) + "\n")
            sys.stdout.flush()
            _hold(qemu)
    finally:
        qemu.kill()
        qemu.wait()


def emulator_command(computer: Computer, image: CardImage, port: int) -> list[str]:
    """Return QEMU's command, to be run in the board's directory. `port`: 127.0.0.1's, for the board's port 22."""
    root = "root=LABEL=board rw rootflags=errors=remount-ro,noatime"
    options = f"{root} console=ttyAMA0 net.ifnames=0 {computer.kernel_options}"
    return [
        *(computer.emulator, "-machine", "virt", "-cpu", computer.processor),
        *("-smp", str(_PROCESSORS), "-m", str(computer.memory_mib), "-display", "none", "-nodefaults"),
        *("-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", options),
        *("-drive", f"file={CARD},format=raw,if=none,id=card", "-device", "virtio-blk-device,drive=card"),
        *("-drive", f"file={GIVEN},format=raw,if=none,id=given,readonly=on"),
        *("-device", "virtio-blk-device,drive=given,serial=given"),
        # Nothing of this machine or beyond it can be reached from the board.
        *("-netdev", f"user,id=host,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"),
        *("-device", f"virtio-net-device,netdev=host,id={NETWORK}", "-device", "virtio-rng-device"),
        *("-serial", f"file:{CONSOLE}", "-qmp", f"unix:{MONITOR_SOCKET},server=on,wait=off"),
    ]


def _die() -> None:
    """End with the process that started us, however that ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _port(directory: BoardDirectory) -> int:
    """Return the port of the last boot if it is free still, else any."""
    try:
        usual = int(Path(directory.port).read_text(encoding="ascii"))
    except (OSError, ValueError):
        usual = 0
    for wanted in (usual, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", wanted))
            except OSError:
                continue
            port = int(probe.getsockname()[1])
            directory.port.write_text(f"{port}\n", encoding="ascii")
            return port
    raise AssertionError("unreachable")


def _wait(qemu: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until OpenSSH answers; return False if power is gone or QEMU ended first."""
    while not _answers(port):
        if qemu.poll() is not None or select.select([sys.stdin], [], [], 0.2)[0]:
            return False
    return True


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), _ASK_SECONDS) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _hold(qemu: subprocess.Popen[bytes]) -> None:
    """Return when power is gone, or when the board has switched itself off."""
    ended = os.pidfd_open(qemu.pid)
    try:
        while True:
            ready = select.select([sys.stdin.fileno(), ended], [], [])[0]
            if ended in ready or (sys.stdin.fileno() in ready and not os.read(sys.stdin.fileno(), 4096)):
                return
    finally:
        os.close(ended)


def insert_card(directory: BoardDirectory, image: CardImage) -> Path:
    """Return the board's card, copied from the image if there is none, or if it comes from an earlier image.

    Raises:
        VirtualBoardError: It cannot be copied.
    """
    card, key = directory.root / CARD, directory.root / "card.key"
    if card.is_file() and key.is_file() and key.read_text(encoding="ascii") == image.key:
        return card
    key.unlink(missing_ok=True)
    command = ["cp", "--reflink=auto", "--sparse=always", str(image.card), str(card)]
    copied = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_COPY_SECONDS)
    if copied.returncode:
        card.unlink(missing_ok=True)
        raise VirtualBoardError(f"the SD card of {directory.name} cannot be made: {copied.stderr.strip()}")
    card.chmod(0o600)
    key.write_text(image.key, encoding="ascii")
    return card


def write_given(directory: BoardDirectory) -> None:
    """Write the disk of the board's keys and board model: a tar, readable by this user only."""
    temporary = directory.root / f"{GIVEN}.new"
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w+b") as file, tarfile.open(fileobj=file, mode="w") as archive:
        for name, mode in _GIVEN.items():
            add_file(archive, name, (directory.root / name).read_bytes(), mode)
    temporary.replace(directory.root / GIVEN)


if __name__ == "__main__":
    main()
