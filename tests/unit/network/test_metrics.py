"""Metrics of `hilt eval`: facts that can be computed by hand, and COCO's own evaluation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hilt.network import metrics
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


def box(x: float, width: float, confidence: float, kind: int = 0) -> list[float]:
    return [x, 0.0, x + width, 10.0, confidence, kind]


def heads_of(boxes: list[list[float]], classes: int = 2, count: int = 40) -> Array:
    """Return YOLO's heads of boxes: centres and sizes, and a confidence for each class."""
    made = np.zeros((4 + classes, count), np.float64)
    for place, (left, top, right, bottom, confidence, kind) in enumerate(boxes):
        made[:4, place] = (left + right) / 2, (top + bottom) / 2, right - left, bottom - top
        made[4 + int(kind), place] = confidence
    return made


def test_boxes_come_by_confidence_and_doubtful_ones_not_at_all() -> None:
    least = metrics._LEAST_CONFIDENCE
    given = np.array([box(0, 5, 0.2), box(10, 5, least), box(20, 5, 0.9), box(30, 5, 0.2), box(40, 5, 2 * least)])
    for output in (given, given[None], given[None, None]):
        assert boxes_of(output)[:, 0].tolist() == [20, 0, 30, 40]
    assert boxes_of(heads_of(given.tolist()))[:, 0].tolist() == [20, 0, 30, 40]
    many = np.array([box(8 * place, 5, 0.5) for place in range(metrics._MOST_BOXES + 3)])
    assert len(boxes_of(many)) == len(boxes_of(heads_of(many.tolist(), count=500))) == metrics._MOST_BOXES


def test_heads_may_lie_the_other_way() -> None:
    tall = heads_of([box(3, 4, 0.8, 1)], count=30).T
    np.testing.assert_allclose(boxes_of(tall[:, :5].copy()), np.zeros((0, 6)), err_msg="its only class has none")
    np.testing.assert_allclose(boxes_of(heads_of([box(3, 4, 0.8, 2)], classes=3, count=30).T), [box(3, 4, 0.8, 2)])
    assert boxes_of(heads_of([], classes=1, count=5)).shape == (0, 6)
    for shape in ((4, 30), (2, 6, 40), (6,)):
        with pytest.raises(MetricError):
            boxes_of(np.zeros(shape))


def test_a_box_gives_way_to_a_more_confident_one_that_it_overlaps_by_more_than_the_limit() -> None:
    """Boxes 10 wide that lie d apart share (10 - d) of their (10 + d)."""
    limit = metrics._OVERLAP
    apart = 10 * (1 - limit) / (1 + limit)
    for distance, left in ((apart + 0.01, 2), (apart - 0.01, 1), (10.0, 2), (0.0, 1)):
        found = boxes_of(heads_of([box(0, 10, 0.9), box(distance, 10, 0.8)]))
        assert len(found) == left, distance
    assert len(boxes_of(heads_of([box(0, 10, 0.9, 0), box(0, 10, 0.8, 1)]))) == 2, "of another class"
    chain = [box(0, 10, 0.9), box(0.8 * apart, 10, 0.8), box(1.6 * apart, 10, 0.7)]
    assert len(boxes_of(heads_of(chain))) == 2, "a box that gave way takes no other away"
    high = [[0.0, 0.0, 10.0, 10.0, 0.9, 0], [0.0, apart + 0.01, 10.0, 10 + apart + 0.01, 0.8, 0]]
    assert len(boxes_of(heads_of(high))) == 2, "as along the rows"


def test_targets_of_one_value_have_no_spread() -> None:
    found = scores_of("regression", np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    assert found["rmse"] == found["mae"] == 1 and np.isnan(found["r2"])
    with pytest.raises(MetricError, match=r"y has \(2,\), the network gives \(3,\)"):
        scores_of("regression", np.zeros(3), np.zeros(2))


@pytest.mark.parametrize(("targets", "strange"), [([0, 9, 3], None), ([0, 10], 10), ([-1], -1), ([0.5], 0.5)])
def test_classes_are_those_that_the_network_tells_apart(targets: list[float], strange: float | None) -> None:
    if strange is None:
        metrics.check_classes(np.array(targets), 10, "d.npz")
        return
    with pytest.raises(MetricError, match=f"^d.npz has class {strange} in y; the network tells classes 0 to 9 apart$"):
        metrics.check_classes(np.array(targets), 10, "d.npz")
