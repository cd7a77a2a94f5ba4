"""For every test: a property is not false because the machine is busy."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Hypothesis fails an example that takes 200 ms, and a test whose examples are slow to draw.
settings.register_profile("busy", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
