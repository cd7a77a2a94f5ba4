"""Linear algebra on one thread.

For matrices of some hundred rows, two threads cost two to three times the processor time of one if the machine has
other work. With several threads the last digits depend on their number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with BLAS on one thread; afterwards BLAS has as many threads as before."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _libraries().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited


@cache
def _libraries() -> ThreadpoolController:
    """Return the libraries that are loaded at the first call: NumPy and SciPy each bring their own."""
    return ThreadpoolController()
