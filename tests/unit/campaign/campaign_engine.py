"""`python -m tests.unit.campaign.campaign_engine`: a campaign's process whose boards are tables, behind the gate."""

import os
import sys
import threading
from dataclasses import replace
from pathlib import Path

from hilt import tune
from hilt.campaign import job
from hilt.campaign.outputs import Written
from hilt.engine.process import main
from hilt.measure import BoardEvent, BoardState, Listen
from tests.unit.cli.network_engine import NetworkBoards, by_size
from tests.unit.engine.table import TableMeasurer, pass_gate

FILES = "HILT_TEST_FILES"
"""The variable that turns on the files at the end of a campaign; pictures take seconds."""

HANGS = "HILT_TEST_HANGS"
"""The variable with a FIFO: a tuner that is made writes a line there, and hangs."""


def hang(*arguments: object, **options: object) -> None:
    Path(os.environ[HANGS]).write_text("begun\n", encoding="ascii")
    threading.Event().wait()


class GatedBoards(NetworkBoards):
    def open_measurer(self, name: str, listen: Listen) -> TableMeasurer:
        measurer = super().open_measurer(name, listen)
        measurer.before = pass_gate
        if name.endswith("@shaky"):
            recover = BoardEvent(name, BoardState.RECOVERING, "reconnect: link lost", 0.0)
            return TableMeasurer(
                lambda request: replace(by_size(request), board=name), lambda _: listen(recover), measurer.description
            )
        return measurer


if __name__ == "__main__":
    if FILES not in os.environ:
        job.write_outputs = lambda *_: Written([], [])
    if HANGS in os.environ:
        tune.make_tuner = hang  # type: ignore[assignment]
    sys.exit(main(boards=GatedBoards(), open_job=job.open_campaign))
