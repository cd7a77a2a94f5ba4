"""The landscapes that the evidence rests on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from hilt.experiments.mismatched import MISMATCHED, NO_INTERLOCK_ZCU102, any_personality
from hilt.measure.landscape import Landscape, Shelf, Subject
from hilt.schedule import load_workload, workload_names
from hilt.schedule.checks import Checks

HOME_BOARD = "pynq"
ML2_BOARDS = ("zcu102", NO_INTERLOCK_ZCU102.name)
DEEPBENCH = [name for name in workload_names() if name.startswith("deepbench.")]
RESNET18 = [name for name in workload_names() if name.startswith("resnet18.")]
MATMUL = "dense:n=256,ci=256,co=256"
"""The other operator of AutoTVM's Figure 9; theirs has 1024 of each."""
_TWICE = "deepbench.42"
"""The same convolution as resnet18.C2."""
EVIDENCE = [name for name in [*DEEPBENCH, *RESNET18] if name != _TWICE]


def subject(workload: str, board: str = HOME_BOARD, checks: Checks = "tvm") -> Subject:
    """The space of four loop orders; on no particular board, of TVM's mostly invalid configurations."""
    return Subject.on(load_workload(workload), any_personality(board), checks=checks, orders=4)


def ml2_subject(workload: str, board: str = ML2_BOARDS[0]) -> Subject:
    """ML2Tuner's space, where the board finds out what is valid."""
    return Subject.on(load_workload(workload), any_personality(board), checks="off", kind="ml2")


def evidence() -> list[list[Subject]]:
    """All of them, in groups that are built together: what is wanted first comes first."""
    boards = [HOME_BOARD, *MISMATCHED]
    levels: tuple[Checks, ...] = ("tvm", "compiler")
    groups = [
        [subject(name, board, checks) for board in boards] for checks in levels for name in [*DEEPBENCH, *RESNET18]
    ]
    groups.append([subject(MATMUL, checks="compiler")])
    return groups + [[ml2_subject(name, board) for board in ML2_BOARDS] for name in RESNET18]


@lru_cache(maxsize=16)
def landscape_of(wanted: Subject) -> Landscape:
    """From HILT_HOME. Raises MissingLandscapeError, which says how it is built."""
    return Shelf().get(wanted)


def missing(subjects: Sequence[Subject]) -> list[Subject]:
    """Those that are still to be built."""
    shelf = Shelf()
    return [each for each in subjects if not shelf.has(each)]
