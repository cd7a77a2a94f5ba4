"""Logs of the forms that TVM published for VTA: explicit outer factors, eight arguments, other tasks, version 0.1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hilt.cli.main import run as hilt
from hilt.schedule import load_workload
from hilt.store import Store, database_path
from hilt.store.autotvm_exchange import read_tvm_log
from hilt.store.autotvm_log import LogFormatError
from hilt.store.autotvm_tasks import knobs_of, workload_of

TARGET = "ext_dev -keys=vta,cpu -device=vta -model=pynq_1x16_i8w8a32_15_15_18_17"
C2 = [["TENSOR", [1, 4, 56, 56, 1, 16], "int8"], ["TENSOR", [4, 4, 3, 3, 16, 16], "int8"], [1, 1], [1, 1], [1, 1]]
LAYOUT = "NCHW1n16c"
KNOBS = {"tile_b": 1, "tile_h": 8, "tile_w": 56, "tile_ci": 1, "tile_co": 2, "oc_nthread": 2, "h_nthread": 1}
OUTER = {"tile_b": 1, "tile_h": 7, "tile_w": 1, "tile_ci": 4, "tile_co": 2}


def line(args: list[Any], task: str = "conv2d_packed.vta") -> str:
    """A line as the published logs have it, with both factors of every split."""
    entity = [
        [name, "sp", [OUTER[name], value]] if name in OUTER else [name, "ot", value] for name, value in KNOBS.items()
    ]
    return json.dumps(
        {
            "input": [TARGET, task, args, {}],
            "config": {"index": 1, "code_hash": None, "entity": entity},
            "result": [[0.0057], 0, 12.5, 1562878163.25],
            "version": 0.2,
            "tvm_version": "0.7.dev1",
        }
    )


OLD = json.dumps(
    {
        "i": [TARGET, "topi_nn_conv2d", C2, {}, ["conv2d"], {"i": 1, "t": "direct", "c": None, "e": []}],
        "r": [[0.0057], 0, 12.5, 1562878163.25],
        "v": 0.1,
    }
)
GROUP = line([*C2[:2], [1, 1], [1, 1], [1, 1], 4, "int32"], "group_conv2d_packed.vta")


@pytest.mark.parametrize(
    "rest", [[LAYOUT, "int32"], [LAYOUT, LAYOUT, "int32"], [LAYOUT, "", "int32"], [1, LAYOUT, "int32"]]
)
def test_every_form_of_a_convolutions_arguments_is_the_same_layer(tmp_path: Path, rest: list[Any]) -> None:
    path = tmp_path / "vta.log"
    path.write_text(line([*C2, *rest]) + "\n")
    ((ordinal, record),) = read_tvm_log(path).records
    assert ordinal == 1
    assert workload_of(record) == load_workload("resnet18.C2")
    assert knobs_of(record) == KNOBS


@pytest.mark.parametrize("rest", [[2, LAYOUT, "int32"], ["int32"], [LAYOUT, "NCHW", "int32"], [LAYOUT, 3]])
def test_other_arguments_are_refused(tmp_path: Path, rest: list[Any]) -> None:
    path = tmp_path / "vta.log"
    path.write_text(line([*C2, *rest]) + "\n")
    ((_, record),) = read_tvm_log(path).records
    with pytest.raises(LogFormatError, match="after the dilation"):
        workload_of(record)


def test_other_tasks_and_version_0_1_are_counted_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    path = tmp_path / "vta.log"
    path.write_text("\n".join([OLD, GROUP, line([*C2, LAYOUT, "int32"]), OLD, GROUP, GROUP]) + "\n")
    assert hilt(["log", "import", str(path)]) == 0
    printed = capsys.readouterr()
    assert "resnet18.C2" in printed.out and "1 trials" in printed.out
    assert "2 left out: log version 0.1, which TVM no longer reads" in printed.err
    assert "3 left out: task group_conv2d_packed.vta" in printed.err
    with Store(database_path(tmp_path)) as store:
        assert [run.workload for run in store.runs()] == ["resnet18.C2"]


def test_a_log_of_version_0_1_alone_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    path = tmp_path / "vta.log"
    path.write_text(OLD + "\n")
    assert hilt(["log", "import", str(path)]) == 2
    printed = capsys.readouterr().err
    assert "1 left out: log version 0.1" in printed and "holds no records" in printed


def test_a_split_whose_outer_factor_is_no_factor_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vta.log"
    path.write_text(line([*C2, LAYOUT, "int32"]).replace("[7, 8]", "[0, 8]") + "\n")
    with pytest.raises(LogFormatError, match="line 1: knob tile_h splits into"):
        read_tvm_log(path)
