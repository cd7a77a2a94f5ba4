"""All experiments one after another within a time, and one page of claims: the paper's figure beside hilt's.

An experiment that ran with the same settings and commit is not held again, so an interrupted run goes on. Datasets
that are missing are built.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from hilt.atomic_write import atomic_write
from hilt.measure.dataset import DatasetStore
from hilt.measure.dataset.build import build, provenance
from hilt.measure.dataset.check import Sampling
from hilt.measure.dataset.dataset_store import MissingDatasetError
from hilt.processes import processes
from hilt_experiments.bench import Bench, BenchSettings, ClaimComparison
from hilt_experiments.catalogue import Experiment
from hilt_experiments.claims import Judgement, State, judge
from hilt_experiments.errors import ExperimentError
from hilt_experiments.runs import Report

_SAMPLING = Sampling(rtl=0, golden=1, seed=0, cycles=10_000_000)
_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td,th{border-top:1px solid #ccc;padding:.3rem .5rem;text-align:left;"
    "vertical-align:top}code{font-size:85%}.reproduced{color:#060}.not-reproduced{color:#a00}"
)


@dataclass
class Everything:
    """The results so far, by the experiment's name."""

    settings: BenchSettings
    folder: Path
    report: Report
    until: float
    """Time (`time.monotonic()`) after which no other experiment begins."""
    experiments: dict[str, Experiment]

    def __post_init__(self) -> None:
        self.held: dict[str, list[ClaimComparison]] = {}
        self.absent: dict[str, str] = {}
        self.seeds: list[dict[str, Any]] = []

    def run(self) -> list[Judgement]:
        """Hold missing experiments, write the page and its tables, and return the claims with their states."""
        for name, entry in self.experiments.items():
            self._one(name, entry)
        judgements = judge(
            self.held, self.absent, {name: self._command(name, entry) for name, entry in self.experiments.items()}
        )
        self._write(judgements)
        return judgements

    def _one(self, name: str, entry: Experiment) -> None:
        if self.settings.quick and entry.quick is None:
            self.absent[name] = "not in --quick: it takes hours"
            return
        settings = entry.sized(self.settings)
        folder = self.folder / name
        if not _is_there(folder, settings):
            if time.monotonic() >= self.until:
                self.absent[name] = "the time was up; the same command goes on"
                return
            try:
                self._hold(name, entry, settings, folder)
            except ExperimentError as error:
                self.absent[name] = str(error)
                self.report(f"{name}: {error}")
                return
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        self.held[name] = [ClaimComparison(**each) for each in about["comparisons"]]
        self.seeds += [{"experiment": name, **row} for row in _rows(folder / "seeds.csv")]

    def _hold(self, name: str, entry: Experiment, settings: BenchSettings, folder: Path) -> None:
        started = time.monotonic()
        self.report(f"{name}: {entry.title}")
        with_datasets(lambda: entry.hold(Bench(name, settings, folder, self.report)), settings.jobs, self.report)
        self.report(f"{name}: {time.monotonic() - started:.0f} s")

    def _command(self, name: str, entry: Experiment) -> str:
        settings = entry.sized(self.settings)
        words = ["hilt bench", name, *(["--full"] if settings.full else [])]
        words += [f"--seeds {settings.seeds}"] if settings.seeds else []
        words += [f"--workloads {','.join(settings.workloads)}"] if settings.workloads else []
        return " ".join(words + ([f"--checks {settings.checks}"] if settings.checks else []))

    def _write(self, judgements: Sequence[Judgement]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        rows = [
            {"of": each.claim.of, "claim": each.claim.figure, "paper": each.claim.paper, "ours": each.ours}
            | {"state": str(each.state), "cause": each.cause, "command": each.command}
            for each in judgements
        ]
        _write_csv(self.folder / "claims.csv", rows)
        _write_csv(self.folder / "seeds.csv", self.seeds)
        with atomic_write(self.folder / "page.html") as file:
            file.write(page(judgements, str(provenance()["commit"])))


def with_datasets(hold: Callable[[], None], jobs: int, report: Report) -> None:
    """Hold an experiment, and build each dataset that it misses. Raises ExperimentError, DatasetError."""
    while True:
        try:
            hold()
        except MissingDatasetError as error:
            if error.subject is None:
                raise
            report(f"{error.subject.name} is built")
            with processes(jobs or 1) as workers:
                build([error.subject], DatasetStore(), workers, _SAMPLING)
        else:
            return


def page(judgements: Sequence[Judgement], commit: str) -> str:
    """Return the page of claims as HTML."""
    counts = {state: sum(each.state is state for each in judgements) for state in State}
    parts = [f"<!doctype html><meta charset=utf-8><title>hilt: claims</title><style>{_STYLE}</style><h1>Claims</h1>"]
    parts.append(f"<p>{escape(', '.join(f'{count} {state}' for state, count in counts.items() if count))}. ")
    parts.append(f"Commit {escape(commit or 'unknown')}. No figure is of a physical board.</p>")
    for of, group in groupby(judgements, key=lambda each: each.claim.of):
        second = "goal" if of == "hilt" else "paper"
        parts.append(f"<h2>{escape(of)}</h2><table><tr><th>claim<th>{second}<th>hilt<th>state<th>cause<th>command")
        parts += [_row(each) for each in group]
        parts.append("</table>")
    return "\n".join(parts) + "\n"


def _row(each: Judgement) -> str:
    cells = [escape(text) for text in (each.claim.figure, each.claim.paper, each.ours)]
    cells.append(f'<span class="{str(each.state).replace(" ", "-")}">{escape(each.state)}</span>')
    cells.append(escape(each.cause))
    cells.append(f"<code>{escape(each.command)}</code>" if each.command else "")
    return "<tr>" + "".join(f"<td>{cell}" for cell in cells)


def _is_there(folder: Path, settings: BenchSettings) -> bool:
    """Return True if the folder has the experiment's results with these settings, by the code of this commit."""
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    wanted = json.loads(json.dumps(asdict(replace(settings, jobs=0))))
    same = {**about.get("settings", {}), "jobs": 0} == wanted
    return bool(same and about.get("commit") == provenance()["commit"])


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with atomic_write(path) as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
