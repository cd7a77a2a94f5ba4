"""The tuning run: tuner, measurer and store in one process of its own, with attach, pause, resume and stop.

Clients need `client`, `events` and `files`, which are light; `launch` starts runs and loads the layers below.
"""
