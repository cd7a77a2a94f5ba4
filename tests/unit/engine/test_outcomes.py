"""docs/outcomes.md against the code: every outcome, its repeats, and its effect on the budget and the models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hilt.engine.loop import DOUBTFUL
from hilt.trial import Outcome, Result
from hilt.tune import Feedback
from hilt.tune.labels import relative_throughput
from hilt.tune.ml2tuner.records import Records

from .loop_bench import BUDGET, Bench, by_configuration
from .table import TableMeasurer, answer

DOCUMENT = Path(__file__).parents[3] / "docs" / "outcomes.md"


def table() -> dict[str, list[str]]:
    lines = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row[1:] for row in rows}


def test_every_outcome_has_a_row() -> None:
    assert list(table()) == [str(each) for each in Outcome]


def test_doubtful_verdicts_are_those_that_are_given_twice() -> None:
    doubtful = {name for name, row in table().items() if row[2].startswith("until a doubtful verdict")}
    assert doubtful == {str(each) for each in DOUBTFUL}


@pytest.mark.parametrize("outcome", list(Outcome))
def test_the_models_learn_these_targets(outcome: Outcome) -> None:
    performance, validity = table()[outcome][4:]
    other = Feedback(1, Outcome.OK, 10.0)
    feedback = Feedback(0, outcome, 20.0 if outcome is Outcome.OK else None)
    records = Records.of([feedback, other])
    if outcome is Outcome.BOARD_LOST:
        assert (performance, validity) == ("never", "never") and len(records) == 1
        return
    label = relative_throughput([feedback, other])[0]
    assert label == pytest.approx({"its latency": 0.5, "as slow as can be": 0.0}[performance])
    assert np.array_equal(records.is_valid, [validity == "valid", True])


@pytest.mark.parametrize("outcome", [each for each in Outcome if each is not Outcome.REJECTED])
def test_repeated_trials_and_the_budget(tmp_path: Path, outcome: Outcome) -> None:
    """One trial gets this verdict, the first time only."""
    asked: list[str] = []

    def once(request) -> Result:  # type: ignore[no-untyped-def]
        if request.ordinal != victim:
            return by_configuration(request)
        asked.append(request.key)
        if len(asked) == 1 and outcome not in (Outcome.OK, Outcome.WRONG_ANSWER):
            return Result(outcome, "once")
        return answer(int(request.program.uops[0, 0]))

    quiet, bench = Bench(tmp_path / "quiet.db"), Bench(tmp_path / "injected.db")
    assert quiet.session()
    victim = next(each.ordinal for each in quiet.trials if each.outcome is Outcome.OK)
    assert bench.session(TableMeasurer(once))
    again = table()[outcome][2].startswith(("until", "yes"))
    assert len(asked) == 1 + again
    assert bench.trials == quiet.trials and len(bench.trials) == BUDGET
    assert (table()[outcome][3] == "no") is (outcome is Outcome.BOARD_LOST)
    for each in (quiet, bench):
        each.store.close()


def test_no_outcome_of_a_board_is_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "hilt.db")
    schema = bench.store._connection.execute("SELECT sql FROM sqlite_master WHERE name = 'trials'").fetchone()[0]
    assert "outcome <> 'board_lost'" in schema
    bench.store.close()
