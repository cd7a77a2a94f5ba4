"""Executors for work that is split into pieces: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from concurrent.futures import Executor


@contextmanager
def executor(jobs: int, cluster: str | None) -> Iterator[Executor]:
    """Yield an executor of `jobs` processes (0: one a core), or of the Dask scheduler at `cluster`.

    Raises typer.BadParameter where Dask is not installed or does not answer.
    """
    from hilt.processes import processes

    with ExitStack() as stack:
        if cluster is None:
            yield stack.enter_context(processes(jobs or os.cpu_count() or 1))
            return
        try:
            import distributed
        except ImportError as error:
            raise typer.BadParameter("--cluster needs Dask: pip install 'hilt[cluster]'") from error
        try:
            client = stack.enter_context(distributed.Client(cluster, timeout="20s"))
        except (OSError, ValueError) as error:
            raise typer.BadParameter(f"no Dask scheduler answers at {cluster} ({error})") from error
        yield stack.enter_context(client.get_executor(pure=False))
