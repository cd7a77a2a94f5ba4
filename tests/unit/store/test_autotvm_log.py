"""AutoTVM's logs: TVM's own records load, ours are parsed back unchanged, nothing false goes out or comes in."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from hilt.cli.main import run as hilt
from hilt.run_choices import SpaceName
from hilt.schedule import Conv2d, WorkloadError, load_workload, space_for
from hilt.schedule.workload_syntax import format_workload, name_of
from hilt.store import Store, Trial, autotvm_exchange, database_path
from hilt.store.autotvm_exchange import export_run, import_records
from hilt.store.autotvm_log import ErrorNumber, LogFormatError, LogRecord, decode, encode, read_log, write_log
from hilt.store.autotvm_tasks import args_of, index_of, workload_of
from hilt.trial import Outcome, Verification
from tests.unit.schedule.cases import PYNQ, small_convolutions
from tests.unit.store.examples import run

FIXTURE = Path(__file__).with_name("tvm_v0_9.log")
C5 = load_workload("resnet18.C5")
SPACE = space_for(C5, PYNQ)
ELEMENTS = 28 * 28 * 128


def trials() -> list[Trial]:
    def verified(ordinal: int, index: int, microseconds: tuple[float, ...]) -> Trial:
        knobs = SPACE.knobs_at(index)
        seen = Verification(ELEMENTS, 0)
        middle = sorted(microseconds)[len(microseconds) // 2]
        took = {"run": 0.5, "send": 0.25}
        return Trial(
            ordinal, index, knobs, Outcome.OK, "", 1, middle, microseconds, seen, ELEMENTS,
            seconds=took, recorded_at=1.7e9 + ordinal,
        )  # fmt: skip

    def failed(ordinal: int, outcome: Outcome) -> Trial:
        return Trial(ordinal, 100 + ordinal, SPACE.knobs_at(100 + ordinal), outcome, "why")

    return [
        verified(0, 869, (4811.0, 4812.0, 4815.5)),
        failed(1, Outcome.REJECTED),
        failed(2, Outcome.TIMEOUT),
        failed(3, Outcome.WRONG_ANSWER),
        failed(4, Outcome.BUS_ERROR),
        replace(verified(5, 7, (1.0,)), verification=Verification(ELEMENTS // 2, 0)),
        verified(6, 864, (9000.0,)),
    ]


def exported() -> list[LogRecord]:
    record = run("a" * 32, workload_spec=C5.to_dict())
    return export_run(record, trials(), PYNQ.parameters, "pynq").records


def test_records_of_tvm_load() -> None:
    (good, failed, strided, dense) = (record for _, record in read_log(FIXTURE))
    assert good.costs == (0.0125, 0.0115, 0.0121) and good.error is ErrorNumber.OK
    assert good.model == "pynq_1x16_i8w8a32_15_15_18_17" and good.all_cost == 1.25
    assert workload_of(good).name == "resnet18.C11" and failed.error is ErrorNumber.RUNTIME_DEVICE
    assert workload_of(strided) == load_workload("resnet18.C4")
    layer = workload_of(dense)
    assert (layer.in_channels, layer.out_channels, layer.height, layer.kernel) == (512, 1024, 1, (1, 1))
    for record in (good, failed, strided):  # TVM's index is ours
        space = space_for(workload_of(record), PYNQ)
        assert space.index({name: value for name, _, value in record.entity}) == record.index
        values = {knob.name: knob.values for knob in space.knobs}
        assert index_of(record.entity, values) == record.index


def test_lines_of_tvm_are_written_as_they_were() -> None:
    lines = [line for line in FIXTURE.read_text().splitlines() if line.startswith("{")]
    assert [encode(decode(line)) for line in lines] == lines


def test_a_written_log_is_parsed_back_unchanged(tmp_path: Path) -> None:
    records = exported()
    write_log(tmp_path / "out.log", records)
    assert [record for _, record in read_log(tmp_path / "out.log")] == records
    assert [each.error.value for each in records] == [0, 1, 7, 5, 4, 0]
    first = json.loads((tmp_path / "out.log").read_text().splitlines()[0])
    target, task, args, keywords = first["input"]
    assert target == "ext_dev -keys=vta,cpu -device=vta -model=pynq_1x16_i8w8a32_15_15_18_17"
    assert (task, keywords) == ("conv2d_packed.vta", {})
    assert args == [
        ["TENSOR", [1, 8, 28, 28, 1, 16], "int8"], ["TENSOR", [8, 8, 3, 3, 16, 16], "int8"],
        [1, 1], [1, 1, 1, 1], [1, 1], "NCHW1n16c", "int32",
    ]  # fmt: skip
    assert first["config"] == {
        "index": 869,
        "code_hash": None,
        "entity": [
            ["tile_b", "sp", [-1, 1]], ["tile_h", "sp", [-1, 28]], ["tile_w", "sp", [-1, 1]],
            ["tile_ci", "sp", [-1, 1]], ["tile_co", "sp", [-1, 4]], ["oc_nthread", "ot", 2], ["h_nthread", "ot", 1],
        ],
    }  # fmt: skip
    assert first["result"] == [[4811e-6, 4812e-6, 4815.5e-6], 0, 0.75, 1.7e9]
    assert (first["version"], first["tvm_version"]) == (0.2, "0.9.0")


def test_trials_that_were_not_fully_compared_are_not_exported() -> None:
    found = export_run(run("a" * 32, workload_spec=C5.to_dict()), trials(), PYNQ.parameters, "pynq")
    assert found.left_out == {"not compared in full": 1}
    assert all(record.costs != (1e-6,) for record in found.records)


def test_schedules_that_tvm_cannot_run_are_not_exported() -> None:
    """TVM's loop order is its own; tiles that do not divide the output it does not have."""
    first = trials()[0]
    ml2 = {"TH": 5, "TW": 5, "nVT": 1, "nFilterInLoop": 1, "tile_ci": 1}
    others = [
        replace(first, knobs={**first.knobs, "loop_order": 1}),
        replace(first, ordinal=1, knobs={**first.knobs, "loop_order": 3}),
        replace(first, ordinal=2, knobs=ml2),
        replace(first, ordinal=3, knobs=SPACE.knobs_at(891)),  # its output box has three dimensions
    ]
    found = export_run(run("a" * 32, workload_spec=C5.to_dict()), others, PYNQ.parameters, "pynq")
    assert [record.index for record in found.records] == [869]
    assert found.left_out == {"not in TVM's space": 2, "TVM v0.9 would not run it": 1}


def test_row_programs_are_not_exported() -> None:
    rows = space_for(C5, PYNQ, kind=SpaceName.ROWS)
    (good, *_) = trials()
    record = run("a" * 32, workload_spec=C5.to_dict(), space_kind="rows")
    found = export_run(record, [replace(good, index=4066, knobs=rows.knobs_at(4066))], PYNQ.parameters, "pynq")
    assert not found.records and found.left_out == {"not in TVM's space": 1}


def test_a_dense_layer() -> None:
    layer = load_workload("dense:n=1,ci=512,co=1000")
    space = space_for(layer, PYNQ)
    knobs = space.knobs_at(len(space) - 1)
    trial = replace(trials()[0], knobs=knobs)
    (record,) = export_run(run("a" * 32, workload_spec=layer.to_dict()), [trial], PYNQ.parameters, "pynq").records
    assert record.task == "dense_packed.vta"
    assert record.args == (["TENSOR", [1, 32, 1, 16], "int8"], ["TENSOR", [63, 32, 16, 16], "int8"], None, "int32")
    assert [name for name, _, _ in record.entity] == ["tile_b", "tile_ci", "tile_co", "oc_nthread"]
    assert record.index == 6 * 6 * 2 - 1  # all four knobs at their last value
    (back,) = import_records([(1, record)], Path("x.log"), 1.0)
    assert dict(back.trials[0].knobs) == knobs and back.run.workload == "dense:n=1,ci=512,co=1008"


def test_other_operators_are_no_task_of_tvms() -> None:
    for text in ("mobilenet.D1", "conv2d_transpose:n=1,ci=16,h=4,w=4,co=16,k=2x2,s=2x2"):
        with pytest.raises(WorkloadError, match=r"(grouped|transposed) convolution"):
            args_of(load_workload(text), PYNQ.parameters)


def test_out_and_in_again_says_the_same() -> None:
    (back,) = import_records(list(enumerate(exported(), 1)), Path("x.log"), 2.0)
    assert back.run.workload == "resnet18.C5" and back.run.board == "tvm:pynq_1x16_i8w8a32_15_15_18_17"
    sent = [each for each in trials() if each.ordinal != 5]
    assert [each.index for each in back.trials] == [each.index for each in sent]
    assert [dict(each.knobs) for each in back.trials] == [dict(each.knobs) for each in sent]
    same = {Outcome.BUS_ERROR: Outcome.CRASH}  # TVM has one number for both
    assert [each.outcome for each in back.trials] == [same.get(each.outcome, each.outcome) for each in sent]
    assert back.trials[0].microseconds == pytest.approx(4812.0)
    assert not any(each.verified for each in back.trials)


def test_a_later_record_of_a_configuration_replaces_the_earlier() -> None:
    first = exported()[0]
    (back,) = import_records([(1, first), (2, replace(first, costs=(1e-3,)))], Path("x.log"), 2.0)
    assert [each.microseconds for each in back.trials] == [pytest.approx(1000.0)]
    assert back.replaced == 1


@settings(max_examples=100, deadline=None, derandomize=True)
@given(small_convolutions())
@pytest.mark.slow
def test_workloads_come_back_in_whole_blocks(workload: Conv2d) -> None:
    plain = replace(workload, bias=False, shift=8, clip=(0, 127), padding_end=None, dilation=(1, 1))
    record = replace(exported()[0], args=args_of(plain, PYNQ.parameters))
    back = workload_of(replace(record, task="conv2d_packed.vta" if len(record.args) == 7 else "dense_packed.vta"))
    whole = replace(plain, in_channels=-(-plain.in_channels // 16) * 16, out_channels=-(-plain.out_channels // 16) * 16)
    assert replace(back, name="") == replace(whole, name="", batch=plain.batch)
    assert replace(load_workload(format_workload(workload)), name="") == replace(workload, name="")


def test_names() -> None:
    assert name_of(replace(C5, name="anything")) == "resnet18.C5"
    assert name_of(replace(C5, name="", shift=3)) == "conv2d:n=1,ci=128,h=28,w=28,co=128,k=3x3,s=1x1,p=1x1,shift=3"


def edited(path: list[Any], value: Any) -> str:
    """The fixture's first record with one value changed."""
    values = json.loads(FIXTURE.read_text().splitlines()[1])
    place = values
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(values)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "not a record"),
        ("[]", "not a record"),
        (edited(["version"], 0.1), "log version 0.1"),
        (edited(["input", 1], "conv2d_nchw.cuda"), "conv2d_nchw.cuda"),
        (edited(["input", 2, 4], [2, 2]), "dilation"),
        (edited(["input", 2, 3], [0, 0, 1, 1]), "both sides"),
        (edited(["input", 2, 3], [1.5, 1.5]), "whole numbers"),
        (edited(["input", 2, 2], "11"), "whole numbers"),
        (edited(["input", 0], f"-model=pynq_1x16_i8w8a32_15_15_18_{'9' * 5000}"), "longer than 100 characters"),
        (edited(["input", 2, 0], ["TENSOR", [1, 32, 7, 7], "int8"]), "6 dimensions"),
        (edited(["input", 0], "llvm"), "no name of VTA parameters"),
        (edited(["config", "entity", 1], ["tile_h", "sp", [-1, 3]]), "tile_h is 3"),
        (edited(["config", "entity", 1], ["tile_x", "sp", [-1, 1]]), "tile_x"),
        (edited(["config", "entity", 5], ["oc_nthread", "an", [1]]), "kind 'an'"),
        (edited(["result", 1], 9), "not a record"),
        (edited(["result", 0], []), "above 0"),
        (edited(["result", 0], [0.0125, -1.0]), "above 0"),
        (edited(["result", 0], [float("nan")]), "above 0"),
        (edited(["result", 0], [float("inf")]), "above 0"),
        (edited(["result", 0], [1e305]), "below 1e9"),  # in microseconds it would be infinite
        ("[" * 100_000, "not a record"),
        (edited(["input", 0], "-model=pynq\ud800_1x16_i8w8a32_15_15_18_17"), "is no text"),
        (edited(["result", 2], float("nan")), "finite"),
        (edited(["result", 3], 10**400), "not a record"),
        (edited(["input", 2, 0], ["TENSOR", [1, 32, 10**12, 7, 1, 16], "int8"]), "from 1 to 65535"),
        (edited(["input", 2, 0], ["TENSOR", [1, 32, 0, 7, 1, 16], "int8"]), "from 1 to 65535"),
        (edited(["input", 2, 0], ["TENSOR", [60000, 32, 60000, 7, 1, 16], "int8"]), "at most 2147483647 bytes"),
    ],
)
def test_a_file_that_is_no_log_is_refused_with_its_line(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "bad.log"
    path.write_text(FIXTURE.read_text().splitlines()[1] + "\n\n" + line + "\n")
    with pytest.raises(LogFormatError, match="line 3") as error:
        import_records(read_log(path), path, 1.0)
    assert words in str(error.value)


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    assert hilt(["log", "import", str(FIXTURE)]) == 0
    assert capsys.readouterr().out.count("run ") == 3
    with Store(database_path(tmp_path)) as store:
        runs = {each.workload: each for each in store.runs()}
        assert "resnet18.C11" in runs and "resnet18.C4" in runs
        assert store.best(runs["resnet18.C11"].uuid) is None
        own = run("d" * 32, workload_spec=C5.to_dict(), created=9e9)
        store.create_run(own)
        store.record(own.uuid, trials())
    assert hilt(["show", "last"]) == 0
    out = tmp_path / "out.log"
    assert hilt(["log", "export", "d" * 32, str(out)]) == 0
    assert "6 trials" in capsys.readouterr().out
    assert len(read_log(out)) == 6
    assert hilt(["log", "import", str(out)]) == 0
    assert hilt(["runs"]) == 0
    assert hilt(["log", "import", str(tmp_path / "gone.log")]) == 2
    out.write_text("nonsense\n")
    capsys.readouterr()
    assert hilt(["log", "import", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "out.log, line 1" in said
    assert hilt(["log", "export", "d" * 32, str(tmp_path / "no" / "where.log")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "cannot write" in said


def test_a_log_comes_in_as_a_whole_with_its_times_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log's name may also be no text: the last of its runs cannot be written, so none is there."""
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    path = tmp_path / os.fsdecode(b"caf\xe9.log")
    path.write_bytes(FIXTURE.read_bytes())
    with Store(database_path(tmp_path)) as store:
        with store.writing() as connection:
            connection.execute(
                "CREATE TRIGGER full BEFORE INSERT ON trials WHEN (SELECT count(*) FROM runs) = 3 "
                "BEGIN SELECT RAISE(ABORT, 'no room'); END"
            )
        assert hilt(["log", "import", str(path)]) == 4
        said = capsys.readouterr()
        assert said.out == "" and said.err.count("\n") == 1 and "no room" in said.err
        assert store.runs() == []
        with store.writing() as connection:
            connection.execute("DROP TRIGGER full")
        assert hilt(["log", "import", str(path)]) == 0
        assert capsys.readouterr().out.count("run ") == 3
        times = [trial.recorded_at for run in reversed(store.runs()) for trial in store.trials(run.uuid)]
        assert sorted(times) == sorted(record.timestamp for _, record in read_log(FIXTURE))
        assert {run.detail for run in store.runs()} == {"imported from caf\ufffd.log"}


def test_every_outcome_has_an_error_number_of_tvm() -> None:
    assert autotvm_exchange._ERRORS.keys() == set(Outcome)
    assert autotvm_exchange._OUTCOMES.keys() == set(ErrorNumber)
