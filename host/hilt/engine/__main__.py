"""`python -m hilt.engine RUN --home HOME`: the process that `hilt.engine.launch` starts."""

import sys

from hilt.engine.process import main

sys.exit(main())
