"""Draw hilt's pages in Chromium: parts as SVG, without scripts and without style sheets; the top of a page as PNG."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

_STYLES = ("fill", "stroke", "stroke-width", "font-family", "font-size", "font-weight", "text-anchor", "opacity")
_TIMEOUT = 180_000
"""Milliseconds: beside other work Chromium takes half a minute for the plots of a report."""
_TOP_WIDTH = 900
_COLOURS = 48
_MARGIN = 30
"""Pixels between the line above a heading and the heading."""
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


class Top(NamedTuple):
    """The top of a page, from its first line down to before the first heading of a text."""

    page: Path
    before: str
    picture: Path


def draw(parts: Sequence[Part], tops: Sequence[Top] = ()) -> None:
    """Write the pictures. Raises SystemExit without Chromium in PATH, and playwright's errors."""
    from PIL import Image
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
        for top in tops:
            page = browser.new_page(viewport={"width": _TOP_WIDTH, "height": 900})
            page.set_default_timeout(_TIMEOUT)
            page.goto(top.page.as_uri())
            end = page.get_by_role("heading", name=top.before, exact=True).bounding_box()["y"]
            size = {"x": 0, "y": 0, "width": _TOP_WIDTH, "height": end - _MARGIN}
            shot = Image.open(BytesIO(page.screenshot(clip=size, full_page=True)))
            shot.convert("RGB").quantize(_COLOURS).save(top.picture, optimize=True)
            page.close()
        browser.close()
