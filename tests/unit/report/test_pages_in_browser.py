"""Pages in Chromium: none is wider than its window or cuts code, none asks the network for anything or has an error."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from hilt.engine.campaign_results import load_result
from hilt.explore.area import modelled_area
from hilt.explore.design import Design
from hilt.explore.exploration import Evaluation
from hilt.explore.inference import infer
from hilt.explore.page import exploration_page
from hilt.explore.subject import Subject
from hilt.report.comparison import compare, comparison_page
from hilt.report.facts import facts_of_campaign
from hilt.report.html import render
from hilt.report.interactive import Plot
from hilt.report.interactive import page as interactive_page
from hilt.report.network_page import network_page
from hilt.store import Store, database_path
from hilt.vta.parameters import load_parameters

from .campaign_store import make
from .views import long_view, small_view

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_WIDTHS = (400, 800, 1300)
_TIMEOUT = 120_000
"""Milliseconds: beside other work Chromium takes half a minute for the plots of a report."""
_WHOLE_CODE = "[...document.querySelectorAll('pre')].every((each) => each.scrollWidth <= each.clientWidth + 1)"
_LOST = """name => {
    const drawn = [...document.querySelectorAll(`#${name} canvas`)];
    const isLost = (each) => (each.getContext("webgl2") || each.getContext("webgl")).isContextLost();
    return drawn.length === 0 || drawn.some(isLost);
}"""
_ROOT = Path(__file__).parents[3]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_CHROMIUM is None, reason="no Chromium is in PATH (Debian: apt-get install chromium)"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright, of the group `test`, is missing")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=_CHROMIUM, args=["--no-sandbox", "--disable-gpu"], timeout=_TIMEOUT
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
        "designs": designs_page(),
    }
    found = {}
    for name, text in texts.items():
        found[name] = home / f"{name}.html"
        found[name].write_text(text, encoding="utf-8")
    return found


def designs_page() -> str:
    """Return the page of ten designs of one layer, which differ in their clocks."""
    layer = "conv2d:n=1,ci=16,h=8,w=8,co=32,k=3x3,s=1x1,p=1x1"
    first = Design(load_parameters("pynq"))
    inference, area = infer(Subject("small", None, ((layer, 2),)), first), modelled_area(first)
    designs = [replace(first, clock_hz=clock * 10_000_000) for clock in range(5, 15)]
    return exploration_page(
        "small", [Evaluation(each, inference, area, 0.0) for each in designs], ["x: no"], None, ["y"], 5
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Serve the documentation on this machine, and give the address of each page."""
    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(_ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        pages = sorted(path.parent.relative_to(folder) for path in folder.rglob("index.html"))
        yield [f"http://127.0.0.1:{server.server_port}/{page.as_posix()}/" for page in pages]
        server.shutdown()
        thread.join()


def test_no_page_of_the_site_is_wider_than_its_window(browser: Any, site: list[str]) -> None:
    assert len(site) > 30
    assert fit(browser, site) == []


@pytest.mark.parametrize("name", ["network", "long", "report", "compare", "designs"])
def test_no_page_is_wider_than_its_window(browser: Any, pages: dict[str, Path], name: str) -> None:
    assert fit(browser, [pages[name].as_uri()]) == []


def fit(browser: Any, addresses: Sequence[str]) -> list[str]:
    """Open pages at each width: none asks another site. Return the errors of their scripts."""
    asked: list[str] = []
    errors: list[str] = []
    wide: list[str] = []
    page = browser.new_page()
    page.set_default_timeout(_TIMEOUT)
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    for address in addresses:
        page.set_viewport_size({"width": _WIDTHS[0], "height": 900})
        page.goto(address)
        for width in _WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            if not page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"):
                wide.append(f"{address} at {width} pixels")
            if not page.evaluate(_WHOLE_CODE):
                wide.append(f"a block of code of {address} at {width} pixels")
    page.close()
    assert wide == []
    own = addresses[0].partition("://")[2].partition("/")[0]
    assert {url for url in asked if not url.startswith(("file:", "data:", "blob:", f"http://{own}/"))} == set()
    return errors


def test_a_click_on_a_node_shows_its_facts(browser: Any, pages: dict[str, Path]) -> None:
    page = browser.new_page()
    page.set_default_timeout(_TIMEOUT)
    page.goto(pages["long"].as_uri())
    assert page.locator("g.node").count() == 195 + 2
    page.locator("tr[data-node='7']").click()
    facts = page.locator(".facts").inner_text()
    assert "features.block_7.conv" in facts and "why there" in facts and "VTA takes" in facts
    page.close()


def test_however_many_plots_have_coordinates_those_in_view_are_drawn(browser: Any, tmp_path: Path) -> None:
    """A browser has some sixteen drawings with WebGL at a time, and a plot takes three."""
    axes = [{"label": name, "values": [0, 1, 2]} for name in ("tile_h", "tile_w")]
    names = [f"plot-{place}" for place in range(6)]
    plots = [Plot(name, "", [{"type": "parcoords", "dimensions": axes}]).html() for name in names]
    (tmp_path / "many.html").write_text(interactive_page("many", plots), encoding="utf-8")
    page = browser.new_page()
    page.set_default_timeout(_TIMEOUT)
    page.goto((tmp_path / "many.html").as_uri())
    for name in (*names, names[0]):
        page.locator(f"#{name}").scroll_into_view_if_needed()
        page.wait_for_selector(f"#{name} canvas", state="attached")
        assert not page.evaluate(_LOST, name), name
    page.close()


def test_a_legend_of_two_rows_stands_above_its_plot(browser: Any, tmp_path: Path) -> None:
    names = ("other designs", "Pareto front", "too large for the part")
    plot = Plot("front", "", [{"type": "scatter", "name": name, "x": [1, 2], "y": [1, 2]} for name in names])
    (tmp_path / "legend.html").write_text(interactive_page("legend", [plot.html()]), encoding="utf-8")
    page = browser.new_page(viewport={"width": _WIDTHS[0], "height": 900})
    page.set_default_timeout(_TIMEOUT)
    page.goto((tmp_path / "legend.html").as_uri())
    page.wait_for_selector("#front .legend")
    legend, grid = (page.locator(f"#front {part}").first.bounding_box() for part in (".legend", ".gridlayer"))
    assert legend["height"] > 30 and legend["y"] + legend["height"] <= grid["y"] + 1
    page.close()
