"""The tools of an experiment: its runs, and the places of its tables, plots and comparisons."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilt.atomic_write import atomic_write
from hilt.measure.dataset import DatasetKey
from hilt.measure.dataset.build import provenance
from hilt.schedule.checks import Checks
from hilt_experiments.contenders import Contender, known
from hilt_experiments.errors import ExperimentError
from hilt_experiments.replay import Protocol
from hilt_experiments.runs import Cell, Report, Runs, perform

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PLOT_INCHES = 3.2


@dataclass(frozen=True)
class BenchSettings:
    """The size of an experiment. None means the experiment's own default, or with `full` the size in its paper."""

    seeds: int | None = None
    workloads: tuple[str, ...] | None = None
    full: bool = False
    quick: bool = False
    """The small size of the catalogue; `full` is False then."""
    jobs: int = 0
    checks: str | None = None
    tuners: tuple[str, ...] = ()
    """Tuners to add to those that an experiment compares: names, or FILE.py:CLASS."""
    seed: int | None = None
    """Seed of the generator of worlds, of the experiments that draw any."""


@dataclass(frozen=True)
class ClaimComparison:
    """A claim with the paper's figure and ours; `note` names the difference, if there is one."""

    claim: str
    paper: str
    ours: str
    note: str = ""

    def line(self) -> str:
        return f"{self.claim}: paper {self.paper}, ours {self.ours}{f' ({self.note})' if self.note else ''}"


@dataclass
class Bench:
    """One experiment being held; everything it writes is in `folder`."""

    name: str
    settings: BenchSettings
    folder: Path
    report: Report
    comparisons: list[ClaimComparison] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)
    summary: list[dict[str, Any]] = field(default_factory=list)
    """A row for each tuner and place, for the terminal's table: see `summary_row` of hilt_experiments.headline."""
    seed_rows: list[dict[str, Any]] = field(default_factory=list)
    """A row for each run of a tuner on a dataset, for seeds.csv."""
    _started: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def seeds(self, default: int, full: int) -> int:
        """Return the number of seeds."""
        return self.settings.seeds or (full if self.settings.full else default)

    def workloads(self, default: Sequence[str], full: Sequence[str]) -> list[str]:
        """Return the names of the workloads.

        Raises:
            ExperimentError: The experiment does not have one of the workloads.
        """
        if self.settings.workloads is None:
            return list(full if self.settings.full else default)
        for name in self.settings.workloads:
            if name not in full:
                raise ExperimentError(f"{self.name} has no workload {name!r}; it has {', '.join(full)}")
        return list(self.settings.workloads)

    def added(self) -> list[Contender]:
        """Return the contenders that the user added, under their class's name. Raises the errors of loading a tuner."""
        contenders = [Contender.of(name, name.rpartition(":")[2]) for name in self.settings.tuners]
        for contender in contenders:
            contender.all_options()
        return contenders

    def levels(self, every: Sequence[Checks]) -> list[Checks]:
        """Return the levels of checks.

        Raises:
            ExperimentError: The experiment does not have the level.
        """
        wanted = [each for each in every if self.settings.checks in (None, each)]
        if not wanted:
            raise ExperimentError(f"{self.name} has no level {self.settings.checks!r}; it has {', '.join(every)}")
        return wanted

    def runs(
        self,
        subjects: Sequence[DatasetKey],
        contenders: Iterable[Contender],
        protocol: Protocol,
        seeds: int,
        protocols: dict[str, Protocol] | None = None,
    ) -> dict[str, list[Runs]]:
        """Return, by contender's label, its runs on each subject.

        A contender that is not installed is left out, with a line. `protocols` holds, by label, the protocol of
        each contender that does not run under `protocol`.
        """
        there = self.those_here(contenders)
        pairs = [(subject, contender) for subject in subjects for contender in there]
        return self.runs_of(pairs, protocol, seeds, protocols)

    def runs_of(
        self,
        pairs: Sequence[tuple[DatasetKey, Contender]],
        protocol: Protocol,
        seeds: int,
        protocols: dict[str, Protocol] | None = None,
    ) -> dict[str, list[Runs]]:
        """Return the same as `runs` for these pairs: a contender's options may differ from subject to subject."""
        cells = [
            Cell(subject, contender, (protocols or {}).get(contender.label, protocol)) for subject, contender in pairs
        ]
        results: dict[str, list[Runs]] = {}
        for runs in perform(cells, seeds, self.settings.jobs, self.report):
            results.setdefault(runs.cell.contender.label, []).append(runs)
            self.seed_rows += runs.seed_rows()
        return results

    def those_here(self, contenders: Iterable[Contender]) -> list[Contender]:
        """Return the contenders that are installed. Raises ExperimentError if none is."""
        there, lines = known(contenders)
        for line in lines:
            self.report(line)
        if not there:
            raise ExperimentError(f"none of the tuners of {self.name} is here; {'; '.join(lines)}")
        return there

    def table(self, name: str, rows: Sequence[dict[str, Any]]) -> Path:
        """Write a CSV; its columns are the first row's keys."""
        path = self.folder / f"{name}.csv"
        with atomic_write(path) as file:
            writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        self.written.append(path)
        return path

    @contextmanager
    def plot(self, name: str, rows: int = 1, columns: int = 1, wide: float = 1.3) -> Iterator[list[Axes]]:
        """Yield axes to draw on, row by row; write them as PNG and SVG at the end.

        Raises ExperimentError without matplotlib.
        """
        try:
            import matplotlib
        except ImportError as error:
            raise ExperimentError("plots need matplotlib: pip install 'hilt[experiments]'") from error
        matplotlib.use("Agg")
        # The same data gives the same file.
        matplotlib.rcParams["svg.hashsalt"] = "hilt"
        from matplotlib import pyplot

        size = (_PLOT_INCHES * wide * columns, _PLOT_INCHES * rows)
        figure, axes = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
        try:
            yield list(axes.ravel())
            for suffix in ("png", "svg"):
                path = self.folder / f"{name}.{suffix}"
                figure.savefig(path, dpi=130, metadata={"Date": None} if suffix == "svg" else None)
                self.written.append(path)
        finally:
            pyplot.close(figure)

    def compare(self, claim: str, paper: str, ours: str, note: str = "") -> None:
        """Keep a comparison, and print it as a line: the paper's figure and ours."""
        self.keep(claim, paper, ours, note)
        self.report(self.comparisons[-1].line())

    def keep(self, claim: str, paper: str, ours: str, note: str = "") -> None:
        """Keep a comparison for about.json alone: the terminal has it in the summary's table."""
        self.comparisons.append(ClaimComparison(claim, paper, ours, note))

    def finish(self) -> None:
        """Write the comparisons, with the settings, time, place and versions of the run, and a row for each seed."""
        if self.seed_rows:
            self.table("seeds", self.seed_rows)
        about = {
            "experiment": self.name,
            "settings": asdict(self.settings),
            "comparisons": [asdict(each) for each in self.comparisons],
            "files": [path.name for path in self.written],
            "started": self._started,
            "seconds": time.time() - self._started,
            **provenance(),
        }
        with atomic_write(self.folder / "about.json") as file:
            json.dump(about, file, indent=2)
            file.write("\n")
