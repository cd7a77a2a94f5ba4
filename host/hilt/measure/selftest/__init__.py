"""The first hour of a new board: a fixed set of measurements that shows how the board differs from its description."""

from __future__ import annotations

from .memory import MemoryFit
from .page import page_text
from .run import LAYERS, Check, SelftestSettings, selftest

__all__ = ["LAYERS", "Check", "MemoryFit", "SelftestSettings", "page_text", "selftest"]
