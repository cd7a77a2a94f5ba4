"""`hilt dataset import`, `replay` and `export` on records of another accelerator."""

from __future__ import annotations

import csv
import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from hilt.cli.dataset_files import _summary
from hilt.cli.main import run


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a CSV of 24 configurations; 6 of them are invalid, and the best takes 101.25 us."""
    monkeypatch.setenv("HILT_HOME", str(tmp_path / "home"))
    path = tmp_path / "gpu.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["block", "unroll", "microseconds"])
        for block in range(6):
            for unroll in range(4):
                best = (block, unroll) == (4, 1)
                writer.writerow([block, unroll, 101.25 if best else "" if unroll == 3 else 200 + 10 * block + unroll])
    return path


def test_records_come_in_under_the_files_name_or_another(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, name in (([], "gpu"), (["--name", "tesla"], "tesla")):
        assert run(["dataset", "import", str(records), *words]) == 0
        assert capsys.readouterr().out == f"{name}: 24 configurations, 18 valid, best 101.250 µs\n"


def test_records_without_a_valid_one_have_no_best(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records.write_text("block,microseconds\n1,\n2,\n")
    assert run(["dataset", "import", str(records)]) == 0
    assert capsys.readouterr().out == "gpu: 2 configurations, 0 valid, none\n"
    assert run(["dataset", "replay", "gpu"]) == 2
    assert "gpu has no valid configuration" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["csv", "kerneltuner"])
def test_what_is_exported_comes_in_again(
    records: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["dataset", "import", str(records)]) == 0
    out = tmp_path / f"out.{'csv' if form == 'csv' else 'json'}"
    capsys.readouterr()
    assert run(["dataset", "export", "gpu", str(out), "--form", form]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith(f"{out}: gpu, 24 configurations, as ") and said.endswith(".card.md")
    assert run(["dataset", "import", str(out), "--name", "again"]) == 0
    assert "24 configurations, 18 valid, best 101.250 µs" in capsys.readouterr().out


def test_tuners_run_on_the_records(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if find_spec("hilt_experiments") is None:
        pytest.skip("the experiments are not installed")
    assert run(["dataset", "import", str(records)]) == 0
    words = ["dataset", "replay", "gpu", "--tuner", "random", "--tuner", "grid", "--trials", "24", "--seeds", "3"]
    capsys.readouterr()
    assert run([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["items"]
    assert [row["tuner"] for row in rows] == ["random"] * 3 + ["grid"] * 3
    assert all(row["off"] == 0 and row["trials"] == 24 and row["invalid"] == 6 for row in rows)
    assert run(words) == 0
    said = capsys.readouterr().out.splitlines()
    cells = {line.split()[0]: line.split()[1:] for line in said if line.startswith(("random", "grid"))}
    assert [cells[name][0] for name in ("random", "grid")] == ["3", "3"]
    assert all(cell[2:] == ["0", "0.0%", "25%"] for cell in cells.values())
    assert cells["grid"][1] == str(rows[3]["to_1%"])
    assert said[-1] == "gpu: best 101.250 µs of 18 valid configurations"


def test_the_summary_of_a_tuner_counts_runs_that_never_came_near() -> None:
    def row(found: int | None, off: float | None, invalid: int) -> dict[str, object]:
        return {"to_1%": found, "off": off, "invalid": invalid, "trials": 40}

    rows = [row(4, 0.0, 10), row(9, 0.005, 0), row(None, 0.25, 30)]
    assert _summary("grid", rows, 40) == ("grid", "3", "9", "1", "0.5%", "33%")
    assert _summary("grid", rows[1:], 40) == ("grid", "2", "25", "1", "12.8%", "38%")
    assert _summary("grid", [row(None, None, 40)], 40) == ("grid", "1", ">40", "1", "inf%", "100%")
    assert _summary("grid", [row(40, 0.01, 0)], 40)[2] == "40", "the last trial is still one"
