"""JSON of an untrusted file is read within its bounds, and refused past each of them."""

from __future__ import annotations

import pytest

from hilt_runtime.plain_json import PlainJsonError, read_json


def test_values_are_read() -> None:
    assert read_json('{"a": [1, -2.5, "\u20ac"], "b": null}'.encode()) == {"a": [1, -2.5, "\u20ac"], "b": None}


@pytest.mark.parametrize("text", [b"[1,2,3]", b'[{"a":1}]', b"[[],{}]"])
def test_values_are_counted_by_commas_and_brackets(text: bytes) -> None:
    count = sum(text.count(mark) for mark in (b",", b"[", b"{"))
    assert read_json(text, count)
    with pytest.raises(PlainJsonError, match=f"its JSON of {len(text)} bytes is larger than any"):
        read_json(text, count - 1)


def test_a_text_has_sixteen_mebibytes_at_most() -> None:
    assert read_json(b"7" + b" " * (2**24 - 1)) == 7
    with pytest.raises(PlainJsonError, match="its JSON of 16777217 bytes is larger"):
        read_json(b"7" + b" " * 2**24)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"-" + b"9" * 19, "its JSON has a number of 20 digits"),
        (b"{", "its JSON cannot be read: "),
        (b"\xff", "its JSON cannot be read: .*utf-8"),
        (b"[" * 100_000, "its JSON is nested too deeply"),
    ],
)
def test_other_texts_are_refused(text: bytes, words: str) -> None:
    with pytest.raises(PlainJsonError, match=words):
        read_json(text)


def test_a_number_has_nineteen_digits_at_most() -> None:
    assert read_json(b"9" * 19) == 10**19 - 1
