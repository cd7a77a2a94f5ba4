"""Errors of a virtual board; loads nothing."""

from __future__ import annotations


class VirtualBoardError(Exception):
    """A virtual board that cannot be made, started or reached; the message names the remedy."""


class BoardNameError(VirtualBoardError):
    """A name that no virtual board can have, or faults on purpose that cannot be; says which part of it is wrong."""


class UnknownBoardModelError(VirtualBoardError):
    """No virtual board of that kind; the message lists those that there are."""
