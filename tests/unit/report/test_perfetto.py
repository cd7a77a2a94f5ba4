"""The trace of a program: in the trace-event format, ordered, no two slices of a stage at once, as the twin counts."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hilt.cli.main import run as hilt
from hilt.report.perfetto import STAGES, stage_timeline
from hilt.schedule import load_workload, lower
from hilt.simulator.device import MemoryModel
from hilt.simulator.twin import Twin
from hilt.vta.isa import Opcode, decode
from tests.rtl.random_programs import random_program
from tests.unit.schedule.cases import PYNQ

KNOBS = {"tile_b": 1, "tile_h": 7, "tile_w": 7, "tile_ci": 1, "tile_co": 8, "oc_nthread": 2, "h_nthread": 1}
MEMORY = MemoryModel(read_latency=32, write_latency=16)
C9 = load_workload("resnet18.C9")


def of_phase(timeline: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [event for event in timeline["traceEvents"] if event["ph"] == phase]


def slices_of(timeline: dict[str, Any], stage: int) -> list[tuple[float, float]]:
    """(start, end) in cycles."""
    mine = [event for event in of_phase(timeline, "X") if event["tid"] == stage]
    return [(event["ts"] * 1000, (event["ts"] + event["dur"]) * 1000) for event in mine]


@pytest.fixture(scope="module")
def timeline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the timeline that the command writes for a schedule with two virtual threads."""
    file: Path = tmp_path_factory.mktemp("trace") / "c9.json"
    words = [f"{name}={value}" for name, value in KNOBS.items()]
    assert hilt(["trace", "resnet18.C9", *words, "--perfetto", str(file)]) == 0
    written: dict[str, Any] = json.loads(file.read_text())
    return written


def test_every_event_has_the_fields_of_its_phase(timeline: dict[str, Any]) -> None:
    demanded = {
        "M": {"name", "pid", "args"},
        "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
        "s": {"name", "cat", "id", "pid", "tid", "ts"},
        "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
    }
    for event in timeline["traceEvents"]:
        assert demanded[event["ph"]] <= event.keys(), event
    names = [event["args"]["name"] for event in of_phase(timeline, "M") if event["name"] == "thread_name"]
    assert names == list(STAGES)


def test_slices_are_ordered_apart_and_add_up_to_the_twin_s_counters(timeline: dict[str, Any]) -> None:
    program = lower(C9, KNOBS, PYNQ)
    (predicted,) = Twin(PYNQ).predict([program], MEMORY)
    for stage, name in enumerate(STAGES):
        slices = slices_of(timeline, stage)
        for (_, end), (start, _) in pairwise(slices):
            assert end <= start + 1e-6
        assert sum(end - start for start, end in slices) == pytest.approx(int(predicted[name]["busy"]))
    moved = dict.fromkeys(range(4), 0)
    for event in of_phase(timeline, "X")[1:]:
        moved[event["tid"]] += event["args"]["bytes"]
    assert [moved[stage] for stage in (1, 2, 3)] == [int(predicted[name]["bytes"]) for name in STAGES[1:]]
    ordinals = [event["args"]["ordinal"] for event in of_phase(timeline, "X")[1:]]
    assert sorted(ordinals) == list(range(len(program.instructions)))


def test_a_token_arrives_after_it_left_and_leaves_and_meets_a_slice(timeline: dict[str, Any]) -> None:
    records = decode(lower(C9, KNOBS, PYNQ).instructions, PYNQ)
    popped = sum(int(records[bit].sum()) for bit in ("pop_prev", "pop_next"))
    starts = {event["id"]: event for event in of_phase(timeline, "s")}
    ends = {event["id"]: event for event in of_phase(timeline, "f")}
    assert len(starts) == len(ends) == popped > 0
    assert starts.keys() == ends.keys()
    for ordinal, start in starts.items():
        assert start["ts"] < ends[ordinal]["ts"]
        assert abs(start["tid"] - ends[ordinal]["tid"]) == 1
    for stage in (1, 2, 3):
        edges = slices_of(timeline, stage)
        lasts, firsts = {round(end) - 1 for _, end in edges}, {round(start) for start, _ in edges}
        assert {round(event["ts"] * 1000) for event in starts.values() if event["tid"] == stage} <= lasts
        assert {round(event["ts"] * 1000) for event in ends.values() if event["tid"] == stage} <= firsts


def test_any_program_has_one(timeline: dict[str, Any]) -> None:
    """Random instructions: every kind, tokens in both directions."""
    from hilt.simulator.twin import PlacedProgram
    from hilt.vta.isa import encode

    program = random_program(PYNQ, seed=3, count=200)
    words = encode(program.records, PYNQ)
    pool = program.image.view("<u4").reshape(-1, 1)
    placed = PlacedProgram(words, pool, program.insn_addr, program.base)
    twin = Twin(PYNQ)
    traced = stage_timeline("random", words, PYNQ, twin.timeline(placed, MEMORY), 1)
    kinds = {event["name"].split()[0] for event in of_phase(traced, "X")}
    assert kinds == {"fetch", *(opcode.name for opcode in Opcode)}
    for stage in (1, 2, 3):
        for (_, end), (start, _) in pairwise(slices_of(traced, stage)):
            assert end <= start + 1e-6


def test_nothing_to_write_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["trace", "resnet18.C9", "0"]) == 2
    assert "give --perfetto FILE.json" in capsys.readouterr().err


def test_where_no_file_can_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = "conv2d:n=1,ci=16,h=8,w=8,co=16,k=3x3,s=1x1,p=1x1"
    for path in (tmp_path, tmp_path / "none" / "trace.json"):
        assert hilt(["trace", small, "3", "--perfetto", str(path)]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and said.startswith(f"hilt: cannot write {path}: ")
