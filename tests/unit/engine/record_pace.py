"""Record a run's messages to its statistics: `python -m tests.unit.engine.record_pace FILE WORKLOAD OPTION...`.

Adds a record to the JSON list in FILE. An OPTION is a field of RunSpec (`tuner=random`, `trials=24`, `seed=3`,
`orders=1`, `checks=tvm`, `board=virtual:pynq`) or, with a point in front, an option of the tuner (`.plan_size=8`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import monotonic
from typing import Any

from hilt import measure, paths
from hilt.engine import process
from hilt.engine.run_spec import RunSpec, make_run
from hilt.engine.run_statistics import RunStatistics
from hilt.store import Store, Trial, database_path

calls: list[list[Any]] = []
"""[seconds since the start of the process, method, arguments...] of each call."""


class RecordedStatistics(RunStatistics):
    """Notes each call with its time."""

    def add(self, trial: Trial) -> None:
        _note("add", trial.ordinal, str(trial.outcome))
        super().add(trial)

    def lowered(self, asked: int, lengths: Any) -> None:
        _note("lowered", asked, {ordinal: round(length) for ordinal, length in lengths.items()})
        super().lowered(asked, lengths)

    def measuring(self) -> None:
        _note("measuring")
        super().measuring()

    def told(self, trials: int, seconds: float) -> None:
        _note("told", trials, round(seconds, 2))
        super().told(trials, seconds)

    def confident(self, trials: int, confidence: float | None) -> None:
        _note("confident", trials, confidence)
        super().confident(trials, confidence)


def _note(*call: Any) -> None:
    calls.append([round(monotonic() - _BEGAN, 2), *call])


def main(path: str, workload: str, *options: str) -> None:
    """Run it, and add its record to the file."""
    given = dict(option.split("=", 1) for option in options)
    values = {key: int(value) if value.isdigit() else value for key, value in given.items()}
    own = {key[1:]: value for key, value in values.items() if key.startswith(".")}
    settings: dict[str, Any] = {key: value for key, value in values.items() if not key.startswith(".")}
    spec = RunSpec(**({"board": "virtual:pynq", "workload": workload, "tuner_options": own} | settings))
    run = make_run(spec, measure.describe_board(spec.board))
    with Store(database_path(paths.home())) as store:
        store.create_run(run)
    process.main([run.uuid, "--home", str(paths.home())])
    facts = {"settings": " ".join([workload, *options]), "budget": run.budget, "batch": run.batch,
             "stop_at": run.tuner_options.get("stop_at"), "finished": round(monotonic() - _BEGAN, 2)}  # fmt: skip
    file = Path(path)
    records = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    lines = [json.dumps(record) for record in [*records, facts | {"calls": calls}]]
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    _BEGAN = monotonic()
    import hilt.engine.loop

    hilt.engine.loop.RunStatistics = RecordedStatistics  # type: ignore[misc]
    main(*sys.argv[1:])
