"""`python -m hilt_board COMMAND`, and the entry point of the agent's archive (agent.pyz)."""

import sys

from hilt_board.commands import main

if __name__ == "__main__":
    sys.exit(main())
