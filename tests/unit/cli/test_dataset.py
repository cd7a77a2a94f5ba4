"""`hilt dataset` and `hilt bench` as people type them."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import wait
from importlib.util import find_spec
from pathlib import Path
from time import sleep

import pytest

from hilt.cli.executors import executor as executor_of
from hilt.cli.main import run
from tests.unit.measure.dataset.small import WORKLOAD

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    return tmp_path


def built() -> int:
    return run(["dataset", "build", WORKLOAD.name, "--orders", "1", "--jobs", "1", "--rtl-sample", "0"])


@pytest.mark.slow
def test_a_dataset_is_built_once_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert built() == 0
    assert "golden model: 0 of 8 outcomes differ" in capsys.readouterr().out
    assert built() == 0
    assert "is there already" in capsys.readouterr().out
    assert run(["dataset", "list", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["items"]
    assert row["configurations"] == 96 and 0 < row["valid"] < 96
    assert run(["dataset", "show", row["name"][:8], "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert sum(shown["outcomes"].values()) == 96 and shown["identity"]["checks"] == "compiler"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dataset", "build"], "name a workload, or give --all"),
        (["dataset", "build", "resnet18.C2", "--all"], "name a workload, or give --all"),
        (["dataset", "build", "resnet18.C2", "--checks", "loose"], "'loose' is none of compiler, strict, tvm, off"),
        (["dataset", "build", "resnet18.C2", "--space", "ml2", "--checks", "tvm"], "about TVM's own space"),
        (["dataset", "build", "resnet18.C2", "--board-model", "pink"], "no virtual board 'pink'"),
        (["dataset", "build", "resnet18.C99"], "no workload named 'resnet18.C99'"),
        (["dataset", "show", "nothing"], "no dataset is called 'nothing'"),
        (["bench"], "name an experiment; --list shows them"),
        (["bench", "hw-aware-fig55"], "no experiment is called 'hw-aware-fig55'; did you mean hw-aware-fig5"),
        (["bench", "hw-aware-table2", "--workloads", "resnet18.C2"], "has no workload 'resnet18.C2'"),
        (["bench", "hw-aware-fig3", "--workloads", "deepbench.3"], "there is no dataset deepbench.3@pynq.tvm"),
    ],
)
def test_a_wrong_argument_gets_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


@pytest.mark.slow
def test_an_experiment_writes_data_plot_and_comparison(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if find_spec("matplotlib") is None:
        pytest.skip("matplotlib is an extra: pip install 'hilt[experiments]'")
    assert run(["bench", "hw-aware-table2", "--workloads", "deepbench.48", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["hw-aware-table2"]
    folder = home / "experiments" / "hw-aware-table2"
    assert {path.name for path in folder.iterdir()} == {"table2.csv", "figure1.png", "figure1.svg", "about.json"}
    with (folder / "table2.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["configurations"] == row["paper_configurations"] == "2240"
    about = json.loads((folder / "about.json").read_text())
    assert about["comparisons"] == said["comparisons"] and about["comparisons"][0]["paper"] == "0.083 (0.008-0.231)"
    assert {"commit", "machine", "seconds", "settings"} <= set(about)


def test_every_experiment_can_be_found(capsys: pytest.CaptureFixture[str]) -> None:
    from importlib import import_module

    from hilt_experiments.catalogue import EXPERIMENTS

    assert run(["bench", "--list"]) == 0
    listed = capsys.readouterr().out
    for name, each in EXPERIMENTS.items():
        module, _, function = each.function.partition(":")
        assert callable(getattr(import_module(f"hilt_experiments.{module}"), function)), name
        assert name in listed


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["bench", "trials"], "hilt bench"),
        (["bench", "--list"], "hilt bench"),
        (["dataset", "build", "--all"], "hilt dataset build --all"),
        (["glimpse", "train", "--output", "weights.npz"], "hilt glimpse train"),
    ],
)
def test_without_the_extra_a_command_names_it(
    arguments: list[str], command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hilt.cli.experiments_extra.PACKAGE", "hilt_experiments_that_nobody_installed")
    assert run(arguments) == 2
    assert capsys.readouterr().err == (
        f"hilt: `{command}` needs the package hilt-experiments: pip install 'hilt[experiments]', "
        "or from a clone: pip install ./experiments\n"
    )


def test_a_signal_that_is_ignored_stays_so() -> None:
    """A signal that is ignored stays so, as under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with executor_of(1, None):
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def wait_for_another(fifo: Path) -> None:
    """Start a process that opens a fifo for as long as it lives, as a compiler works, and wait for its end."""
    subprocess.run(["sh", "-c", 'exec 3>"$0"; echo open >&3; exec sleep 1000', str(fifo)], check=True)


def test_the_end_of_a_build_ends_what_its_processes_started(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(KeyboardInterrupt), executor_of(1, None) as executor:
        executor.submit(wait_for_another, fifo)
        lives = fifo.open()
        assert lives.readline() == "open\n"
        raise KeyboardInterrupt
    with lives:
        assert lives.read() == "", "nobody holds it any more"


@pytest.fixture
def hangup_by_default() -> Iterator[None]:
    """Undo `nohup` for a test."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("ending", [KeyboardInterrupt, signal.SIGTERM, signal.SIGHUP])
def test_the_end_of_a_build_ends_its_processes_at_once(
    ending: type[BaseException] | signal.Signals, hangup_by_default: None
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises((KeyboardInterrupt, SystemExit)) as ended, executor_of(2, None) as executor:
        assert executor.submit(signal.getsignal, signal.SIGINT).result() is signal.SIG_IGN
        working = [executor.submit(sleep, 1000.0) for _ in range(9)]
        wait(working, timeout=0.1)
        if isinstance(ending, signal.Signals):
            signal.raise_signal(ending)
        raise KeyboardInterrupt
    assert not multiprocessing.active_children()
    assert signal.getsignal(signal.SIGTERM) is before
    assert getattr(ended.value, "code", None) == (128 + ending if isinstance(ending, signal.Signals) else None)
