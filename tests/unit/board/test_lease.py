"""The lease of a board: kept by who speaks, lost by who has been silent for too long."""

from __future__ import annotations

import time
from types import SimpleNamespace

from hilt_board import daemon


def test_a_lease_lasts_as_long_as_its_holder_is_heard() -> None:
    now = time.monotonic()
    assert not daemon._lease_expired(SimpleNamespace(heard=now))
    assert not daemon._lease_expired(SimpleNamespace(heard=now - daemon.LEASE_SECONDS / 2))
    assert daemon._lease_expired(SimpleNamespace(heard=now - daemon.LEASE_SECONDS - 1))
