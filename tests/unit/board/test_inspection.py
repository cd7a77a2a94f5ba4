"""The agent's inspection of a board, from files as its kernel shows them, and the unit that it gives systemd."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import types
from pathlib import Path

import pytest

from hilt_board import inspection, service
from hilt_board.home import Home
from hilt_board.service import ServiceError, install, unit_text


def sensor(root: Path, **values: str) -> Path:
    device = root / "iio:device0"
    device.mkdir(parents=True)
    for name, value in values.items():
        (device / name).write_text(value + "\n")
    return root


def test_the_xadc_follows_its_transfer_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """UG480: degrees = code * 503.975 / 4096 - 273.15."""
    monkeypatch.delenv("HILT_VERILATED", raising=False)
    root = sensor(tmp_path, in_temp0_raw="2602", in_temp0_offset="-2219", in_temp0_scale="123.040771484")
    assert inspection.temperature(root) == pytest.approx(2602 * 503.975 / 4096 - 273.15, abs=0.2)
    assert inspection.temperature(tmp_path / "none") is None


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo the environment variables that the function under test sets.

    Other tests start boards with this environment.
    """
    monkeypatch.setattr(os, "environ", dict(os.environ))
    os.environ.pop("XILINX_XRT", None)
    os.environ.pop("HILT_VERILATED", None)


@pytest.mark.usefixtures("environment")
def test_pynq_finds_its_device_without_a_login_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "_FPGA_MANAGER", tmp_path / "state")
    inspection.complete_environment()
    assert "XILINX_XRT" not in os.environ  # not a board
    (tmp_path / "state").write_text("operating\n")
    inspection.complete_environment()
    assert os.environ["XILINX_XRT"] == "/usr"
    os.environ["XILINX_XRT"] = "/opt/xrt"
    inspection.complete_environment()
    assert os.environ["XILINX_XRT"] == "/opt/xrt"


@pytest.mark.usefixtures("environment")
def test_a_virtual_board_has_no_device_but_its_own() -> None:
    os.environ.update(XILINX_XRT="/opt/xrt", PYNQ_REMOTE_DEVICES="192.0.2.1", HILT_VERILATED="board_model.json")
    inspection.complete_environment()
    assert not {"XILINX_XRT", "PYNQ_REMOTE_DEVICES"} & set(os.environ)


def test_inspecting_this_machine_gives_every_fact(tmp_path: Path) -> None:
    facts = inspection.inspect(tmp_path)
    assert facts["root"] is (os.geteuid() == 0)
    assert facts["memory_free"] > 0 and facts["disk_free"] > 0
    assert (facts["device"] is None) is (facts["import_error"] is not None)


def test_a_pynq_that_finds_no_device_is_not_a_missing_pynq(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Device:
        @property
        def active_device(self) -> object:
            raise RuntimeError("No Devices Found")

    monkeypatch.delenv("HILT_VERILATED", raising=False)
    monkeypatch.setitem(sys.modules, "pynq", types.SimpleNamespace(__version__="2.7.0", Device=Device()))
    facts = inspection.inspect(tmp_path)
    assert (facts["pynq"], facts["device"]) == ("2.7.0", None)
    assert facts["import_error"] == "RuntimeError: No Devices Found"


_NOISY_PYNQ = """
import atexit, os, types
print("[XRT] WARNING: by Python")
os.write(1, b"[XRT] WARNING: by a library\\n")
atexit.register(os.write, 1, b"[XRT] closed\\n")
__version__ = "2.7.0"
Device = types.SimpleNamespace(active_device=types.SimpleNamespace(name="edge", tag="embedded_xrt0"))
"""


def test_output_of_pynq_is_no_part_of_the_answer(tmp_path: Path) -> None:
    (tmp_path / "pynq.py").write_text(_NOISY_PYNQ)
    package = Path(inspection.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{package}", "HILT_AGENT_HOME": str(tmp_path / "agent")}
    environment.pop("HILT_VERILATED", None)
    words = [sys.executable, "-m", "hilt_board", "inspect"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=True)
    facts = json.loads(done.stdout)
    assert (facts["pynq"], facts["device"]) == ("2.7.0", "edge")
    assert done.stderr.count("[XRT]") == 3


def test_the_unit_is_read_by_systemd(tmp_path: Path) -> None:
    python, archive = "/usr/local/share/pynq-venv/bin/python3", "/home/xilinx/.hilt-agents/agent-0f.pyz"
    text = unit_text(python, archive, "/srv/hilt", "/usr")
    assert f'ExecStart="{python}" "{archive}" daemon' in text
    for path in ("/home/a b$c", "/x\nExecStart=/bin/sh", '/x"'):
        with pytest.raises(ServiceError, match="cannot stand in a unit file"):
            unit_text("/usr/bin/python3", path, "/srv/hilt", "/usr")
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: the unit was not given to systemd itself")
    unit = tmp_path / "hilt-board.service"
    unit.write_text(text.replace(python, "/bin/true"))
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    assert "hilt-board" not in checked.stderr, checked.stderr


def test_the_service_runs_a_copy_that_only_root_can_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service runs a copy that only root can change.

    Files and systemd are the test's; the written paths and texts are the service's.
    """
    mine = tmp_path / "home" / "agent-0f.pyz"
    mine.parent.mkdir()
    mine.write_bytes(b"the agent")
    copy, units, asked = tmp_path / "lib" / "hilt-board.pyz", tmp_path / "units", []
    units.mkdir()
    monkeypatch.setattr(service, "ARCHIVE", copy)
    monkeypatch.setattr(service, "DIRECTORY", units)
    monkeypatch.setattr(service, "agent_archive", lambda: mine)
    monkeypatch.setattr(service, "_systemctl", asked.append)
    monkeypatch.setattr(service.os, "geteuid", lambda: 0)
    monkeypatch.setattr(service.Path, "is_dir", lambda path: True)
    install(Home(tmp_path))
    text = (units / "hilt-board.service").read_text()
    assert f'"{copy}" daemon' in text and str(mine) not in text
    assert copy.read_bytes() == b"the agent"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o644 and stat.S_IMODE(copy.parent.stat().st_mode) & 0o022 == 0
    assert asked == [["daemon-reload"], ["enable", "hilt-board.service"]]
    service.remove()
    assert not copy.exists() and not list(units.iterdir())


def test_a_folder_is_no_archive_to_install(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="runs from a folder"):
        install(Home(tmp_path))


def test_memory_is_in_bytes_and_counts_of_pages_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "_text", lambda path: "MemTotal:  512 kB\nHugePages_Total:  7\nMemFree: 3 kB")
    assert inspection._memory() == {"MemTotal": 512 * 1024, "MemFree": 3 * 1024}
    monkeypatch.setattr(inspection, "_text", lambda path: None)
    assert inspection._memory() == {}
