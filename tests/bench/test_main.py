"""The output of `python -m tests.bench`."""

from __future__ import annotations

import io

from tests.bench.__main__ import console_for, show
from tests.bench.figure import Figure, Sizes, Topic


def test_text_in_brackets_is_printed() -> None:
    hint = "pip install 'hilt[treegru]'"
    topic = Topic("tuner", "tuners", lambda sizes: iter([Figure("treegru", "resnet18.C5", "1", "0 trials", hint)]))
    printed = io.StringIO()
    show(console_for(printed), topic, Sizes())
    assert hint in printed.getvalue()
