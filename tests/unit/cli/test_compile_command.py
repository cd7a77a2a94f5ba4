"""`hilt compile` and the options of `hilt run`: the compiler's arguments, files, output and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.cli import compile as command
from hilt.cli.exit_codes import Exit
from hilt.cli.main import run as hilt
from hilt.network import board_run, gate, onnx_import, onnx_simplify, target
from hilt.network import compile as compiler
from hilt.run_choices import Aim

from .test_compile_output import GRAPH, MANIFEST

Captured = pytest.CaptureFixture[str]
Begin = Callable[[str], None]


class Bench:
    """The compiler, which answers at once."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.output = folder / "net.hilt"
        self.asked: dict[str, Any] = {}
        self.checked: list[Any] = []
        self.measured: list[str] = []
        self.error: Exception | None = None
        monkeypatch.setattr(onnx_import, "import_model", lambda *given: self.asked.update(model=given) or GRAPH)
        monkeypatch.setattr(onnx_simplify, "read_fixed", lambda *given: given)
        monkeypatch.setattr(board_run, "target_of", lambda board: f"target of {board}")
        monkeypatch.setattr(target, "aimed", lambda *given: (given[0], given[2]))
        monkeypatch.setattr(compiler, "compile_network", self._compile)
        monkeypatch.setattr(gate, "check_bundle", self._check)
        monkeypatch.setattr(command, "find_spec", lambda name: name)
        monkeypatch.setattr(command, "_measure", lambda board, work: self.measured.append(board))

    def _compile(self, graph: Any, aim: Any, tuned: Any, begin: Begin, *, on_node: Callable[[int, int], None]) -> Any:
        begin("joining layers")
        on_node(1, 2)
        self.asked.update(aim=aim, tuned=tuned)
        return SimpleNamespace(manifest=MANIFEST, data=b"the bundle")

    def _check(self, *given: Any) -> None:
        self.checked.append(given)
        if self.error is not None:
            raise self.error

    def run(self, *options: str) -> int:
        return hilt(["compile", "m.onnx", "-o", str(self.output), *options])


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "300")
    return Bench(tmp_path, monkeypatch)


def test_a_bundle_is_compared_before_it_is_written(bench: Bench, capsys: Captured) -> None:
    assert bench.run() == Exit.OK
    assert bench.output.read_bytes() == b"the bundle"
    assert bench.asked["model"] == (Path("m.onnx"), {}, {}) and bench.asked["tuned"] == {}
    assert bench.asked["aim"] == ("target of virtual:pynq", None) and bench.measured == []
    assert bench.checked == [(b"the bundle", "model", (Path("m.onnx"), {}, {}))]
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == (
        f"{bench.output}: 10 bytes; `hilt run {bench.output} --board virtual:pynq --input x.npy` runs it"
    )
    assert said.err == ""
    bench.output.unlink()
    bench.error = ValueError("conv1 differs")
    assert bench.run() != Exit.OK and not bench.output.exists()


def test_options_fix_the_model_and_choose_board_and_aim(bench: Bench) -> None:
    options = ["--board", "desk", "--for", "throughput", "--measure", "--shape", "x=1,3", "--value", "rate=2"]
    assert bench.run(*options) == Exit.OK
    assert bench.asked["model"] == (Path("m.onnx"), {"x": (1, 3)}, {"rate": 2.0})
    assert bench.asked["aim"] == ("target of desk", Aim("throughput")) and bench.measured == ["desk"]


def test_json_is_the_manifests_facts_and_without_onnx_runtime_a_line_says_so(
    bench: Bench, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert bench.run("--json") == Exit.OK
    out, err = capsys.readouterr()
    said = json.loads(out)
    assert set(said) == {"schema", "kind", "name", "target", "memory", "layers", "placements"}
    assert said["kind"] == "bundle" and said["layers"] == MANIFEST["layers"]
    assert "not compared with ONNX Runtime, which is not installed" in err and bench.checked == []
    assert bench.output.exists()


def test_schedules_come_from_a_campaign_or_a_file(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "schedules_of", lambda identifier: {identifier: []})
    bench.run("--from", "ab12")
    assert bench.asked["tuned"] == {"ab12": []}
    file = tmp_path / "schedule.json"
    file.write_text("{}")
    monkeypatch.setattr("hilt.report.schedule_file.read_schedule", lambda path: {"layer": {"tile_h": 2}})
    monkeypatch.setattr("hilt.schedule.convolution", lambda layer: SimpleNamespace(schedule_shape=f"shape of {layer}"))
    bench.run("--from", str(file))
    assert bench.asked["tuned"] == {"shape of layer": [{"tile_h": 2}]}


def test_a_bundle_that_cannot_be_written_is_not_compiled(bench: Bench, capsys: Captured) -> None:
    bench.output = bench.output.parent / "none" / "net.hilt"
    assert bench.run() == Exit.BAD_INPUT
    assert "its folder is missing" in capsys.readouterr().err and bench.asked == {}
