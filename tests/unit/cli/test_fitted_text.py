"""The output of `hilt silicon` and `hilt dataset` for known figures: errors, samples, existing datasets."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.cli import dataset, fit_machine, silicon
from hilt.cli.exit_codes import Exit
from hilt.cli.main import run as hilt
from hilt.silicon import advice
from hilt.silicon.fitted_machine import FittedMachine
from hilt.simulator.builds import shipped_builds
from hilt.store.autotvm_log import LogFormatError

MACHINE = next(iter(shipped_builds().machines.values()))
FITTED = FittedMachine(MACHINE, 1e-5, "older", 12, 2, 0.0123, 0.0456)
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path


def test_a_fitted_machine_says_how_far_it_can_be_trusted() -> None:
    lines = fit_machine._lines(FITTED)
    assert lines[: len(asdict(MACHINE))] == [f"{name:<16} {value:>10.4g}" for name, value in asdict(MACHINE).items()]
    assert lines[len(asdict(MACHINE)) :] == [
        "search began at the shipped machine older",
        "error on the 12 measurements of 2 workloads that it was fitted to: 1.2 %",
        "error on layers that a fit did not see: 4.6 %",
        "that is a rough machine; more measurements of other layers make it better",
    ]
    assert fit_machine._lines(replace(FITTED, unseen_error=0.04))[-1] == "error on layers that a fit did not see: 4.0 %"
    assert fit_machine._lines(replace(FITTED, unseen_error=None))[-1] == (
        "error on other layers: unknown; add a run of another layer"
    )


class Records:
    """Measurements of a bitstream."""

    def __init__(self, count: int) -> None:
        self.left_out = {"of another board": 3}
        self.measurements = [None] * count
        self.bitstream, self.board, self.accelerator = "b" * 64, "desk", None


@pytest.mark.parametrize("as_json", [False, True])
def test_a_machine_is_kept_and_written_for_its_bitstream(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, as_json: bool
) -> None:
    kept: list[Any] = []
    monkeypatch.setattr(fit_machine, "_gathered", lambda sources, board: Records(5))
    monkeypatch.setattr(fit_machine, "calibrate", lambda measured, accelerator, advance: advance(1, 2) or FITTED)
    monkeypatch.setattr(fit_machine, "keep_machine", lambda *given: kept.append(given) or "kept.json")
    output = home / "machine.json"
    fit_machine.fit_own(["run"], None, output, as_json)
    out, err = capsys.readouterr()
    assert kept == [("b" * 64, FITTED)] and err == "3 left out: of another board\n"
    values = json.loads(output.read_text())
    assert (values["board"], values["bitstream"], values["measurements"]) == ("desk", "b" * 64, 12)
    if as_json:
        assert json.loads(out) == {"schema": 1, "kind": "fitted_machine", **values}
    else:
        assert out.splitlines()[-1] == "kept in kept.json: tune, campaign and compile use it for desk"
    monkeypatch.setattr(fit_machine, "_gathered", lambda sources, board: Records(4))
    with pytest.raises(
        fit_machine.TooFewMeasurementsError, match=f"^4 verified measurements of {'b' * 16}; a fit needs 5"
    ):
        fit_machine.fit_own(["run"], None, None, False)


def test_a_log_names_no_bitstream(home: Path, capsys: Captured) -> None:
    log = home / "autotvm.log"
    log.write_text("")
    assert hilt(["silicon", "fit", str(log)]) == Exit.BAD_INPUT
    assert "an AutoTVM log does not name a bitstream; give --board" in capsys.readouterr().err
    log.write_text("no log\n")
    with pytest.raises(LogFormatError):
        fit_machine.fit_own([str(log)], "virtual:pynq_public", None, False)


@pytest.mark.parametrize("options", [[], ["--json"], ["--records", "r.jsonl"]])
def test_schedules_are_printed_as_they_are_chosen(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, options: list[str]
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(advice, "advice_for_network", lambda *given: asked.append(given) or iter(["C2", "C3"]))
    monkeypatch.setattr(advice, "advice_for_records", lambda *given: asked.append(given) or iter(["C2", "C3"]))
    monkeypatch.setattr(advice, "advice_lines", lambda layer: f"line of {layer}")
    monkeypatch.setattr(advice, "total_lines", lambda layers: [f"total of {len(layers)}"])
    monkeypatch.setattr(advice, "advice_json", lambda layers: {"layers": layers})
    assert hilt(["silicon", "choose", *options]) == Exit.OK
    out = capsys.readouterr().out
    if "--json" in options:
        assert json.loads(out)["layers"] == ["C2", "C3"]
    else:
        total = [] if "--records" in options else ["total of 2"]
        assert out.splitlines() == ["line of C2", "line of C3", *total]
    assert asked == [(Path("r.jsonl"),)] if "--records" in options else [("resnet18", "pynq_public")]
    assert silicon.application.info.no_args_is_help


def checked(**check: Any) -> Any:
    return SimpleNamespace(metadata={"check": check})


def test_the_check_of_a_sample_is_said_by_model() -> None:
    rtl = {"outcome": 1, "run": 4, "cycles_error": 0.00123}
    golden = {"outcome": 0, "run": 8}
    assert dataset._check_text(checked()) == "no sample was run"
    assert dataset._check_text(checked(rtl=rtl)) == "RTL: 1 of 4 outcomes differ, largest error of cycles 0.123%"
    assert dataset._check_text(checked(rtl=rtl, golden=golden)).endswith("%; golden model: 0 of 8 outcomes differ")


class Store:
    """Datasets by name; some of them exist."""

    def __init__(self, *there: str) -> None:
        self.there = there

    def has(self, subject: Any) -> bool:
        return subject.name in self.there

    def path_of(self, subject: Any) -> str:
        return f"{subject.name}.npz"


@pytest.mark.parametrize(("there", "built"), [((), ["1/2 a", "2/2 b"]), (("a",), ["2/2 b"]), (("a", "b"), [])])
def test_a_dataset_that_is_there_is_not_built_again(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, there: tuple[str, ...], built: list[str]
) -> None:
    made: list[str] = []
    monkeypatch.setattr("hilt.measure.dataset.DatasetStore", lambda: Store(*there))
    monkeypatch.setattr(dataset, "_subjects", lambda *given: [SimpleNamespace(name="a"), SimpleNamespace(name="b")])
    monkeypatch.setattr(
        dataset,
        "_build_group",
        lambda subjects, store, workers, sampling, place: made.append(f"{place} {subjects[0].name}"),
    )
    assert hilt(["dataset", "build", "resnet18", "--jobs", "1"]) == Exit.OK
    assert made == built
    assert capsys.readouterr().out.splitlines() == [f"{name} is there already: {name}.npz" for name in there]


def test_without_datasets_the_list_says_how_to_record_one(home: Path, capsys: Captured) -> None:
    assert hilt(["dataset", "list"]) == Exit.OK
    assert capsys.readouterr().out == "no datasets yet; `hilt dataset build WORKLOAD` records one\n"
    assert hilt(["dataset", "list", "--json"]) == Exit.OK
    assert json.loads(capsys.readouterr().out)["items"] == []
    assert hilt(["dataset", "build", "resnet18.C2", "--space", "rows"]) == Exit.BAD_INPUT
    assert "--space 'rows' is neither autotvm nor ml2" in capsys.readouterr().err


def test_a_damaged_dataset_is_named_and_the_others_are_listed(home: Path, capsys: Captured) -> None:
    records = home / "gpu.csv"
    records.write_text("block,microseconds\n1,5.5\n2,\n")
    assert hilt(["dataset", "import", str(records)]) == Exit.OK
    from hilt.measure.dataset import DatasetStore

    (path,) = DatasetStore().paths()
    (path.parent / f"broken{path.suffix}").write_bytes(b"no dataset")
    capsys.readouterr()
    assert hilt(["dataset", "list"]) == Exit.OK
    out, err = capsys.readouterr()
    header, row = out.splitlines()[:2]
    assert header.split()[:3] == ["dataset", "configurations", "valid"]
    assert row.split()[:4] == ["gpu", "2", "1", "5.5"] and err.startswith("hilt: ") and "broken" in err
    assert hilt(["dataset", "show", "gpu"]) == Exit.OK
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("gpu: 2 configurations, 1 valid, best 5.5 µs; ")
    assert any(line.split() == ["1", "ok"] for line in shown[1:4])
    assert hilt(["dataset", "show", "gpu", "--json"]) == Exit.OK
    said = json.loads(capsys.readouterr().out)
    assert (said["kind"], said["valid"], said["best_microseconds"]) == ("dataset", 1, 5.5) and "identity" in said
