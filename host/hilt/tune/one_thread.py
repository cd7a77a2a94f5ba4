"""Linear algebra on one thread. Of matrices of some hundred rows, two threads cost two to three times the processor
time of one where the machine has other work; and with many threads the last digits depend on how many there are."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """The function, in which BLAS has one thread; afterwards it has as many as before."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _libraries().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited


@cache
def _libraries() -> ThreadpoolController:
    """Those loaded when it is first asked for: NumPy and SciPy each bring their own."""
    return ThreadpoolController()
