"""`python -m hilt.tui [RUN]`: the process that `hilt tui --web` starts for each visit."""

import sys

from hilt import paths
from hilt.tui import run

run(paths.home(), sys.argv[1] if len(sys.argv) > 1 else None)
