"""Pages in Chromium: none is wider than its window, none asks the network for anything, none has an error."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hilt.engine.campaign_results import load_result
from hilt.report.comparison import compare, comparison_page
from hilt.report.facts import facts_of_campaign
from hilt.report.html import render
from hilt.report.network_page import network_page
from hilt.store import Store, database_path

from .campaign_store import make
from .views import long_view, small_view

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_WIDTHS = (400, 800, 1300)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_CHROMIUM is None, reason="no Chromium is in PATH (Debian: apt-get install chromium)"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright, of the group `test`, is missing")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=_CHROMIUM, args=["--no-sandbox", "--disable-gpu"], timeout=120_000
        )
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("home")
    campaign, _ = make(home)
    with Store(database_path(home)) as store:
        facts = facts_of_campaign(store, load_result(store, campaign))
    texts = {
        "network": network_page(small_view()),
        "long": network_page(long_view()),
        "report": render(facts),
        "compare": comparison_page(list(facts.runs), [], compare(list(facts.runs))),
    }
    found = {}
    for name, text in texts.items():
        found[name] = home / f"{name}.html"
        found[name].write_text(text, encoding="utf-8")
    return found


@pytest.mark.parametrize("name", ["network", "long", "report", "compare"])
def test_no_page_is_wider_than_its_window(browser: Any, pages: dict[str, Path], name: str) -> None:
    asked: list[str] = []
    errors: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    for width in _WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(pages[name].as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} at {width} pixels"
    page.close()
    assert errors == [] and all(url.startswith(("file:", "data:", "blob:")) for url in asked)


def test_a_click_on_a_node_shows_its_facts(browser: Any, pages: dict[str, Path]) -> None:
    page = browser.new_page()
    page.goto(pages["long"].as_uri())
    assert page.locator("g.node").count() == 195 + 2
    page.locator("tr[data-node='7']").click()
    facts = page.locator(".facts").inner_text()
    assert "features.block_7.conv" in facts and "why there" in facts and "VTA takes" in facts
    page.close()
