"""Datasets in Kernel Tuner's cache files and in CSV: written rows come back, and nothing malformed comes in."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilt.measure.dataset import Dataset, DatasetError, DatasetStore, recorded_space
from hilt.measure.dataset.dataset import LARGEST_METADATA
from hilt.measure.dataset.exchange import export_recorded, import_recorded
from hilt.measure.dataset.recorded_space import ABSENT, RecordedSpace, is_imported, space_of, values_at, values_of
from hilt.run_choices import DatasetForm
from hilt.trial import Outcome

OWN = Dataset.read(Path(__file__).parent / "version_1" / "small.npz")
CACHE: dict[str, Any] = {
    "device_name": "NVIDIA A100",
    "kernel_name": "gemm",
    "problem_size": [4096, 4096],
    "tune_params_keys": ["MWG", "precision", "alpha"],
    "tune_params": {"MWG": [16, 32], "precision": ["half", "single"], "alpha": [0.5, 1.0]},
    "objective": "time",
    "cache": {
        "16,half,0.5": {"MWG": 16, "precision": "half", "alpha": 0.5, "time": 1.25, "times": [1.2, 1.3], "GFLOP/s": 7},
        "32,half,0.5": {"MWG": 32, "precision": "half", "alpha": 0.5, "time": 0.7512345},
        "16,single,1.0": {"MWG": 16, "precision": "single", "alpha": 1, "time": "RuntimeFailedConfig"},
        "32,single,1.0": {"MWG": 32, "precision": "single", "alpha": 1.0, "time": "CompilationFailedConfig"},
        "16,half,1.0": {"MWG": 16, "precision": "half", "alpha": 1.0, "__error__": "InvalidConfig"},
    },
}


@pytest.fixture
def store(tmp_path: Path) -> DatasetStore:
    return DatasetStore(tmp_path / "datasets")


def written(folder: Path, content: object, name: str = "gemm.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def results(dataset: Dataset) -> dict[tuple[Any, ...], tuple[str, float]]:
    """Return outcome and latency by knob values, of all that is on record."""
    knobs = values_of(dataset)
    return {
        tuple(values_at(index, knobs)): (str(dataset.outcome_of(index)), float(dataset.microseconds[index]))
        for index in range(len(dataset))
        if dataset.reason_of(index) != ABSENT
    }


def test_a_cache_file_is_read_with_its_errors_and_gaps(tmp_path: Path, store: DatasetStore) -> None:
    dataset = import_recorded(written(tmp_path, CACHE), "gemm@a100", store)
    found = results(dataset)
    assert found[16, "half", 0.5] == ("ok", 1250.0) and found[32, "half", 0.5] == ("ok", pytest.approx(751.2345))
    assert found[16, "single", 1.0][0] == "crash"
    assert found[32, "single", 1.0][0] == found[16, "half", 1.0][0] == "rejected"
    assert len(dataset) == 8 and len(found) == 5
    assert dataset.reason_of(dataset.best) == "" and dataset.optimum == pytest.approx(751.2345)
    again = store.find("gemm@a100")
    assert again.identity == dataset.identity and np.array_equal(again.cycles, dataset.cycles)
    with pytest.raises(DatasetError, match=r"of another accelerator.*hilt dataset replay gemm@a100"):
        again.subject()


@pytest.mark.parametrize("form", list(DatasetForm))
def test_an_own_dataset_comes_back_as_it_went(form: DatasetForm, tmp_path: Path, store: DatasetStore) -> None:
    path = tmp_path / "small.txt"
    card = export_recorded(OWN, path, form)
    back = import_recorded(path, "back", store)
    assert is_imported(back) and not is_imported(OWN)
    assert list(values_of(back)) == list(values_of(OWN)) and len(back) == len(OWN)
    assert np.array_equal(back.valid, OWN.valid) and back.best == OWN.best
    assert np.array_equal(back.microseconds[back.valid], OWN.microseconds[OWN.valid])
    if form is DatasetForm.CSV:
        assert results(back) == results(OWN)
        assert [back.reason_of(index) for index in range(len(back))] == [
            OWN.reason_of(index) for index in range(len(OWN))
        ]
    text = card.read_text()
    assert f"{int(OWN.valid.sum()):,} valid" in text and OWN.name in text and "Apache" in text
    assert all(f"| {name} |" in text for name in values_of(OWN))


@pytest.mark.parametrize("form", list(DatasetForm))
def test_an_imported_dataset_comes_back_too(form: DatasetForm, tmp_path: Path, store: DatasetStore) -> None:
    dataset = import_recorded(written(tmp_path, CACHE), "gemm", store)
    path = tmp_path / "again"
    card = export_recorded(dataset, path, form)
    assert results(import_recorded(path, "again", store)) == results(dataset)
    assert "NVIDIA A100" in card.read_text() and "Apache" not in card.read_text()


def test_an_exported_cache_has_all_that_kernel_tuners_schema_requires(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    export_recorded(OWN, path, DatasetForm.KERNELTUNER)
    cache = json.loads(path.read_text())
    required = {"schema_version", "device_name", "kernel_name", "problem_size", "tune_params_keys", "tune_params"}
    assert required | {"objective", "cache"} == set(cache) and cache["schema_version"] == "1.0.0"
    assert all(isinstance(size, int) for size in cache["problem_size"])
    lines = {"time", "compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time"}
    for key, line in cache["cache"].items():
        assert key == ",".join(str(line[name]) for name in cache["tune_params_keys"])
        assert lines | {"timestamp"} <= set(line)
    times = [line["time"] for line in cache["cache"].values()]
    assert min(time for time in times if not isinstance(time, str)) == OWN.optimum / 1000
    assert {time for time in times if isinstance(time, str)} <= {"CompilationFailedConfig", "RuntimeFailedConfig"}


def test_an_exported_csv_is_plain(tmp_path: Path) -> None:
    path = tmp_path / "small.csv"
    export_recorded(OWN, path, DatasetForm.CSV)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(OWN) and list(rows[0])[-3:] == ["outcome", "reason", "microseconds"]
    assert min(float(row["microseconds"]) for row in rows if row["outcome"] == "ok") == OWN.optimum


def test_a_csv_needs_only_knobs_and_latencies(tmp_path: Path, store: DatasetStore) -> None:
    text = "unroll,microseconds,layout\n2,10.5,nchw\n1,,nchw\n2,9.25,nhwc\n"
    dataset = import_recorded(written(tmp_path, text, "a.csv"), "a", store)
    assert results(dataset) == {
        (2, "nchw"): ("ok", 10.5),
        (1, "nchw"): ("crash", np.inf),
        (2, "nhwc"): ("ok", 9.25),
    }
    assert [knob.values for knob in space_of(dataset).knobs] == [(1, 2), (0, 1)]


def changed(**changes: object) -> dict[str, object]:
    return {**CACHE, **changes}


LINE = {"MWG": 16, "precision": "half", "alpha": 0.5}
MALFORMED: list[tuple[object, str]] = [
    ("", "no column 'microseconds'"),
    ("a,b\n1,2\n", "no column 'microseconds'"),
    ("a,a,microseconds\n1,2,3\n", "a column twice"),
    ("a,microseconds\n1,2,3\n", "line 2 has 3 fields; the first has 2"),
    ("a,microseconds\n1,fast\n", "line 2 has no result: .*'fast'"),
    ("a,microseconds\n1,nan\n", "record 1: its latency is nan"),
    ("a,microseconds\n1,-3\n", "record 1: its latency is -3.0"),
    ("a,microseconds\n1,1e99\n", "record 1: its latency is 1e\\+99"),
    ("a,microseconds\n1,2\n1,3\n", "record 2 is of a configuration that an earlier one has"),
    ("a,outcome,microseconds\n1,well,3\n", "line 2 has no result: outcome 'well'"),
    ("a,outcome,microseconds\n1,board_lost,3\n", "a lost board is no result"),
    ('a,microseconds\n"1,2\n', "it is no CSV"),
    ("microseconds\n2\n", "it has 0 knobs"),
    ("{", "it is not JSON"),
    ("[" * 100_000, "it is not JSON"),
    ([1], "no object `cache`"),
    ({"cache": []}, "no object `cache`"),
    (changed(objective="GFLOP/s"), "objective is 'GFLOP/s'; hilt reads time"),
    (changed(tune_params_keys=["MWG", "MWG"]), "no list of different names"),
    (changed(tune_params_keys=None), "no list of different names"),
    (changed(tune_params={"MWG": [16, 32]}), "no list of values for each knob"),
    (changed(tune_params=CACHE["tune_params"] | {"MWG": []}), "knob MWG has 0 values"),
    (changed(tune_params=CACHE["tune_params"] | {"MWG": [16, 16]}), "knob MWG has a value twice"),
    (changed(tune_params=CACHE["tune_params"] | {"MWG": [16, [32]]}), "numbers and short texts"),
    (changed(tune_params=CACHE["tune_params"] | {"MWG": [16]}), "record 2: MWG is '32', which is none of its values"),
    (changed(tune_params=CACHE["tune_params"] | {"MWG": list(range(5000))}), "5000 values; it must have 1 to 4096"),
    (changed(cache={"a": 1}), "configuration 'a' is no object"),
    (changed(cache={"a": {"MWG": 16}}), "has no value of precision"),
    (changed(cache={"a": LINE}), "has no `time`"),
    (changed(cache={"a": LINE | {"time": True}}), "has no `time`"),
    (changed(cache={"a": LINE | {"time": 0}}), "its latency is 0.0"),
]


@pytest.mark.parametrize(("content", "said"), MALFORMED)
def test_a_malformed_file_is_one_clear_line(content: object, said: str, tmp_path: Path, store: DatasetStore) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DatasetError, match=said) as raised:
        import_recorded(path, "bad", store)
    assert str(raised.value).startswith(f"{path} is no dataset: ") and "\n" not in str(raised.value)
    assert not store.paths()


def test_sizes_are_bounded(tmp_path: Path, store: DatasetStore, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = {f"k{number}": list(range(64)) for number in range(5)}
    with pytest.raises(DatasetError, match=r"span 1,073,741,824 configurations; at most 16,777,216"):
        RecordedSpace("wide", wide)
    with pytest.raises(DatasetError, match="65 knobs"):
        RecordedSpace("many", {f"k{number}": [1] for number in range(65)})
    long = {f"k{number}": [f"{value:0200}" for value in range(2)] for number in range(20)}
    with pytest.raises(DatasetError, match="names and values of its knobs are too long"):
        RecordedSpace("long", {"a": [f"{value:0199}" for value in range(4000)]}).dataset()
    assert long
    path = written(tmp_path, CACHE)
    monkeypatch.setattr("hilt.measure.dataset.exchange.LARGEST_FILE", 100)
    with pytest.raises(DatasetError, match=r"it has [\d,]+ bytes; at most 100 are read"):
        import_recorded(path, "large", store)
    assert recorded_space.LARGEST_FILE == 256 << 20


@pytest.mark.parametrize("metadata", ["x" * (LARGEST_METADATA // 4 + 1), ["{}", "{}"]], ids=["too long", "two texts"])
def test_other_metadata_are_not_read(metadata: object, tmp_path: Path) -> None:
    path = tmp_path / "large.npz"
    np.savez(path, metadata=np.array(metadata))
    with pytest.raises(DatasetError, match="its metadata are too large"):
        Dataset.read(path)


@pytest.mark.parametrize("name", ["", ".hidden", "../up", "a b", "a/b", "x" * 101])
def test_a_name_is_no_path(name: str, tmp_path: Path, store: DatasetStore) -> None:
    with pytest.raises(DatasetError, match="is no dataset's name"):
        import_recorded(written(tmp_path, CACHE), name, store)


def test_an_own_dataset_keeps_its_name_and_an_import_replaces_an_import(tmp_path: Path, store: DatasetStore) -> None:
    own = Dataset({**OWN.metadata, "name": "own"}, OWN.outcome, OWN.reason, OWN.cycles)
    own.write(store.folder / "own.0123456789ab.npz")
    path = written(tmp_path, CACHE)
    with pytest.raises(DatasetError, match="own is the name of a dataset that hilt built"):
        import_recorded(path, "own", store)
    import_recorded(path, "other", store)
    import_recorded(path, "other", store)
    assert len(store.paths()) == 2


def test_a_reason_is_kept_and_reasons_are_bounded() -> None:
    knobs = {"a": list(range(300))}
    records = [recorded_space.SpaceRecord([value], Outcome.CRASH, reason=f"reason {value}") for value in range(300)]
    dataset = RecordedSpace("many", knobs, records=records).dataset()
    assert dataset.reason_of(3) == "reason 3" and dataset.reason_of(299) == ""


@pytest.mark.parametrize("name", ["name", "device", "kernel"])
def test_a_name_has_a_longest_length(name: str) -> None:
    longest = recorded_space._LONGEST_TEXT
    texts = {"name": "n", "device": "", "kernel": ""}
    RecordedSpace(**{**texts, name: "x" * longest}, knobs={"a": [1]})  # type: ignore[arg-type]
    with pytest.raises(DatasetError, match=f"a name is longer than {longest} characters"):
        RecordedSpace(**{**texts, name: "x" * (longest + 1)}, knobs={"a": [1]})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({}, "it has 0 knobs; it must have 1 to 64"),
        ({f"k{number}": [1] for number in range(64)}, None),
        ({"k" * 200: [1]}, None),
        ({"k" * 201: [1]}, f"a knob's name is '{'k' * 40}'"),
        ({"": [1]}, "a knob's name is ''"),
        ({"a\nb": [1]}, r"a knob's name is 'a\\nb'"),
        ({"a": list(range(4096))}, None),
        ({"a": list(range(4097))}, "knob a has 4097 values; it must have 1 to 4096"),
        ({"a": []}, "knob a has 0 values"),
        ({"a": ["v" * 200]}, None),
        ({"a": ["v" * 201]}, f"knob a has the value '{'v' * 40}'; numbers and short texts are read"),
        ({"a": [float("inf")]}, "knob a has the value 'inf'"),
        ({"a": [None]}, "knob a has the value 'None'"),
        ({"a": [1, 2, 1]}, "knob a has a value twice"),
        ({"a": list(range(4096)), "b": list(range(4096))}, None),
        ({"a": list(range(4096)), "b": list(range(4096)), "c": [1, 2]}, "span 33,554,432 configurations"),
    ],
)
def test_knobs_are_bounded(knobs: dict[str, Any], words: str | None) -> None:
    if words is None:
        RecordedSpace("n", knobs)
    else:
        with pytest.raises(DatasetError, match=words):
            RecordedSpace("n", knobs)


@pytest.mark.parametrize("latency", [None, 0.0, -1.0, float("nan"), 1e9 + 1])
def test_a_latency_is_above_0_and_at_most_1000_seconds(latency: float | None) -> None:
    record = recorded_space.SpaceRecord([1], Outcome.OK, latency)
    with pytest.raises(DatasetError, match="record 1: its latency is .*; it must be above 0 and at most 1,000 s"):
        RecordedSpace("n", {"a": [1, 2]}, records=[record]).dataset()


def test_latencies_are_kept_in_picoseconds_and_reasons_up_to_a_length() -> None:
    records = [
        recorded_space.SpaceRecord([0], Outcome.OK, 1e9),
        recorded_space.SpaceRecord([1], Outcome.OK, 1e-9),
        recorded_space.SpaceRecord([2], Outcome.CRASH, 5.0, "r" * 201),
    ]
    dataset = RecordedSpace("n", {"a": [0, 1, 2, 3]}, records=records).dataset()
    assert dataset.cycles.tolist() == [10**15, 1, 0, 0]
    assert [dataset.reason_of(index) for index in range(4)] == ["", "", "r" * 200, "absent"]
