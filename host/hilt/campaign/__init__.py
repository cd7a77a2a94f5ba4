"""A network tuned with one budget for all its layers: trials go where they pay. One process of its own that goes on
after any end, as a run's engine does. Results: hilt.engine.campaign_results; starting one: hilt.campaign.launch.
"""
