from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from hilt.schedule import load_workload, space_for
from hilt.schedule.clusters import clusters
from hilt.schedule.space import Knob, Space
from hilt.schedule.validity_summary import summarize_validity
from hilt.vta.accelerator import Accelerator, load_parameters


def space_of(counts: list[int]) -> Space:
    return Space([Knob(f"k{number}", tuple(range(count)), False) for number, count in enumerate(counts)])


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_clusters_equal_an_image_librarys_labels_on_the_grid(counts: list[int], share: float, seed: int) -> None:
    space = space_of(counts)
    valid = np.random.default_rng(seed).random(len(space)) < share
    found = clusters(space, valid)
    image, count = ndimage.label(valid.reshape(counts, order="F"))
    pixels = image.ravel(order="F")[valid]
    assert len(found.sizes) == count and found.members.tolist() == np.flatnonzero(valid).tolist()
    # One cluster for each label, and one label for each cluster.
    assert len({*zip(pixels.tolist(), found.labels.tolist(), strict=True)}) == count
    assert sorted(found.sizes, reverse=True) == found.sizes.tolist() and found.sizes.sum() == valid.sum()


def test_edges_are_the_steps_between_valid_neighbours() -> None:
    space = space_of([3, 2])
    found = clusters(space, np.array([True, True, False, False, True, True]))  # . X X over X X .
    assert found.edges.tolist() == [[0, 1], [4, 5], [1, 4]]
    for one, other in found.edges.tolist():
        assert other in space.neighbours(one)
    assert found.sizes.tolist() == [4]
    assert found.neighbours == 6 / 4
    assert found.valid_ratio == 4 / 6


def test_the_ends_of_two_rows_do_not_touch() -> None:
    assert clusters(space_of([3, 2]), np.array([False, False, True, True, False, False])).sizes.tolist() == [1, 1]


def test_a_space_without_valid_configurations_has_none() -> None:
    found = clusters(space_of([3, 2]), np.zeros(6, dtype=np.bool_))
    assert (found.sizes.tolist(), found.edges.shape, found.neighbours, found.valid_ratio) == ([], (0, 2), 0.0, 0.0)


def test_marks_of_another_space_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(5,\) marks for a space of 6"):
        clusters(space_of([3, 2]), np.zeros(5, dtype=np.bool_))


def test_valid_configurations_lie_together_in_a_mostly_invalid_space() -> None:
    """The paper's observation, on one of its layers: far more valid neighbours than as many marks at random."""
    accelerator = Accelerator.for_parameters(load_parameters("pynq"))
    workload = load_workload("deepbench.48")
    space = space_for(workload, accelerator, orders=4)
    valid = summarize_validity(workload, accelerator, space, "tvm").verdicts == 0
    shuffled = np.random.default_rng(0).permutation(valid)
    found, random = clusters(space, valid), clusters(space, shuffled)
    assert found.neighbours > 3 * random.neighbours
    assert len(found.sizes) < len(random.sizes) / 3
