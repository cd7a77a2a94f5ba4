"""`python -m hilt.campaign CAMPAIGN --home HOME`: the process that `hilt.campaign.launch` starts."""

import sys

from hilt.campaign.process import main

sys.exit(main())
