"""The documentation site builds, and no link in it is dead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    configuration = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True)
    build(configuration)  # raises Abort at a warning
    foreign = r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//'
    assert [page.name for page in tmp_path.rglob("*.html") if re.search(foreign, page.read_text("utf-8"))] == []
    front = (tmp_path / "index.html").read_text(encoding="utf-8")
    for door in ("I have a model", "I change VTA", "I compare tuners"):
        assert front.count(door) >= 2, f"{door} is in the navigation and on the front page"
