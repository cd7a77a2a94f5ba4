"""Metrics of `hilt eval`: facts that can be computed by hand, and COCO's own evaluation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hilt.network.metrics import MetricError, boxes_of, metric_of
from hilt.tune.plugins import PluginError

from .models import Array


def scores_of(name: str, output: Array, targets: Array) -> dict[str, float]:
    return metric_of(name).score({"y": output}, targets)


def test_classes_and_their_first_five() -> None:
    scores = np.array([[9, 8, 7, 6, 5, 4, 3], [1, 2, 3, 4, 5, 6, 7], [0, 1, 0, 0, 0, 0, 0]], float).reshape(3, 1, 7)
    assert scores_of("classes", scores, np.array([0, 5, 1])) == {"accuracy": pytest.approx(2 / 3)}
    found = scores_of("top5", scores, np.array([6, 2, 1]))
    assert found == {"accuracy": pytest.approx(1 / 3), "top5": pytest.approx(2 / 3)}


def test_regression() -> None:
    targets = np.array([[1.0], [2.0], [3.0], [4.0]])
    assert scores_of("regression", targets, targets) == {"rmse": 0, "mae": 0, "r2": 1}
    found = scores_of("regression", targets + 2, targets)
    assert found["rmse"] == found["mae"] == 2 and found["r2"] == pytest.approx(1 - 4 / 1.25)
    with pytest.raises(MetricError, match="give one target a value"):
        scores_of("regression", np.zeros((4, 2)), targets)


def test_a_function_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "def share(outputs, y):\n    return {'above': (outputs['y'] > y).mean()}\ndef bad(outputs, y):\n    1 / 0\n"
    )
    assert scores_of(f"{path}:share", np.array([1, 2, 3, 4]), np.array(2)) == {"above": 0.5}
    with pytest.raises(MetricError, match="ZeroDivisionError: division by zero"):
        scores_of(f"{path}:bad", np.zeros(1), np.zeros(1))
    with pytest.raises(MetricError, match="has no function none"):
        metric_of(f"{path}:none")
    with pytest.raises(PluginError, match="there is no file"):
        metric_of(f"{tmp_path}/other.py:share")
    with pytest.raises(
        MetricError, match="there is no metric accuracy; there are classes, top5, regression, detection"
    ):
        metric_of("accuracy")


def test_yolos_heads_become_boxes_without_overlaps() -> None:
    head = np.zeros((1, 6, 40), np.float32)
    head[0, :4, 0], head[0, 4, 0] = (20, 30, 10, 20), 0.9
    head[0, :4, 1], head[0, 4, 1] = (21, 30, 10, 20), 0.8  # overlaps the first
    head[0, :4, 2], head[0, 5, 2] = (21, 30, 10, 20), 0.7  # so does this, of another class
    head[0, :4, 3], head[0, 4, 3] = (70, 70, 4, 4), 0.6
    wanted = [[15, 20, 25, 40, 0.9, 0], [16, 20, 26, 40, 0.7, 1], [68, 68, 72, 72, 0.6, 0]]
    np.testing.assert_allclose(boxes_of(head), wanted, rtol=1e-6)
    with pytest.raises(MetricError, match="write a metric of your own"):
        boxes_of(np.zeros((1, 7)))


def test_detection_is_cocos_mean_average_precision(tmp_path: Path) -> None:
    pytest.importorskip("pycocotools")
    boxes = {1: [(10, 10, 20, 20, 3)], 2: [(30, 30, 10, 10, 3), (50, 50, 20, 10, 8)]}
    truth = {
        "images": [{"id": image, "width": 100, "height": 100} for image in boxes],
        "categories": [{"id": 3, "name": "cat"}, {"id": 8, "name": "dog"}],
        "annotations": [
            {"id": number, "image_id": image, "category_id": kind, "bbox": [x, y, w, h], "area": w * h, "iscrowd": 0}
            for number, (image, (x, y, w, h, kind)) in enumerate(
                ((image, box) for image, found in boxes.items() for box in found), 1
            )
        ],
    }
    path = tmp_path / "coco.json"
    path.write_text(json.dumps(truth))
    right = np.zeros((2, 8, 6), np.float32)
    right[0, 0] = (10, 10, 30, 30, 0.9, 0)
    right[1, 0], right[1, 1] = (30, 30, 40, 40, 0.8, 0), (50, 50, 70, 60, 0.7, 1)
    metric = metric_of("detection", path)
    assert metric.score({"y": right}, np.array([1, 2])) == {"map": pytest.approx(1), "map50": pytest.approx(1)}
    half = right.copy()
    half[1, 1, 4] = 0  # no dog
    assert metric.score({"y": half}, np.array([1, 2]))["map"] == pytest.approx(0.5)
    assert metric.score({"y": np.zeros_like(right)}, np.array([1, 2])) == {"map": 0, "map50": 0}
    with pytest.raises(MetricError, match="--annotations"):
        metric_of("detection")
    (tmp_path / "text.json").write_text("nothing")
    with pytest.raises(MetricError, match="is no JSON file of COCO's annotations"):
        metric_of("detection", tmp_path / "text.json").score({"y": right}, np.array([1, 2]))
