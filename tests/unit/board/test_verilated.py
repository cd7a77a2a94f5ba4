"""The virtual board's device against pynq's Device, in every version that boards have."""

from __future__ import annotations

import hashlib
import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from hilt.virtual.bitstream import bitfile
from hilt_virtual_board.board_model import ModelSettings


class OldDevice:
    """The members of pynq 2.7's Device that a subclass could get in the way of; all of them come from the PL server."""

    bitfile_name = ip_dict = mem_dict = timestamp = property(lambda self: None)

    def __init__(self, tag: str) -> None:
        self.tag = tag


def test_a_bitstream_is_loaded_where_pynq_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {name: ModuleType(name) for name in ("pynq", "pynq.buffer", "pynq.pl_server", "pynq.pl_server.device")}
    vars(modules["pynq.buffer"])["PynqBuffer"] = object
    vars(modules["pynq.pl_server.device"])["Device"] = OldDevice
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "hilt_virtual_board.verilated", raising=False)
    verilated = importlib.import_module("hilt_virtual_board.verilated")
    monkeypatch.delitem(sys.modules, "hilt_virtual_board.verilated")
    resets: list[None] = []
    device = verilated.VerilatedDevice(ModelSettings("virtual:pynq", "7z020clg400", 10**8, 0x43C00000, {}, 1, 1.0))
    device._model = SimpleNamespace(reset=lambda: resets.append(None))
    device._loaded = hashlib.sha256(b"model").hexdigest()
    path = tmp_path / "vta.bit"
    path.write_bytes(bitfile("vta", "7z020clg400", b"model"))
    device.download(SimpleNamespace(bitfile_name=str(path)))
    assert resets == [None]
