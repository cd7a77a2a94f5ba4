"""The datasets that the evidence rests on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from hilt.measure.dataset import Dataset, DatasetKey, DatasetStore
from hilt.run_choices import CheckLevel, SpaceName
from hilt.schedule import load_workload, workload_names
from hilt.schedule.checks import Checks
from hilt.virtual.mismatched_models import MISMATCHED, NO_INTERLOCK_ZCU102, any_board_model

HOME_BOARD = "pynq"
ML2_BOARDS = ("zcu102", NO_INTERLOCK_ZCU102.name)
DEEPBENCH = [name for name in workload_names() if name.startswith("deepbench.")]
RESNET18 = [name for name in workload_names() if name.startswith("resnet18.")]
MATMUL = "dense:n=256,ci=256,co=256"
"""The other operator of AutoTVM's Figure 9; theirs has 1024 of each."""
_TWICE = "deepbench.42"
"""The same convolution as resnet18.C2."""
EVIDENCE = [name for name in [*DEEPBENCH, *RESNET18] if name != _TWICE]


def subject(workload: str, board: str = HOME_BOARD, checks: Checks = CheckLevel.TVM) -> DatasetKey:
    """The space of four loop orders; on no particular board, of TVM's mostly invalid configurations."""
    return DatasetKey.on(load_workload(workload), any_board_model(board), checks=checks, orders=4)


def ml2_subject(workload: str, board: str = ML2_BOARDS[0]) -> DatasetKey:
    """Return the dataset key of ML2Tuner's space, in which the board finds out the valid configurations."""
    return DatasetKey.on(load_workload(workload), any_board_model(board), checks=CheckLevel.OFF, kind=SpaceName.ML2)


def evidence() -> list[list[DatasetKey]]:
    """Return all dataset keys, in groups that are built together; the keys that are needed first come first."""
    boards = [HOME_BOARD, *MISMATCHED]
    levels: tuple[Checks, ...] = (CheckLevel.TVM, CheckLevel.COMPILER)
    groups = [
        [subject(name, board, checks) for board in boards] for checks in levels for name in [*DEEPBENCH, *RESNET18]
    ]
    groups.append([subject(MATMUL, checks=CheckLevel.COMPILER)])
    return groups + [[ml2_subject(name, board) for board in ML2_BOARDS] for name in RESNET18]


@lru_cache(maxsize=16)
def dataset_of(wanted: DatasetKey) -> Dataset:
    """Return the dataset from HILT_HOME.

    Raises:
        MissingDatasetError: The dataset is not built; the message gives the command that builds it.
    """
    return DatasetStore().get(wanted)


def missing(subjects: Sequence[DatasetKey]) -> list[DatasetKey]:
    """Return the subjects whose datasets are still to be built."""
    dataset_store = DatasetStore()
    return [each for each in subjects if not dataset_store.has(each)]
