"""The layers that the evidence is counted over."""

from __future__ import annotations

from hilt.schedule import load_workload
from hilt_experiments.datasets import DEEPBENCH, EVIDENCE, RESNET18, evidence


def test_no_convolution_is_counted_twice() -> None:
    shapes = [
        tuple(value for key, value in load_workload(name).to_dict().items() if key != "name") for name in EVIDENCE
    ]
    assert len({str(shape) for shape in shapes}) == len(EVIDENCE) == 22


def test_every_layer_of_both_lists_is_built() -> None:
    """HW-aware's experiments take all of deepbench."""
    built = {each.workload.name for group in evidence() for each in group}
    assert {*DEEPBENCH, *RESNET18} <= built
