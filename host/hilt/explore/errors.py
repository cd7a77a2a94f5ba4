"""Errors of a design exploration."""

from __future__ import annotations


class SweepError(ValueError):
    """A sweep file that cannot be read, or that has a field or value of no VTA; the message names the field."""


class ExploreError(RuntimeError):
    """A design that could not be evaluated."""
