"""A deadline shared by an operation's steps, by a clock that is set by hand."""

from __future__ import annotations

import pytest

from hilt.link.deadline import Deadline
from hilt.link.errors import LinkTimeoutError


def test_what_is_left_falls_until_it_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("hilt.link.deadline.time.monotonic", lambda: now[0])
    deadline = Deadline(5.0)
    assert deadline.remaining("a step") == deadline.left == 5.0 and not deadline.passed
    now[0] = 104.5
    assert deadline.remaining("a step") == deadline.left == 0.5 and not deadline.passed
    for now[0], left in ((105.0, 0.0), (107.0, -2.0)):
        assert deadline.left == left and deadline.passed
        with pytest.raises(LinkTimeoutError, match="^the upload took too long$"):
            deadline.remaining("the upload")
