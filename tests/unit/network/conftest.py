"""Fixtures of the tests of networks."""

import pytest

from .models import draw_again


@pytest.fixture(autouse=True)
def _same_numbers_alone() -> None:
    """Give each test the same numbers whether or not others ran before it."""
    draw_again()
