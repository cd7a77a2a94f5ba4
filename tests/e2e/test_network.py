"""`hilt tune model.onnx` on the RTL over SSH, as its users run it."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from hilt.store import Store, database_path
from tests.e2e.test_first_light import hilt
from tests.unit.schedule.onnx_models import toy


def test_a_network_of_two_layers(hilt_home: Path, tmp_path: Path) -> None:
    model = tmp_path / "toy.onnx"
    onnx.save(toy(), str(model))
    options = ("--board", "virtual:pynq", "--tuner", "random", "--trials", "8", "--orders", "1")
    done = hilt("tune", str(model), *options, "--json")
    said = json.loads(done.stdout)
    assert [layer["count"] for layer in said["layers"]] == [1, 2]
    with Store(database_path(hilt_home)) as store:
        for layer in said["layers"]:
            run, best = store.run(layer["run"]), store.best(layer["run"])
            assert best is not None and best.verified and run.board == "virtual:pynq"
            assert best.cycles is not None and best.microseconds == pytest.approx(best.cycles / 100)
            assert layer["best"]["cycles"] == best.cycles >= run.bound_cycles
    assert said["trials"] == 16 and said["budget"] == {"trials": 16}
    both = [layer["count"] * layer["best"]["microseconds"] for layer in said["layers"]]
    assert said["microseconds"] == pytest.approx(sum(both))
    exported = tmp_path / "best.log"
    said_of_log = hilt("log", "export", said["layers"][1]["run"], str(exported))
    records = exported.read_text().count('"conv2d_packed.vta"')
    left_out = sum(int(line.split()[0]) for line in said_of_log.stdout.splitlines() if " left out: " in line)
    assert records + left_out == said["layers"][1]["trials"]
