"""Work that nobody waits for once the window is closed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Result = TypeVar("_Result")


async def in_background(work: Callable[[], _Result]) -> _Result:
    """Return the function's result, computed in a thread that does not keep the process alive.

    A board or an engine that does not answer would hold the terminal otherwise. Only for work that may be left half
    done.
    """
    result: Future[_Result] = Future()
    result.set_running_or_notify_cancel()

    def do() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=do, name="background", daemon=True).start()
    return await asyncio.wrap_future(result)
