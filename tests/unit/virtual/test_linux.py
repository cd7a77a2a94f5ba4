"""The emulated board, without QEMU: its programs, its command line, its SD card, its monitor."""

from __future__ import annotations

import json
import socket
import tarfile
import threading
from pathlib import Path

import pytest

from hilt.measure.board_description import VirtualTarget
from hilt.virtual.bitstream import bitstream_identity, make_bitstream
from hilt.virtual.board_model import BOARD_MODELS
from hilt.virtual.directory import BoardDirectory
from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.linux import computer as computer_module
from hilt.virtual.linux.computer import ARM64, ARMHF, COMPUTERS, Computer
from hilt.virtual.linux.image import CardImage, built_image, ensure_image
from hilt.virtual.linux.monitor import MONITOR_SOCKET, Monitor
from hilt.virtual.linux.system import GIVEN, emulator_command, insert_card, write_given


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BoardDirectory:
    monkeypatch.setenv("HILT_HOME", str(tmp_path / "home"))
    made = BoardDirectory("pynq_linux")
    made.create()
    return made


def image_at(folder: Path, key: str) -> CardImage:
    folder.mkdir(exist_ok=True)
    card = folder / f"{key}.img"
    with card.open("wb") as file:
        file.truncate(1 << 20)
        file.seek(1 << 19)
        file.write(key.encode())
    return CardImage(key, card, folder / "vmlinuz", folder / "initrd.img")


def test_missing_programs_are_named_with_the_command_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HILT_CACHE", str(tmp_path))
    monkeypatch.setattr(computer_module, "_found", lambda program: program == "mke2fs")
    with pytest.raises(VirtualBoardError) as missing:
        ensure_image(ARMHF, lambda text: None)
    assert str(missing.value).endswith(
        "run `sudo apt-get install qemu-system-arm mmdebstrap arch-test qemu-user-static g++-arm-linux-gnueabihf`"
    )
    assert built_image(ARMHF) is None


def test_a_computer_of_64_bits_needs_its_own_compiler() -> None:
    assert ARM64.packages["aarch64-linux-gnu-g++"] == "g++-aarch64-linux-gnu"
    assert ARM64.packages["qemu-system-aarch64"] == "qemu-system-arm", "Debian's package has both emulators"


def test_a_kernel_that_runs_no_foreign_programs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computer_module, "_BINFMT", tmp_path)
    with pytest.raises(VirtualBoardError, match="mount -t binfmt_misc .*systemd-binfmt"):
        ARMHF.require_interpreter()
    (tmp_path / "status").touch()
    with pytest.raises(VirtualBoardError, match="run `sudo sh -c '/usr/lib/systemd/systemd-binfmt'`"):
        ARMHF.require_interpreter()
    (tmp_path / ARMHF.interpreter).touch()
    ARMHF.require_interpreter()


@pytest.mark.parametrize(("computer", "memory"), [(ARMHF, "cma=128M"), (ARM64, "cma=256M")])
def test_nothing_but_the_loopback_address_leads_to_it_and_nothing_leads_out(
    tmp_path: Path, computer: Computer, memory: str
) -> None:
    command = emulator_command(computer, image_at(tmp_path, "a"), 4321)
    (network,) = [word for word in command if word.startswith("user,")]
    assert network == "user,id=host,restrict=on,hostfwd=tcp:127.0.0.1:4321-:22"
    assert memory in command[command.index("-append") + 1]


def test_its_card_lasts_until_the_image_is_another(tmp_path: Path, directory: BoardDirectory) -> None:
    first = image_at(tmp_path / "images", "first")
    card = insert_card(directory, first)
    assert card.read_bytes() == first.card.read_bytes()
    assert card.stat().st_blocks * 512 < 1 << 19, "the copy of a sparse file is sparse"
    assert card.stat().st_mode & 0o077 == 0
    card.write_bytes(b"written by the board")
    assert insert_card(directory, first).read_bytes() == b"written by the board"
    second = image_at(tmp_path / "images", "second")
    assert insert_card(directory, second).read_bytes() == second.card.read_bytes()


def test_a_card_for_which_there_is_no_image_is_an_error(tmp_path: Path, directory: BoardDirectory) -> None:
    gone = CardImage("gone", tmp_path / "gone.img", tmp_path, tmp_path)
    with pytest.raises(VirtualBoardError, match="SD card of pynq_linux cannot be made"):
        insert_card(directory, gone)


def test_the_board_is_given_its_keys_and_nobody_else_reads_them(directory: BoardDirectory) -> None:
    directory.write_board_model(BOARD_MODELS["pynq_linux"].device_settings())
    write_given(directory)
    given = directory.root / GIVEN
    assert given.stat().st_mode & 0o077 == 0 and given.stat().st_size % 512 == 0
    with tarfile.open(given) as archive:
        modes = {entry.name: (entry.mode, entry.uid) for entry in archive}
        key = archive.extractfile("host_key")
        assert key is not None and key.read() == directory.host_key.read_bytes()
    assert modes == {"host_key": (0o600, 0), "authorized_keys": (0o644, 0), "board_model.json": (0o644, 0)}


def test_the_monitor_skips_events_and_reports_refusals(directory: BoardDirectory) -> None:
    heard: list[str] = []
    with socket.socket(socket.AF_UNIX) as listening:
        with directory.short_path(MONITOR_SOCKET) as path:
            listening.bind(path)
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, connection.makefile("rwb") as stream:
                stream.write(b'{"QMP": {"version": {}}}\n')
                stream.flush()
                for line in stream:
                    command = json.loads(line)["execute"]
                    heard.append(command)
                    stream.write(b'{"event": "STOP", "timestamp": {}}\n')
                    refused = b'{"error": {"class": "DeviceNotFound", "desc": "Device \'net0\' not found"}}\n'
                    stream.write(refused if command == "set_link" else b'{"return": {}}\n')
                    stream.flush()

        thread = threading.Thread(target=serve)
        thread.start()
        with Monitor(directory) as monitor:
            monitor.freeze()
            with pytest.raises(
                VirtualBoardError, match="set_link on virtual board pynq_linux: Device 'net0' not found"
            ):
                monitor.set_network(False)
        thread.join(10)
    assert heard == ["qmp_capabilities", "stop", "set_link"]


def test_a_board_that_is_off_has_no_monitor(directory: BoardDirectory) -> None:
    with pytest.raises(VirtualBoardError, match="has no monitor"):
        Monitor(directory)


@pytest.mark.parametrize(
    ("name", "twin", "computer"), [("pynq_linux", "pynq", ARMHF), ("zcu104_linux", "zcu104", ARM64)]
)
def test_it_is_the_same_accelerator_as_on_this_machine_and_runs_only_the_rtl(
    name: str, twin: str, computer: Computer
) -> None:
    model = BOARD_MODELS[name]
    assert COMPUTERS[model.computer] is computer
    assert bitstream_identity(model) == bitstream_identity(BOARD_MODELS[twin])
    with pytest.raises(VirtualBoardError, match="runs the RTL only, not the golden model"):
        make_bitstream(model, "golden")


def test_injected_faults_are_refused() -> None:
    with pytest.raises(VirtualBoardError, match="an emulated board has no injected faults"):
        VirtualTarget("virtual:pynq_linux?rate=0.1")
