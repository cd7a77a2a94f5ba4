import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.vta.accelerator import load_parameters
from hilt.vta.layout import pack_bias, pack_data, pack_weights, unpack_data, unpack_weights

names = st.sampled_from(["pynq", "pynq_batched"])
sizes = st.integers(1, 9)
channels = st.integers(1, 40)


@settings(max_examples=50, deadline=None)
@given(names, st.integers(1, 6), channels, sizes, sizes)
def test_every_data_element_lies_where_hardware_md_says(name: str, n: int, c: int, h: int, w: int) -> None:
    parameters = load_parameters(name)
    batch, block = parameters.batch, parameters.block
    data = np.arange(1, n * c * h * w + 1, dtype=np.int64).reshape(n, c, h, w)
    packed = pack_data(data, parameters)
    assert packed.shape == (-(-n // batch), -(-c // block), h, w, batch, block)
    assert np.count_nonzero(packed) == data.size
    image, channel, row, column = (np.random.default_rng(0).integers(size) for size in data.shape)
    place = (image // batch, channel // block, row, column, image % batch, channel % block)
    assert packed[place] == data[image, channel, row, column]
    assert np.array_equal(unpack_data(packed, n, c), data)


@settings(max_examples=50, deadline=None)
@given(names, channels, channels, st.integers(1, 4), st.integers(1, 4))
def test_every_weight_lies_where_hardware_md_says(name: str, co: int, ci: int, kh: int, kw: int) -> None:
    parameters = load_parameters(name)
    block = parameters.block
    weights = np.arange(1, co * ci * kh * kw + 1, dtype=np.int64).reshape(co, ci, kh, kw)
    packed = pack_weights(weights, parameters)
    assert packed.shape == (-(-co // block), -(-ci // block), kh, kw, block, block)
    assert np.count_nonzero(packed) == weights.size
    out, into, row, column = (np.random.default_rng(1).integers(size) for size in weights.shape)
    place = (out // block, into // block, row, column, out % block, into % block)
    assert packed[place] == weights[out, into, row, column]
    assert np.array_equal(unpack_weights(packed, co, ci), weights)


def test_bias_is_repeated_for_each_image_and_padded() -> None:
    parameters = load_parameters("pynq_batched")
    packed = pack_bias(np.arange(1, 11, dtype=np.int32), parameters)
    assert packed.shape == (2, 4, 8)
    assert packed[1, 3].tolist() == [9, 10, 0, 0, 0, 0, 0, 0]
