"""The recording of the README: every frame is seen once in its turn, and the file asks for nothing."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def recorder() -> Any:
    """Import docs/pictures/record.py, which is a program and no package."""
    spec = importlib.util.spec_from_file_location("record", PICTURES / "record.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_recording_that_ships_is_small_and_whole() -> None:
    text = (PICTURES / "recording.svg").read_text(encoding="utf-8")
    assert len(text) < 200_000 and "http" not in text.replace("http://www.w3.org/2000/svg", "")
    root = ElementTree.fromstring(text)  # our own file
    rows = {row.get("id"): "".join(row.itertext()) for row in root.iter(f"{_SVG}text")}
    assert any(row.startswith("$ hilt tune resnet18.C10") for row in rows.values())
    assert all(use.get("href", "")[1:] in rows for use in root.iter(f"{_SVG}use"))


def test_frames_follow_each_other_and_pauses_are_cut(recorder: Any) -> None:
    events = [(0.0, "one\r\n"), (0.01, "\x1b[31mred <&>\x1b[0m"), (60.0, "\x1b[2J\x1b[Hlast")]
    shown = recorder.frames(events)
    assert [seconds for seconds, _ in shown] == [recorder.PAUSE, recorder.LAST], "0.01 s is too short to be seen"
    assert "one" in shown[0][1][0] and "red &lt;&amp;&gt;" in shown[0][1][1] and "last" in shown[1][1][0]
    root = ElementTree.fromstring(recorder.svg(shown))
    times = [each.get("keyTimes", "").split(";") for each in root.iter(f"{_SVG}animate")]
    assert [float(time[1]) for time in times] == pytest.approx([0.8 / 4.8, 0.8 / 4.8], abs=1e-4)
