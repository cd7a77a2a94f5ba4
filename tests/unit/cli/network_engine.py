"""`python -m tests.unit.cli.network_engine`: an engine whose boards are tables that compare outputs of any size; on
`table:wrong` no output is right."""

import sys

from hilt.engine.process import main
from hilt.link.errors import UnreachableError
from hilt.measure import BoardEvent, BoardState, Listen, Request
from hilt.trial import Outcome, Result, Verification
from tests.unit.engine.table import TableBoards, TableMeasurer, answer


class NetworkBoards(TableBoards):
    def open_measurer(self, name: str, listen: Listen) -> TableMeasurer:
        if name.endswith("@away"):
            raise UnreachableError(f"{name} is not reachable; is it on?")
        listen(BoardEvent(name, BoardState.READY, "", 0.0))
        return TableMeasurer(never_right if "wrong" in name else by_size, described=self.describe_board(name))


def by_size(request: Request) -> Result:
    """Return the table's answer for a program, with the actual size of its output."""
    return answer(int(request.program.sha256[:8], 16), request.tensors.expected.size)


def never_right(request: Request) -> Result:
    elements = request.tensors.expected.size
    return Result(Outcome.WRONG_ANSWER, "all differ", verification=Verification(elements, elements, 0, 1))


if __name__ == "__main__":
    sys.exit(main(boards=NetworkBoards()))
