"""`python -m hilt.campaign CAMPAIGN --home HOME`: the process that `hilt.campaign.launch` starts."""

import sys

from hilt.campaign.job import open_campaign
from hilt.engine.process import main

sys.exit(main(open_job=open_campaign, program="hilt.campaign"))
