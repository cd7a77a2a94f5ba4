"""A value reads back as it was written."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from hilt.toml_text import toml_value

characters = st.characters(exclude_categories=["Cs"])


@given(
    st.text(characters)
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
)
def test_a_value_reads_back_as_it_was_written(value: str | int | float | bool) -> None:
    read = tomllib.loads(f"value = {toml_value(value)}\n")["value"]
    assert read == value and type(read) is type(value)
