"""A network that is tuned with one budget for all its layers: trials go where they save most.

A campaign has a process of its own and goes on after any end, as a run does. Its results are in
hilt.engine.campaign_results; hilt.campaign.launch starts one.
"""
