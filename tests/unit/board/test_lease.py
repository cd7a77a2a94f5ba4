"""The lease of a board: an active client keeps it, and a client that is silent for too long loses it."""

from __future__ import annotations

import time
from types import SimpleNamespace

from hilt_board import daemon


def test_a_lease_lasts_as_long_as_its_holder_is_heard() -> None:
    now = time.monotonic()
    assert not daemon._lease_expired(SimpleNamespace(heard=now))
    assert not daemon._lease_expired(SimpleNamespace(heard=now - daemon.LEASE_SECONDS / 2))
    assert daemon._lease_expired(SimpleNamespace(heard=now - daemon.LEASE_SECONDS - 1))
