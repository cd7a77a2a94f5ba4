"""The tuning run: tuner, measurer and store in one process of its own, with attach, pause, resume and stop."""
