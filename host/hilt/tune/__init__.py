"""Ask/tell tuners, cost models and search moves. They know configurations, features and results,
and never learn where a trial was measured."""
