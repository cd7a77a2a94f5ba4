"""An explanation against the program, the checks and the twin, each asked in another way."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from hilt.cli.main import run as hilt
from hilt.report.explanation import explain
from hilt.report.explanation_text import explanation_text, explanation_values
from hilt.schedule import ConfigurationError, load_workload, lower, space_for, verdicts
from hilt.simulator.device import MemoryModel
from hilt.simulator.twin import Twin, TwinStatus
from hilt.vta.isa import disassemble
from tests.unit.schedule.cases import PYNQ

C9 = load_workload("resnet18.C9")
SPACE = space_for(C9, PYNQ)
MEMORY = MemoryModel(read_latency=32, write_latency=16)
WIDEST = 110


def last_of(verdict_is_ok: bool) -> int:
    """The last configuration of that verdict whose threads, if any, share the tiles evenly."""
    columns = SPACE.columns(np.arange(len(SPACE)))
    found = verdicts(C9, PYNQ, columns)
    return int(np.flatnonzero(((found == 0) == verdict_is_ok) & (columns["h_nthread"] == 1))[-1])


def test_an_accepted_configuration() -> None:
    index = last_of(True)
    explained = explain(C9, SPACE, index, PYNQ, MEMORY)
    program = lower(C9, SPACE.knobs_at(index), PYNQ)
    assert explained.program is not None and explained.prediction is not None
    assert explained.program.instructions == len(program.instructions)
    assert explained.program.mix["FINISH"] == 1
    assert explained.program.mix["GEMM"] * 2 > explained.program.mix["GEMM reset"] > 0
    # The twin counts the bytes on its ports; the explanation adds up the transfers.
    moved, stages = explained.program.bytes, explained.prediction.stages
    assert stages["load"].bytes == moved["inp"] + moved["wgt"]
    assert stages["store"].bytes == moved["out"] == 7 * 7 * 512
    assert stages["compute"].bytes == moved["uop"]
    assert sum(stage.instructions for stage in stages.values()) >= len(program.instructions) - 1
    work = np.prod([loop.extent for loop in explained.loops])
    assert work == 7 * 7 * 9 * (256 // 16) * (512 // 16)
    assert explained.bound_cycles <= explained.prediction.cycles
    assert explained.prediction.status is TwinStatus.DONE

    spans = Twin(PYNQ).timeline(program, MEMORY)
    width = explained.prediction.cycles / explained.prediction.occupation.shape[1]
    for stage in (1, 2, 3):
        mine = spans[spans["stage"] == stage]
        busy = float((mine["end"] - mine["start"]).sum())
        shares = explained.prediction.occupation[stage - 1]
        assert shares.min() >= -1e-9 and shares.max() <= 1 + 1e-9
        assert shares.sum() * width == pytest.approx(busy)

    text = explanation_text(explained, assembly=True)
    plain = explanation_text(explained)
    assert text.startswith(plain) and max(map(len, plain.splitlines())) <= WIDEST
    for line in disassemble(program.instructions, PYNQ):
        assert line in text
    assert "compiler  accepted" in text and f"{explained.prediction.cycles:,} cycles" in text
    values = json.loads(json.dumps(explanation_values(explained)))
    assert values["prediction"]["cycles"] == explained.prediction.cycles
    assert values["knobs"] == SPACE.knobs_at(index)
    assert "instructions" not in values


def test_a_rejected_configuration_says_why_and_by_how_much() -> None:
    index = last_of(False)
    explained = explain(C9, SPACE, SPACE.knobs_at(index), PYNQ, MEMORY)
    assert explained.index == index
    assert explained.program is None and explained.prediction is None
    verdict = explained.verdicts["compiler"]
    assert verdict is not None
    text = explanation_text(explained, assembly=True)
    assert f"compiler  rejected, {verdict[0]}: {verdict[1]}" in text
    if verdict[0].endswith("_overflow"):
        need, limit = explained.occupancy[verdict[0].removesuffix("_overflow")]
        assert need > limit and "does not fit" in text and f"{need}" in verdict[1]


@pytest.mark.slow
def test_every_configuration_of_a_sample_can_be_explained() -> None:
    for index in SPACE.sample(6, np.random.default_rng(3)).tolist():
        explained = explain(C9, SPACE, index, PYNQ, MEMORY)
        assert (explained.program is None) == (explained.verdicts["compiler"] is not None)
        assert explanation_text(explained) and json.dumps(explanation_values(explained, assembly=True))


@pytest.mark.parametrize("options", [{"orders": 4}, {"kind": "ml2"}])
def test_other_spaces(options: dict[str, Any]) -> None:
    space = space_for(C9, PYNQ, **options)
    for index in space.sample(6, np.random.default_rng(2)).tolist():
        explained = explain(C9, space, index, PYNQ, MEMORY)
        text = explanation_text(explained)
        assert " ".join(f"{name}={value}" for name, value in space.knobs_at(index).items()) in text
        if explained.program is not None and explained.prediction is not None:
            moved = explained.program.bytes
            assert explained.prediction.stages["load"].bytes == moved["inp"] + moved["wgt"]


def test_outside_the_space() -> None:
    with pytest.raises(ConfigurationError, match=f"0 to {len(SPACE) - 1}"):
        explain(C9, SPACE, len(SPACE), PYNQ, MEMORY)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    index = last_of(True)
    knobs = ",".join(f"{name}={value}" for name, value in SPACE.knobs_at(index).items() if name != "tile_b")
    assert hilt(["explain", "resnet18.C9", str(index)]) == 0
    by_index = capsys.readouterr().out
    assert hilt(["explain", "resnet18.C9", knobs]) == 0
    assert capsys.readouterr().out == by_index
    assert hilt(["explain", "resnet18.C9", str(index), "--json", "--asm"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said["instructions"]) == said["program"]["instructions"]
    ml2 = "TH=4 TW=7 nVT=2 nFilterInLoop=8 tile_ci=2"
    assert hilt(["explain", "resnet18.C9", "--space", "ml2", "--json", ml2]) == 0
    assert json.loads(capsys.readouterr().out)["knobs"]["nVT"] == 2


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ("99999", "numbered 0 to"),
        ("9" * 5000, "999..."),
        ("tile_h=3", "a configuration needs tile_w, tile_ci, "),
        ("tile_h=1,tile_h=2", "tile_h is given twice"),
        ("tile_z=1", "no knob is called 'tile_z'; this space has tile_b, "),
        ("tall", "KNOB=NUMBER"),
        ("tile_h=x", "KNOB=NUMBER"),
    ],
)
def test_bad_input_gets_one_line(capsys: pytest.CaptureFixture[str], index: str, words: str) -> None:
    assert hilt(["explain", "resnet18.C9", index]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and words in said
