"""`python -m tests.unit.campaign.campaign_engine`: a campaign's process whose boards are tables, behind the gate."""

import sys

from hilt.campaign.process import main
from hilt.measure import Listen
from tests.unit.cli.network_engine import NetworkBoards
from tests.unit.engine.table import TableMeasurer, pass_gate


class GatedBoards(NetworkBoards):
    def open_measurer(self, name: str, listen: Listen) -> TableMeasurer:
        measurer = super().open_measurer(name, listen)
        measurer.before = pass_gate
        return measurer


if __name__ == "__main__":
    sys.exit(main(boards=GatedBoards()))
