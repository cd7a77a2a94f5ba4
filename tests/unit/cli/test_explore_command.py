"""`hilt explore`: the designs that are evaluated and verified, its output, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hilt.cli import explore as command
from hilt.cli.exit_codes import Exit
from hilt.cli.main import run as hilt
from hilt.explore import exploration, subject, verify
from hilt.explore.area import Area
from hilt.explore.design import Design
from hilt.explore.exploration import Evaluation, Task
from hilt.explore.inference import DesignInference
from hilt.explore.subject import Subject
from hilt.explore.verify import DesignVerification
from hilt.network.latency import Latency

SWEEP = """
[base]
parameters = "pynq"
[sweep]
clock_mhz = [100, 200, 50]
"""
Captured = pytest.CaptureFixture[str]


class Bench:
    """The compiler and the RTL, which answer at once."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sweep = home / "sweep.toml"
        self.sweep.write_text(SWEEP)
        self.note = ""
        self.tasks: list[Task] = []
        self.processes: list[tuple[int, str | None]] = []
        self.verified: list[Design] = []
        self.cycles = 200_000
        self.areas = [
            Area(34_473, 25_000, 130, 112.5, "model"), Area(50_000, 26_000, 130, 112.5, "model"),
            Area(900_000, 1, 1, 1, "model"),
        ]  # fmt: skip
        self.microseconds = [4000.0, 2000.0, 0.0]
        """Latency of each design; the last has no schedule."""
        monkeypatch.setattr("plotly.offline.get_plotlyjs", lambda: "")
        monkeypatch.setattr(
            subject, "load_subject", lambda name: Subject("small", None, (("resnet18.C5", 1),), self.note)
        )
        monkeypatch.setattr(exploration, "explore", self._explore)
        monkeypatch.setattr(verify, "verify", self._verify)
        monkeypatch.setattr(command, "executor", self._executor)

    @contextmanager
    def _executor(self, jobs: int, cluster: str | None) -> Iterator[None]:
        self.processes.append((jobs, cluster))
        yield None

    def _explore(self, tasks: Sequence[Task], folder: Path, executor: None, progress: Callable[..., None]) -> Any:
        assert folder.is_dir()
        self.tasks = list(tasks)
        progress(len(tasks), len(tasks), None)
        return [
            Evaluation(
                task.design,
                DesignInference((), 1, Latency(took, 0.0, 0.0, 0.0, 1), False, "" if took else "no schedule"),
                area,
                0.1,
            )
            for task, took, area in zip(tasks, self.microseconds, self.areas, strict=True)
        ]

    def _verify(
        self, network: Subject, designs: Sequence[Design], folder: Path, executor: None, progress: Callable[..., None]
    ) -> list[DesignVerification]:
        assert folder.is_dir() and network.name == "small"
        self.verified = list(designs)
        shown = [DesignVerification("small", "done", 200_000, self.cycles, True) for _ in designs]
        progress(1, len(designs), None)
        progress(len(designs), len(designs), (designs[-1], shown[-1]))
        return shown

    def run(self, *options: str) -> int:
        return hilt(["explore", "nets/small.onnx", "--sweep", str(self.sweep), *options])


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "500")
    return Bench(tmp_path, monkeypatch)


def test_the_front_is_printed_the_fastest_first_and_the_page_is_written(
    bench: Bench, capsys: Captured, tmp_path: Path
) -> None:
    assert bench.run() == Exit.OK
    folder = tmp_path / "explore" / "small"
    said = capsys.readouterr()
    header, fast, base, *rest = said.out.splitlines()
    assert header.split("  ")[0] == "design" and header.split()[1:4] == ["latency", "ms", "VTA"]
    assert fast.split()[-7:] == ["2.000", "2.000", "500.0", "50,000", "26,000", "130", "112.5"] and "200 MHz" in fast
    assert base.split()[-7:] == ["4.000", "4.000", "250.0", "34,473", "25,000", "130", "112.5"] and "(base)" in base
    assert rest[0].startswith("3 designs for small, 2 on the Pareto front") and "1 without a schedule" in rest[0]
    assert rest[-1].endswith(f"; page: {folder / 'designs.html'}") and len(rest) == 2
    assert "3 designs for small" in (folder / "designs.html").read_text() and said.err == ""
    assert [task.design.clock_hz for task in bench.tasks] == [100_000_000, 200_000_000, 50_000_000]
    assert {task.area for task in bench.tasks} == {"model"} and bench.verified == []
    assert bench.processes == [(0, None)], "one a core; nothing is verified unless it is asked for"


def test_json_has_standard_output_for_itself(bench: Bench, capsys: Captured, tmp_path: Path) -> None:
    bench.note = "conv1 is in float"
    assert bench.run("--json", "--verify", "1", "--output", str(tmp_path / "out"), "--area", "yosys") == Exit.OK
    out, err = capsys.readouterr()
    said = json.loads(out)
    assert out.count("\n") == 1 and (said["kind"], said["network"], said["part"]) == ("exploration", "small", None)
    assert (said["front"], said["base"], said["refused"]) == ([1, 0], 0, [])
    assert [each["milliseconds"] for each in said["designs"]] == [4.0, 2.0, None]
    assert [each["images_a_second"] for each in said["designs"]] == [250.0, 500.0, None]
    assert said["verified"][0]["design"] == 1 and said["verified"][0]["agrees"]
    assert said["page"] == str(tmp_path / "out" / "designs.html")
    title = bench.verified[0].title
    assert err.splitlines() == [
        "nets/small.onnx: conv1 is in float; VTA's layers alone are counted",
        "RTL: 1 designs to verify; 1 agreed before",
        f"RTL 1/1: {title}: small: predicted 200,000 cycles, RTL 200,000, agree",
    ]
    assert {task.area for task in bench.tasks} == {"yosys"}


def test_cycles_that_differ_on_the_rtl_are_a_failure(bench: Bench, capsys: Captured, tmp_path: Path) -> None:
    bench.cycles = 200_001
    assert bench.run("--verify", "9", "--jobs", "2") == Exit.NOTHING_VERIFIED
    assert [design.clock_hz for design in bench.verified] == [200_000_000, 100_000_000]
    assert bench.processes == [(2, None), (2, None)]
    lines = [line for line in capsys.readouterr().out.splitlines() if line.endswith("RTL 200,001, DIFFER")]
    assert len(lines) == 2 and lines[0].startswith(bench.verified[0].title)
    assert "On the RTL" in (tmp_path / "explore" / "small" / "designs.html").read_text()


def test_no_more_processes_than_designs_and_a_cluster_is_asked(bench: Bench) -> None:
    assert bench.run("--jobs", "8", "--cluster", "tcp://host:8786", "--verify", "1") == Exit.OK
    assert bench.processes == [(3, "tcp://host:8786"), (1, "tcp://host:8786")]


def test_without_a_design_that_fits_the_part_there_is_no_front(bench: Bench, capsys: Captured) -> None:
    bench.microseconds = [4000.0, 0.0, 1000.0]
    assert bench.run() == Exit.OK
    assert "2 on the Pareto front" in capsys.readouterr().out
    bench.areas[0] = bench.areas[2]
    assert bench.run("--part", "7z020") == Exit.NOTHING_VERIFIED
    assert "0 on the Pareto front" in capsys.readouterr().out


def test_combinations_that_make_no_vta_are_named(bench: Bench, capsys: Captured) -> None:
    bench.sweep.write_text(SWEEP + "LOG_INP_BUFF_SIZE = [15, 21]\n")
    bench.run()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("refused: ") and "LOG_INP_BUFF_SIZE=21" in line and "and 2 more" in line
    assert len(bench.tasks) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--area", "vivado"], "--area 'vivado' is neither model nor yosys"),
        (["--part", "7z010"], "--part '7z010' is none of 7z020, xczu3eg, xczu7ev, xczu9eg"),
    ],
)
def test_what_is_refused_is_refused_before_anything_is_compiled(
    bench: Bench, capsys: Captured, options: list[str], words: str
) -> None:
    assert bench.run(*options) == Exit.BAD_INPUT
    assert words in capsys.readouterr().err and bench.tasks == []
