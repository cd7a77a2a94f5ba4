"""Draw parts of hilt's pages as SVG, in Chromium: what a browser shows, without scripts and without style sheets."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_STYLES = ("fill", "stroke", "stroke-width", "font-family", "font-size", "font-weight", "text-anchor", "opacity")
_TIMEOUT = 180_000
"""Milliseconds: beside other work Chromium takes half a minute for the plots of a report."""
_DRAW = """
async ([selector, styles]) => {
    const found = document.querySelector(selector);
    if (found.classList.contains("js-plotly-plot")) {
        const size = {format: "svg", width: 900, height: 420};
        return decodeURIComponent((await Plotly.toImage(found, size)).split(",").slice(1).join(","));
    }
    const copy = found.cloneNode(true), originals = found.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((each, place) => {
        const computed = getComputedStyle(originals[place]);
        styles.forEach((name) => each.style.setProperty(name, computed.getPropertyValue(name)));
    });
    const box = found.getBoundingClientRect();
    copy.setAttribute("width", box.width);
    copy.setAttribute("height", box.height);
    if (!copy.hasAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    return new XMLSerializer().serializeToString(copy);
}
"""


class Part(NamedTuple):
    """A part of a page: the first element of a selector is drawn to a file."""

    page: Path
    selector: str
    picture: Path


def draw(parts: Sequence[Part]) -> None:
    """Write the parts' pictures. Raises SystemExit without Chromium in PATH, and playwright's errors."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("no Chromium is in PATH: the pages' pictures are not drawn (Debian: apt-get install chromium)")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for part in parts:
            page = browser.new_page(viewport={"width": 1300, "height": 900})
            page.set_default_timeout(_TIMEOUT)
            page.goto(part.page.as_uri())
            page.wait_for_selector(part.selector)
            part.picture.write_text(page.evaluate(_DRAW, [part.selector, _STYLES]), encoding="utf-8")
            page.close()
        browser.close()
