"""Scores a network's outputs against targets: classes, regression, detection, or a user's own function."""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.tune.plugins import load_module

Array = NDArray[Any]
Outputs = Mapping[str, Array]
"""Each output of all images, images first."""
Score = Callable[[Outputs, Array], dict[str, float]]

NAMES = ("classes", "top5", "regression", "detection")
_TOP = 5
_OVERLAP = 0.7
_LEAST_CONFIDENCE = 0.001
_MOST_BOXES = 300


class MetricError(ValueError):
    """A metric that is unknown or fails, or targets that it cannot take."""


@dataclass(frozen=True)
class Metric:
    """A metric: its name and its function."""

    name: str
    score: Score


def metric_of(name: str, annotations: Path | None = None) -> Metric:
    """Return a metric by name.

    Args:
        name: One of NAMES, or FILE.py:FUNCTION. The function takes the outputs by name, images first, and the targets
            `y`; it returns a number, or numbers by name.
        annotations: COCO's annotations (JSON), for detection.

    Raises:
        MetricError: There is no such metric, or its annotations are missing.
    """
    if name in ("classes", "top5"):
        return Metric(name, lambda outputs, targets: _classes(_first(outputs), targets, _TOP if name == "top5" else 1))
    if name == "regression":
        return Metric(name, lambda outputs, targets: _regression(_first(outputs), targets))
    if name == "detection":
        if annotations is None:
            raise MetricError("--metric detection needs --annotations, a JSON file of COCO's form")
        return Metric(name, lambda outputs, targets: detection(_first(outputs), targets, annotations))
    if ".py:" not in name:
        raise MetricError(f"there is no metric {name}; there are {', '.join(NAMES)}, and FILE.py:FUNCTION for your own")
    return Metric(name, _own(name))


def check_classes(targets: Array, answers: int, source: str) -> None:
    """Raise MetricError for a class that the network does not have; `source` names the data."""
    if strange := [value for value in targets.reshape(-1).tolist() if value not in range(answers)]:
        raise MetricError(f"{source} has class {strange[0]} in y; the network tells classes 0 to {answers - 1} apart")


def _first(outputs: Outputs) -> Array:
    return next(iter(outputs.values()))


def _classes(scores: Array, targets: Array, count: int) -> dict[str, float]:
    flat = scores.reshape(len(scores), -1)
    order = np.argsort(-flat, axis=1, kind="stable")[:, :count]
    hits = order == targets.reshape(-1, 1)
    found = {"accuracy": float(np.mean(hits[:, 0]))}
    return found if count == 1 else {**found, f"top{count}": float(np.mean(hits.any(axis=1)))}


def _regression(values: Array, targets: Array) -> dict[str, float]:
    if values.size != targets.size:
        raise MetricError(f"y has {targets.shape}, the network gives {values.shape}; give one target a value")
    error = values.reshape(targets.shape).astype(np.float64) - targets
    spread = float(np.mean((targets - targets.mean(axis=0)) ** 2))
    return {
        "rmse": math.sqrt(float(np.mean(error**2))),
        "mae": float(np.mean(np.abs(error))),
        "r2": 1 - float(np.mean(error**2)) / spread if spread > 0 else math.nan,
    }


def _own(name: str) -> Score:
    file, _, attribute = name.rpartition(":")
    function = getattr(load_module(f"metric {name}", Path(file).resolve(), "FILE.py:FUNCTION"), attribute, None)
    if not callable(function):
        raise MetricError(f"metric {name}: {Path(file).name} has no function {attribute}")

    def score(outputs: Outputs, targets: Array) -> dict[str, float]:
        try:
            made = function(dict(outputs), targets)
            return {key: float(value) for key, value in (made if isinstance(made, dict) else {attribute: made}).items()}
        except Exception as error:
            raise MetricError(f"metric {name} fails: {type(error).__name__}: {error}") from error

    return score


def detection(outputs: Array, targets: Array, annotations: Path) -> dict[str, float]:
    """Return COCO's mean average precision.

    Args:
        outputs: Boxes (images, n, 6) as x0, y0, x1, y1, confidence, class; or YOLO's heads (images, 4 + classes, n)
            with centres and sizes. In pixels of the annotated images.
        targets: The image id of each image.
        annotations: COCO's JSON. Categories in the order of their ids are the network's classes.

    Raises:
        MetricError: The output has neither form, the file cannot be read, or pycocotools is not installed.
    """
    try:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    except ImportError as error:
        raise MetricError("pycocotools is not installed; `pip install hilt[detection]` brings it") from error
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            truth = COCO(str(annotations))
            categories = sorted(truth.getCatIds())
        except (OSError, json.JSONDecodeError, KeyError, TypeError, AssertionError) as error:
            raise MetricError(f"{annotations} is no JSON file of COCO's annotations: {error}") from error
        found = [
            {
                "image_id": int(image),
                "category_id": categories[int(box[5])],
                "bbox": [float(box[0]), float(box[1]), float(box[2] - box[0]), float(box[3] - box[1])],
                "score": float(box[4]),
            }
            for image, boxes in zip(targets.reshape(-1), map(boxes_of, outputs), strict=True)
            for box in boxes
            if 0 <= int(box[5]) < len(categories)
        ]
        if not found:
            return {"map": 0.0, "map50": 0.0}
        try:
            judged = COCOeval(truth, truth.loadRes(found), "bbox")
        except AssertionError as error:
            raise MetricError(f"y has an image id that {annotations} does not have") from error
        judged.params.imgIds = sorted({int(image) for image in targets.reshape(-1)})
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
    return {"map": float(judged.stats[0]), "map50": float(judged.stats[1])}


def boxes_of(output: Array) -> Array:
    """Return boxes (n, 6) of one image's output, the most confident first. Raises MetricError for another form."""
    made = output.reshape(output.shape[-2:]) if output.ndim > 2 and math.prod(output.shape[:-2]) == 1 else output
    if made.ndim != 2 or min(made.shape) < 5:
        raise MetricError(
            f"the first output is {output.shape}; detection takes boxes (n, 6) or YOLO's heads (4 + classes, n): "
            "write a metric of your own, --metric FILE.py:FUNCTION"
        )
    if made.shape[1] == 6 and made.shape[0] != 6:
        boxes = made[made[:, 4] > _LEAST_CONFIDENCE]
        return boxes[np.argsort(-boxes[:, 4], kind="stable")][:_MOST_BOXES]
    head = made.T if made.shape[0] < made.shape[1] else made
    classes = head[:, 4:].argmax(axis=1)
    confidence = head[np.arange(len(head)), 4 + classes]
    kept = confidence > _LEAST_CONFIDENCE
    centre, half = head[kept, :2], head[kept, 2:4] / 2
    corners = np.concatenate([centre - half, centre + half], axis=1)
    boxes = np.concatenate([corners, confidence[kept, None], classes[kept, None]], axis=1)
    boxes = boxes[np.argsort(-boxes[:, 4], kind="stable")]
    return boxes[_suppressed(boxes)]


def _suppressed(boxes: Array) -> Sequence[int]:
    """Return the places of boxes that no more confident one of their class overlaps."""
    area = np.prod(np.maximum(boxes[:, 2:4] - boxes[:, :2], 0), axis=1)
    alive = np.ones(len(boxes), bool)
    kept: list[int] = []
    for place in range(len(boxes)):
        if not alive[place] or len(kept) == _MOST_BOXES:
            continue
        kept.append(place)
        low = np.maximum(boxes[place, :2], boxes[:, :2])
        high = np.minimum(boxes[place, 2:4], boxes[:, 2:4])
        shared = np.prod(np.maximum(high - low, 0), axis=1)
        overlap = shared / np.maximum(area + area[place] - shared, 1e-12)
        alive &= (overlap <= _OVERLAP) | (boxes[:, 5] != boxes[place, 5])
    return kept
