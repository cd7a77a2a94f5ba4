"""Idle time by a clock of the test's own."""

from __future__ import annotations

from hilt.measure.usage import Usage


def test_idle_is_the_time_since_the_first_trial_less_busy() -> None:
    now = [0.0]
    usage = Usage("desk", lambda: now[0])
    now[0] = 100.0
    assert usage.seconds == (0.0, 0.0) and str(usage) == "0 trials answered; idle 0.0 s of 0.0 s (0 %)"
    usage.busy()
    now[0] = 103.0
    usage.busy()  # sent ahead: still one stretch
    now[0] = 106.0
    usage.idle()
    usage.idle()
    now[0] = 108.0
    usage.busy()
    now[0] = 110.0
    usage.trials = 2
    assert usage.seconds == (2.0, 10.0)
    assert str(usage) == "2 trials answered; idle 2.0 s of 10.0 s (20 %)"
