"""The figures of the README, measured: one file for each topic, nothing asserted but that what is timed is right."""
