"""Predictions of published records: each model's cycles and the runtime's seconds, and the records that judge them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from hilt.silicon.measured import cycles_of, with_programs
from hilt.silicon.predict import RTL_TWIN, RecordPrediction, accuracy, predict
from hilt.silicon.records import BoardRecord
from hilt.simulator.builds import CLOCK_HZ, NEWER, OLDER, build_of, shipped_builds
from hilt.simulator.device import MemoryModel
from hilt.simulator.twin import Twin
from hilt.vta.accelerator import Accelerator
from tests.unit.silicon import published


@pytest.fixture(scope="module")
def predictions() -> list[RecordPrediction]:
    """Return predictions of six records, three of each build, of small layers."""
    by_build: dict[str, list[BoardRecord]] = {OLDER: [], NEWER: []}
    for record in sorted(published.records(), key=lambda record: record.task.micro_ops):
        by_build[build_of(record.task.images, record.date)].append(record)
    items, refused = with_programs([record for records in by_build.values() for record in records[:3]])
    assert [item.build for item in items] == [OLDER] * 3 + [NEWER] * 3 and refused == []
    return predict(items, shipped_builds())


def test_each_model_counts_its_own_cycles_and_the_runtime_once(predictions: list[RecordPrediction]) -> None:
    builds = shipped_builds()
    for each in predictions:
        item = each.measured
        around = builds.runtime.call_seconds + item.instructions * builds.runtime.instruction_seconds
        for name in (NEWER, OLDER):
            (cycles,) = cycles_of([item], {item.build: builds.machines[name]})
            assert each.seconds[name] == pytest.approx(cycles / CLOCK_HZ + around)
        accelerator = Accelerator.for_parameters(item.record.parameters)
        (own,) = Twin(accelerator).predict([item.program], MemoryModel())
        assert each.seconds[RTL_TWIN] == pytest.approx(own["cycles"] / CLOCK_HZ + around)
        assert each.chosen == each.seconds[item.build]
    assert any(each.seconds[NEWER] != each.seconds[OLDER] for each in predictions)


def test_cycles_are_in_the_order_of_the_records(predictions: list[RecordPrediction]) -> None:
    items = [each.measured for each in predictions]
    machines = shipped_builds().machines
    apart = [float(cycles_of([item], machines)[0]) for item in items]
    assert cycles_of(items, machines).tolist() == apart
    assert cycles_of(items[::-1], machines).tolist() == apart[::-1]


def test_a_record_counts_if_it_has_seconds_that_nobody_doubts(predictions: list[RecordPrediction]) -> None:
    (first, *_) = predictions
    record = first.measured.record
    bound = record.task.micro_ops / 100e6

    def changed(**values: object) -> RecordPrediction:
        return replace(first, measured=replace(first.measured, record=replace(record, **values)))  # type: ignore[arg-type]

    assert changed(seconds=(2 * bound,), doubt=None).counts
    assert changed(seconds=(bound,), doubt=None).counts
    assert not changed(seconds=(0.99 * bound,), doubt=None).counts
    assert not changed(seconds=(2 * bound,), doubt="another clock").counts
    assert not changed(seconds=(), doubt=None).counts
    assert changed(seconds=()).log_error is None
    twice = changed(seconds=(first.chosen, 3 * first.chosen))
    assert twice.log_error == pytest.approx(-math.log(2)), "below the mean of the repeats"


def test_the_accuracy_is_over_the_records_that_count(predictions: list[RecordPrediction]) -> None:
    def measured(each: RecordPrediction, factor: float, doubt: str | None = None) -> RecordPrediction:
        record = replace(each.measured.record, seconds=(each.chosen * factor,), doubt=doubt)
        return replace(each, measured=replace(each.measured, record=record))

    counted = [measured(each, factor) for each, factor in zip(predictions, (2.0, 0.5, 4.0, 1.0, 1.0, 8.0), strict=True)]
    counted = [each for each in counted if each.counts]
    errors = [each.log_error or 0.0 for each in counted]
    doubted = measured(predictions[0], 50.0, "another clock")
    found = accuracy([*counted, doubted])
    assert found.records == len(counted) >= 3
    assert found.rms == pytest.approx(math.sqrt(sum(error**2 for error in errors) / len(errors)))
    assert found.rank_correlation is not None
    assert accuracy(counted[:2]).rank_correlation is None, "two records always rank"
    exact = [measured(each, 1.0) for each in predictions]
    assert accuracy(exact).rms < 1e-9 < accuracy(exact, RTL_TWIN).rms


def test_a_configuration_that_tvm_does_not_have_is_skipped_with_its_line() -> None:
    good, other = published.records()[:2]
    split = {name: 3 if name.startswith("tile") else value for name, value in other.knobs.items()}
    measured, skipped = with_programs([good, replace(other, line=41, knobs=split)])
    assert [item.record for item in measured] == [good]
    ((line, reason),) = [(each.line, each.reason) for each in skipped]
    assert line == 41 and reason
    assert measured[0].instructions == len(measured[0].program.instructions) > 0
