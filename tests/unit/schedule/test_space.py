import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.schedule import ConfigurationError, Space, knob_features, load_workload, space_for
from hilt.schedule.space import Knob, factors
from tests.unit.schedule.cases import BATCHED, PYNQ, RESNET18

knobs = st.lists(st.integers(1, 6), min_size=1, max_size=6).map(
    lambda sizes: Space([Knob(f"k{n}", tuple(range(3, 3 + 2 * size, 2)), n % 2 == 0) for n, size in enumerate(sizes)])
)


def test_sizes_are_those_of_tvm() -> None:
    sizes = [len(space_for(load_workload(name), PYNQ)) for name in RESNET18]
    assert sizes == [2304, 1728, 1728, 2304, 1280, 1280, 1600, 480, 480, 576]
    assert sum(sizes) == 13760


def test_order_is_that_of_tvm() -> None:
    """First knob fastest, inner factors ascending."""
    space = space_for(load_workload("resnet18.C2"), PYNQ)
    assert space.names == ("tile_b", "tile_h", "tile_w", "tile_ci", "tile_co", "oc_nthread", "h_nthread")
    assert space.knobs[1].values == (1, 2, 4, 7, 8, 14, 28, 56)
    names = space.names
    assert space.knobs_at(1) == dict(zip(names, (1, 2, 1, 1, 1, 1, 1), strict=True))
    assert space.knobs_at(8) == dict(zip(names, (1, 1, 2, 1, 1, 1, 1), strict=True))
    assert space.knobs_at(2303) == dict(zip(names, (1, 56, 56, 4, 4, 2, 2), strict=True))


@given(st.integers(1, 5000))
def test_factors_are_all_divisors_in_order(number: int) -> None:
    assert factors(number) == tuple(each for each in range(1, number + 1) if number % each == 0)


def test_batch_is_counted_in_blocks() -> None:
    workload = load_workload("conv2d:n=8,ci=16,h=4,w=4,co=16,k=1x1")
    assert space_for(workload, BATCHED).knobs[0].values == (1, 2)
    assert space_for(workload, PYNQ).knobs[0].values == (1, 2, 4, 8)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(knobs)
def test_indices_positions_and_values_are_one_to_one(space: Space) -> None:
    everything = np.arange(len(space))
    positions = space.positions(everything)
    assert np.array_equal(space.indices(positions), everything)
    assert len({tuple(row) for row in space.values(everything).tolist()}) == len(space)
    for index in (0, len(space) // 2, len(space) - 1):
        assert space.index(space.knobs_at(index)) == index


@settings(max_examples=80, deadline=None)
@given(knobs, st.integers(0, 2**31))
def test_neighbours_are_all_at_distance_one(space: Space, seed: int) -> None:
    everything = space.positions(np.arange(len(space)))
    index = seed % len(space)
    distance = np.abs(everything - everything[index]).sum(axis=1)
    assert space.neighbours(index).tolist() == np.flatnonzero(distance == 1).tolist()


def test_samples_do_not_repeat_and_follow_the_seed() -> None:
    space = space_for(load_workload("resnet18.C9"), PYNQ)
    drawn = space.sample(400, np.random.default_rng(1))
    assert len(set(drawn.tolist())) == 400
    assert np.array_equal(drawn, space.sample(400, np.random.default_rng(1)))
    assert sorted(space.sample(10_000, np.random.default_rng(1)).tolist()) == list(range(480))


def test_an_index_outside_is_refused() -> None:
    space = space_for(load_workload("resnet18.C9"), PYNQ)
    with pytest.raises(ConfigurationError, match="outside the space of 480"):
        space.values([480])
    with pytest.raises(ConfigurationError, match="outside its knob"):
        space.indices([0, 0, 0, 0, 0, 0, 2])
    with pytest.raises(ConfigurationError, match="tile_h is 3; it may be"):
        space.index({**space.knobs_at(0), "tile_h": 3})
    with pytest.raises(ConfigurationError, match="a configuration of"):
        space.index({"tile_h": 1})


def test_knob_features_are_the_twelve_of_autotvm() -> None:
    space = space_for(load_workload("resnet18.C2"), PYNQ)
    features = knob_features(space, [0, 2303])
    assert features.dtype == np.float32
    assert features.tolist() == [
        [-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, 1, 1],
        [-1, 1, -1, 56, -1, 56, -1, 4, -1, 4, 2, 2],
    ]


def test_a_dense_layer_with_one_order_has_the_space_of_tvms_dense() -> None:
    workload = load_workload("dense:n=1,ci=512,co=1008")
    space = space_for(workload, PYNQ)
    assert len(space) == 72 and all(space.knobs_at(index)["h_nthread"] == 1 for index in range(72))
    assert len(space_for(workload, PYNQ, orders=4)) == 4 * 144
