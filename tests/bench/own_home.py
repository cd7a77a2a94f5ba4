"""A home of a bench's own: boards that nobody else has used, switched off afterwards."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.conftest import stop_boards


@contextmanager
def own_home() -> Iterator[None]:
    before = os.environ.get("HILT_HOME")
    with tempfile.TemporaryDirectory(prefix="hilt-bench-") as home:
        os.environ["HILT_HOME"] = home
        try:
            yield
        finally:
            stop_boards(Path(home))
            if before is None:
                del os.environ["HILT_HOME"]
            else:
                os.environ["HILT_HOME"] = before
