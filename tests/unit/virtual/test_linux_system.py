"""The life of an emulated board, with a stand-in for QEMU: its port, its first answer, the end of its power."""

from __future__ import annotations

import io
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hilt.virtual.directory import BoardDirectory
from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.linux import system
from hilt.virtual.linux.computer import ARMHF, COMPUTERS
from hilt.virtual.linux.image import CardImage

SLEEPER = [sys.executable, "-c", "import signal; signal.pause()"]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BoardDirectory:
    monkeypatch.setenv("HILT_HOME", str(tmp_path / "home"))
    made = BoardDirectory("pynq_linux")
    made.create()
    return made


@pytest.fixture
def power(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A pipe in place of standard input; yield its end for writing."""
    read, write = os.pipe()
    with os.fdopen(read, encoding="ascii") as source, os.fdopen(write, "w", encoding="ascii") as sink:
        monkeypatch.setattr(sys, "stdin", source)
        yield sink


@pytest.fixture
def qemu() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEPER) as process:
        yield process
        process.kill()


@pytest.fixture
def listening() -> Iterator[Callable[[bytes], int]]:
    """Give a server that greets with some bytes and hangs up; return its port."""
    sockets: list[socket.socket] = []

    def listen(greeting: bytes) -> int:
        server = socket.create_server(("127.0.0.1", 0))
        sockets.append(server)

        def serve() -> None:
            try:
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.sendall(greeting)
            except OSError:
                return

        threading.Thread(target=serve, daemon=True).start()
        return int(server.getsockname()[1])

    yield listen
    for server in sockets:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def test_a_board_keeps_its_port_while_nobody_else_has_it(directory: BoardDirectory) -> None:
    first = system._port(directory)
    assert directory.port.read_text() == f"{first}\n" and first > 1024
    assert system._port(directory) == first
    with socket.create_server(("127.0.0.1", first)):
        other = system._port(directory)
        assert other != first and directory.port.read_text() == f"{other}\n"
    directory.port.write_text("no number")
    assert system._port(directory) > 1024


@pytest.mark.parametrize(
    ("greeting", "answers"), [(b"SSH-2.0-OpenSSH_9.2\r\n", True), (b"HTTP/1.1 200\r\n", False), (b"", False)]
)
def test_a_board_answers_once_openssh_greets(listening: Callable[[bytes], int], greeting: bytes, answers: bool) -> None:
    assert system._answers(listening(greeting)) == answers


def test_a_board_whose_port_accepts_and_says_nothing_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "_ASK_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert not system._answers(silent.getsockname()[1])


def test_waiting_ends_with_the_answer_with_power_or_with_the_emulator(
    monkeypatch: pytest.MonkeyPatch, power: Any, qemu: subprocess.Popen[bytes]
) -> None:
    answers = iter([False, False, True])
    monkeypatch.setattr(system, "_answers", lambda port: next(answers))
    assert system._wait(qemu, 1)
    monkeypatch.setattr(system, "_answers", lambda port: False)
    power.close()
    assert not system._wait(qemu, 1)


def test_waiting_ends_with_the_emulator(
    monkeypatch: pytest.MonkeyPatch, power: Any, qemu: subprocess.Popen[bytes]
) -> None:
    monkeypatch.setattr(system, "_answers", lambda port: False)
    qemu.kill()
    qemu.wait()
    assert not system._wait(qemu, 1)


@pytest.mark.parametrize("end", ["power", "emulator"])
def test_a_board_is_held_until_power_or_the_emulator_ends(power: Any, qemu: subprocess.Popen[bytes], end: str) -> None:
    held = threading.Thread(target=system._hold, args=(qemu,))
    held.start()
    power.write("a byte is no end of power")
    power.flush()
    held.join(0.05)
    assert held.is_alive()
    if end == "power":
        power.close()
    else:
        qemu.kill()
    held.join(20)
    assert not held.is_alive()


def test_the_emulator_has_the_card_the_keys_read_only_and_no_other_devices(tmp_path: Path) -> None:
    image = CardImage("a", tmp_path / "a.img", tmp_path / "vmlinuz", tmp_path / "initrd.img")
    command = system.emulator_command(ARMHF, image, 4321)
    options = {key: [word for before, word in itertools.pairwise(command) if before == key] for key in command}
    assert command[0] == ARMHF.emulator and "-nodefaults" in command
    assert options["-kernel"] == [str(image.kernel)] and options["-initrd"] == [str(image.initrd)]
    assert options["-drive"] == [
        "file=card.img,format=raw,if=none,id=card",
        "file=given.tar,format=raw,if=none,id=given,readonly=on",
    ]
    assert [word.partition(",")[0] for word in options["-device"]] == [
        *["virtio-blk-device"] * 2,
        *("virtio-net-device", "virtio-rng-device"),
    ]
    assert options["-smp"] == ["2"], "as the Zynq-7000 has"
    assert options["-serial"] == ["file:console.log"] and options["-qmp"] == ["unix:monitor.sock,server=on,wait=off"]
    assert options["-append"][0].startswith("root=LABEL=board rw rootflags=errors=remount-ro,noatime console=ttyAMA0")


@pytest.mark.parametrize("known", [True, False])
def test_a_card_that_cannot_be_copied_leaves_none(tmp_path: Path, directory: BoardDirectory, known: bool) -> None:
    image = CardImage("a", tmp_path / "a.img", tmp_path, tmp_path)
    image.card.write_bytes(b"image")
    card = system.insert_card(directory, image)
    card.write_bytes(b"used")
    key = directory.root / "card.key"
    assert key.read_text() == "a"
    if not known:
        key.unlink()
        assert system.insert_card(directory, image).read_bytes() == b"image", "a card of unknown image is made again"
    with pytest.raises(VirtualBoardError, match="SD card of pynq_linux cannot be made: .*gone"):
        system.insert_card(directory, replace(image, key="b", card=tmp_path / "gone.img"))
    assert not card.exists() and not key.exists()


def played_main(
    monkeypatch: pytest.MonkeyPatch, image: CardImage | None, command: list[str], answers: bool
) -> tuple[list[subprocess.Popen[bytes]], io.StringIO]:
    """Prepare `main` with another emulator; return the processes that it starts, and its standard output."""
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        options["stdout"] = subprocess.DEVNULL
        started.append(real(*arguments, **options))
        return started[-1]

    output = io.StringIO()
    monkeypatch.setattr(sys, "argv", ["system", "pynq_linux", "boot", ARMHF.architecture])
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(system, "built_image", lambda computer: image if computer is COMPUTERS["armhf"] else None)
    monkeypatch.setattr(system, "emulator_command", lambda computer, image, port: command)
    monkeypatch.setattr(system, "_answers", lambda port: answers)
    monkeypatch.setattr(system.subprocess, "Popen", start)
    return started, output


def test_a_board_without_its_image_names_the_command_that_builds_it(
    monkeypatch: pytest.MonkeyPatch, directory: BoardDirectory
) -> None:
    played_main(monkeypatch, None, SLEEPER, True)
    with pytest.raises(SystemExit) as ended:
        system.main()
    assert ended.value.code == "the armhf image is not built: run `python -m hilt.virtual.linux armhf`"


@pytest.mark.parametrize("answers", [True, False])
def test_a_board_announces_itself_when_it_answers_and_ends_its_emulator_with_power(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: BoardDirectory, power: Any, answers: bool
) -> None:
    image = CardImage("a", tmp_path / "a.img", tmp_path, tmp_path)
    image.card.write_bytes(b"image")
    directory.write_board_model({})
    (directory.root / system.MONITOR_SOCKET).touch()
    started, output = played_main(monkeypatch, image, SLEEPER, answers)
    monkeypatch.setattr(system, "insert_card", lambda directory, image: None)
    power.close()
    system.main()
    (emulator,) = started
    assert emulator.returncode == -signal.SIGKILL
    announced = {"port": int(directory.port.read_text()), "pid": emulator.pid}
    assert (json.loads(output.getvalue()) == announced) if answers else (output.getvalue() == "")
    assert not (directory.root / system.MONITOR_SOCKET).exists(), "an old monitor is nobody's"
    assert (directory.root / system.GIVEN).exists()
