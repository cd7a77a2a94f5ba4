"""The limits of VTA's parameters: each least and largest value is taken, and the next one is refused by its field."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hilt.vta.parameters import ParameterError, VTAParameters, bounds, load_parameters

PYNQ = load_parameters("pynq")
LIMITS = {
    "log_inp_width": (3, 3), "log_wgt_width": (3, 3), "log_acc_width": (5, 5), "log_batch": (0, 4),
    "log_block": (2, 6), "log_uop_buff_size": (4, 18),
}  # fmt: skip


def with_depths(field: str, value: int) -> VTAParameters:
    """PYNQ's with one other value, and buffers that have room for its elements."""
    sizes = dict.fromkeys(("log_inp_buff_size", "log_wgt_buff_size", "log_acc_buff_size"), 18)
    return replace(PYNQ, **{**sizes, field: value})


@pytest.mark.parametrize(("field", "limits"), LIMITS.items())
def test_values_within_the_limits_are_taken_and_others_refused(field: str, limits: tuple[int, int]) -> None:
    assert bounds(field.upper()) == limits
    for value in limits:
        assert getattr(with_depths(field, value), field) == value
    for value in (limits[0] - 1, limits[1] + 1, True, float(limits[0]), None):
        with pytest.raises(ParameterError, match=f"^{field.upper()} is {value!r}; hilt's VTA takes {limits[0]}"):
            with_depths(field, value)  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "element"), [("inp", 16), ("wgt", 256), ("acc", 64)])
def test_a_buffer_has_2_to_65536_elements(kind: str, element: int) -> None:
    field = f"log_{kind}_buff_size"
    least, largest = element.bit_length(), element.bit_length() - 1 + 16
    for size, depth in ((least, 2), (largest, 1 << 16)):
        assert getattr(replace(PYNQ, **{field: size}), f"{kind}_depth") == depth
    for size, depth in ((least - 1, 1), (least - 2, 0), (largest + 1, 1 << 17), (31, (1 << 31) // element)):
        with pytest.raises(ParameterError, match=f"LOG_{kind.upper()}_BUFF_SIZE gives a buffer of {depth} elements"):
            replace(PYNQ, **{field: size})
    for size in (-1, 32):
        with pytest.raises(ParameterError, match=f"LOG_{kind.upper()}_BUFF_SIZE is {size}; hilt's VTA takes 0..31"):
            replace(PYNQ, **{field: size})


@pytest.mark.parametrize("key", ["LOG_OUT_WIDTH", "LOG_BLOCK_IN", "LOG_BLOCK_OUT"])
def test_older_keys_must_agree(key: str) -> None:
    values = PYNQ.to_mapping()
    same = values["LOG_INP_WIDTH" if key == "LOG_OUT_WIDTH" else "LOG_BLOCK"]
    assert VTAParameters.from_mapping({**values, key: same}) == PYNQ
    with pytest.raises(ParameterError, match=f"{key} is {same + 1} but .* is {same}; they must agree"):
        VTAParameters.from_mapping({**values, key: same + 1})
