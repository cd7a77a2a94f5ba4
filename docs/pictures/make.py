"""Make the pictures of the documents: the terminal interface and pages, and an example report.

    python docs/pictures/make.py FOLDER

It tunes resnet18.C5 with two tuners, and ResNet-8, on a virtual board, and explores designs for ResNet-8, in a state
of its own below FOLDER. The pages' parts need Chromium.
`make pictures` puts the SVG files into docs/pictures and the campaign's report into docs/examples.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pages import Part, Top, draw

if TYPE_CHECKING:
    from hilt.store import Campaign, Run, Store

WORKLOAD = "resnet18.C5"
BOARD = "virtual:pynq"
SIZE = (100, 30)
SWEEP = """
[base]
parameters = "pynq"

[sweep]
LOG_BLOCK = [3, 4, 5]
LOG_INP_BUFF_SIZE = [13, 14, 15]
LOG_WGT_BUFF_SIZE = [16, 17, 18]
bus_bits = [64, 128]
"""


def main(folder: Path) -> None:
    """Make everything in `folder`."""
    os.environ["HILT_HOME"] = str(folder / "home")
    for tuner, seed in (("random", 1), ("random", 2), ("ga", 1)):
        _hilt("tune", WORKLOAD, "--board", BOARD, "--tuner", tuner, "--trials", "120", "--seed", str(seed))
    _hilt("report", "last", "--html", str(folder / "report.html"))
    keys = (("2", "run"), ("4", "space"), ("7", "runs"), ("n", "new-run"))
    asyncio.run(_screens(folder, lambda store: store.runs(1)[0], keys))
    _campaign_report(folder)
    asyncio.run(_screens(folder, lambda store: store.campaigns()[0], (("1", "campaign"), ("8", "network"))))
    _explore(folder)
    draw(
        [
            Part(folder / "campaign-whole.html", ".net .canvas svg", folder / "page-network.svg"),
            Part(folder / "campaign-whole.html", ".net .time svg", folder / "page-timeline.svg"),
            Part(folder / "designs" / "designs.html", "#front-bram36", folder / "page-designs.svg"),
            Part(folder / "report.html", "#trials-0", folder / "page-trials.svg"),
        ],
        [Top(folder / "campaign-whole.html", "Graph", folder / "page-report.png")],
    )


def _campaign_report(folder: Path) -> None:
    """Quantise ResNet-8, tune it on a virtual board, and write the campaign's report."""
    import numpy as np
    import onnx

    from hilt.network import zoo

    model = folder / "resnet8.onnx"
    data = folder / "resnet8.npz"
    onnx.save(zoo.make("resnet8"), str(model))
    np.savez(data, input=zoo.calibration_data("resnet8", 8))
    words = ("campaign", str(model), "--calibration", str(data), "--board", BOARD, "--budget", "60")
    _hilt(*words, "--output", str(folder / "campaign"))
    _hilt("report", "last", "--static", "--html", str(folder / "campaign-report.html"))
    _hilt("report", "last", "--html", str(folder / "campaign-whole.html"))


def _explore(folder: Path) -> None:
    """Explore designs of the campaign's model."""
    (folder / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    words = ("explore", str(folder / "resnet8.onnx"), "--sweep", str(folder / "sweep.toml"), "--part", "7z020")
    _hilt(*words, "--output", str(folder / "designs"))


def _hilt(*arguments: str) -> None:
    subprocess.run([Path(sys.executable).with_name("hilt"), *arguments], check=True, stdout=subprocess.DEVNULL)


async def _screens(folder: Path, record: Callable[[Store], Run | Campaign], keys: Sequence[tuple[str, str]]) -> None:
    """Write an SVG of each screen of a run or campaign; `keys`: of (key, the picture's name)."""
    from hilt import paths
    from hilt.store import Store, database_path
    from hilt.tui.app import HiltApp

    with Store(database_path(paths.home())) as store:
        app = HiltApp(paths.home(), store, record(store))
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause(4.0)
            for key, name in keys:
                await pilot.press(key)
                await pilot.pause(4.0)
                # Without Textual's fonts, which a viewer would fetch from another server.
                drawn = re.sub(r"@font-face \{.*?\}", "", app.export_screenshot(title="hilt"), flags=re.DOTALL)
                (folder / f"tui-{name}.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
