"""The latest inference of a bundle is kept, the newest first, and one that cannot be drawn is left out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hilt import paths
from hilt.network.kept_view import keep_view, kept_view, kept_views, read_view

VIEW: dict[str, Any] = {
    "name": "small", "board": "pynq", "nodes": [], "edges": [], "slices": [], "parts": [], "runs": [],
    "latency": {"vta": 1.0, "start": 2.0, "crossings": 3.0, "processor": 4.0, "starts": 1},
}  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "home", lambda: tmp_path / "home")
    return tmp_path / "home"


def test_the_latest_of_each_bundle_is_kept(home: Path) -> None:
    assert kept_view(b"one") is None and kept_views(home) == []
    keep_view(b"one", {**VIEW, "name": "older"})
    keep_view(b"one", VIEW)
    keep_view(b"two", {**VIEW, "name": "other"})
    assert kept_view(b"one") == VIEW
    assert kept_view(b"three") is None
    for number, path in enumerate(sorted(kept_views(home))):
        os.utime(path, (number, number))
    found = kept_views(home)
    assert len(found) == 2 and found == sorted(found, reverse=True)
    assert sorted(read_view(path)["name"] for path in found) == ["other", "small"]  # type: ignore[index]
    assert found[0].read_text().endswith("}\n")


@pytest.mark.parametrize("lost", VIEW)
def test_a_view_that_lacks_a_part_is_none(lost: str) -> None:
    keep_view(b"one", {name: value for name, value in VIEW.items() if name != lost})
    assert kept_view(b"one") is None


@pytest.mark.parametrize("text", ["", "[]", "7", "{", json.dumps({**VIEW, "latency": {"vta": 1.0}})])
def test_a_file_that_is_no_view_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "view.json").write_text(text)
    assert read_view(tmp_path / "view.json") is None
