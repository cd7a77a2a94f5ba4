"""Measurements for `hilt silicon fit`: which trials of runs and logs count, and why others do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from hilt.engine.errors import MixedBitstreamsError
from hilt.engine.machine_records import MachineRecords, runs_of
from hilt.engine.run_spec import RunSpec, RunTask, make_run
from hilt.measure import describe_board
from hilt.store import Campaign, Run, Store, UnknownRunError, database_path
from hilt.store.autotvm_exchange import export_run
from hilt.store.autotvm_log import write_log
from hilt.trial import Outcome, Trial, Verification
from hilt.vta.parameters import VTAParameters

BOARD = "virtual:pynq_public"
LAYER = "resnet18.C5"
RUN_BY_TVM = (869, 864)
"""Configurations of its space that TVM v0.9 compiles and runs."""


@dataclass(frozen=True)
class Example:
    """A run on the public bitstream, and its task."""

    run: Run
    task: RunTask


@pytest.fixture(scope="module")
def made() -> Example:
    board = describe_board(BOARD)
    run = make_run(RunSpec(workload=LAYER, board=BOARD, tuner="random", trials=8, orders=1), board)
    return Example(run, RunTask(run, board))


def compiling(made: Example, *, outcome: Outcome = Outcome.OK, checked: int | None = None, ordinal: int = 0) -> Trial:
    """Return a trial of 250 us of the configuration of this number among those that compile."""
    index = int(made.task.problem.compiles.nonzero()[0][ordinal])
    elements = made.run.output_elements
    seen = Verification(elements if checked is None else checked, 0)
    return Trial(
        ordinal, index, dict(made.task.knobs(index)), outcome, "", 25_000, 250.0, (250.0,), seen, elements, board=BOARD
    )  # fmt: skip


def store_of(home: Path, run: Run, *trials: Trial) -> Store:
    store = Store(database_path(home))
    store.create_recorded([(run, trials)])
    return store


def test_verified_trials_count_in_seconds_with_their_programs(tmp_path: Path, made: Example) -> None:
    good = compiling(made)
    failed = replace(compiling(made, ordinal=1), outcome=Outcome.TIMEOUT)
    half = compiling(made, checked=made.run.output_elements // 2, ordinal=2)
    records = MachineRecords.of_board(BOARD)
    with store_of(tmp_path, made.run, good, failed, half) as store:
        records.add_run(store, made.run)
    (found,) = records.measurements
    assert found.seconds == pytest.approx(250e-6)
    np.testing.assert_array_equal(found.program.instructions, made.task.lower(good.index).instructions)
    assert records.left_out == {}


def test_a_trial_that_hilt_no_longer_compiles_is_left_out(tmp_path: Path, made: Example) -> None:
    broken = [int(index) for index in (~made.task.problem.compiles).nonzero()[0][:2]]
    trials = [replace(compiling(made), ordinal=place, index=index) for place, index in enumerate(broken)]
    records = MachineRecords.of_board(BOARD)
    with store_of(tmp_path, made.run, *trials) as store:
        records.add_run(store, made.run)
    assert records.left_out == {"hilt compiles them otherwise now": 2}
    assert records.measurements == []


def test_a_run_of_another_bitstream_is_refused_and_both_are_named(tmp_path: Path, made: Example) -> None:
    other = replace(made.run, bitstream="f" * 64)
    records = MachineRecords.of_board(BOARD)
    with store_of(tmp_path, other, compiling(made)) as store, pytest.raises(MixedBitstreamsError) as error:
        records.add_run(store, other)
    words = str(error.value)
    assert words.startswith(f"run {other.uuid[:8]} is of bitstream {'f' * 16}, ")
    assert f"the others of {records.bitstream[:16]};" in words


def test_a_log_gives_the_trials_that_ran_on_the_same_build(tmp_path: Path, made: Example) -> None:
    parameters, other = (VTAParameters.from_name(f"1x16_i8w8a32_15_{log2}_18_17") for log2 in (15, 14))
    both = [replace(compiling(made), index=index, knobs=dict(made.task.knobs(index))) for index in RUN_BY_TVM]
    first, second = both
    records = [
        *export_run(made.run, [first], parameters, "pynq").records,
        *export_run(made.run, [replace(second, outcome=Outcome.CRASH)], parameters, "pynq").records,
        *export_run(made.run, both, other, "pynq").records,
    ]
    assert len(records) == 4
    write_log(tmp_path / "all.log", records)
    found = MachineRecords.of_board(BOARD)
    found.add_log(tmp_path / "all.log")
    (measured,) = found.measurements
    assert measured.seconds == pytest.approx(250e-6)
    assert found.left_out == {f"they are of {other.name}": 2}


def test_a_board_of_hilts_own_rtl_has_nothing_to_fit() -> None:
    with pytest.raises(MixedBitstreamsError, match="^virtual:pynq runs hilt's own RTL, .*: nothing to fit"):
        MachineRecords.of_board("virtual:pynq")


def test_an_identifier_is_of_a_run_or_of_all_layers_of_a_campaign(tmp_path: Path, made: Example) -> None:
    campaign = Campaign("c" * 32, "resnet18", {}, {}, 1.0, {"trials": 60})
    layers = [replace(made.run, uuid=letter * 32, campaign=campaign.uuid) for letter in "de"]
    with Store(database_path(tmp_path)) as store:
        store.create_campaign(campaign)
        store.create_recorded([(layer, []) for layer in (*layers, made.run)])
        assert [run.uuid for run in runs_of(store, "cccc")] == ["d" * 32, "e" * 32]
        assert [run.uuid for run in runs_of(store, "dddd")] == ["d" * 32]
        with pytest.raises(UnknownRunError, match=r"no file is called 'fit\.log' either$"):
            runs_of(store, "fit.log")
