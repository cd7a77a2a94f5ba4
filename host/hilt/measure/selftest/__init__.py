"""The first hour of a new board: a fixed set of measurements that shows how the board differs from its description."""

from __future__ import annotations

from .run import Check, Settings, selftest

__all__ = ["Check", "Settings", "selftest"]
