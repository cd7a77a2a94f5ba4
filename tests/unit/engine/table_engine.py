"""`python -m tests.unit.engine.table_engine`: the engine's process with boards that are tables."""

import sys

from hilt.engine.process import main

from .table import TableBoards

if __name__ == "__main__":
    sys.exit(main(boards=TableBoards()))
