"""Fits and predictions as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.silicon.fit import FREE, CrossValidation, Fit, root_mean_square, unidentified
from hilt.silicon.measured import MeasuredWorkload
from hilt.silicon.predict import MODELS, RecordPrediction, accuracy
from hilt.silicon.records import RecordFile, Skipped


def prediction_json(
    file: RecordFile, skipped: Sequence[Skipped], predictions: Sequence[RecordPrediction]
) -> dict[str, Any]:
    """Return everything that `hilt silicon predict --json` prints."""
    own = accuracy(predictions)
    return {
        "sha256": file.sha256,
        "records": [_prediction(prediction) for prediction in predictions],
        "skipped": [{"line": skip.line, "reason": skip.reason} for skip in skipped],
        "summary": {
            "predicted": len(predictions),
            "skipped": len(skipped),
            "counted": own.records,
            "rms_log_error": own.rms,
            "rank_correlation": own.rank_correlation,
            "by_model": {
                model: {"counted": result.records, "rms_log_error": result.rms}
                for model in MODELS
                for result in [accuracy(predictions, model)]
            },
        },
    }


def _prediction(prediction: RecordPrediction) -> dict[str, Any]:
    record = prediction.measured.record
    return {
        "line": record.line,
        "workload": record.task.name,
        "task": record.task.kind,
        "board": record.board,
        "measured_on": record.date,
        "knobs": record.knobs,
        "instructions": prediction.measured.instructions,
        "measured_seconds": record.mean_seconds,
        "build": prediction.measured.build,
        "predicted_seconds": prediction.chosen,
        "log_error": prediction.log_error,
        "by_model": prediction.seconds,
        "counted": prediction.counts,
        "doubt": record.doubt or ("below the MAC bound at 100 MHz" if record.below_mac_bound else None),
    }


def prediction_lines(skipped: Sequence[Skipped], predictions: Sequence[RecordPrediction]) -> list[str]:
    """Return a table of the predictions, in microseconds."""
    head = (
        f"{'workload':<46} {'build':<18} {'measured':>10} {'predicted':>10} {'error':>8} {'older':>10} {'RTL twin':>10}"
    )
    lines = [head]
    for prediction in predictions:
        record = prediction.measured.record
        error = prediction.log_error
        shown = "" if error is None else f"{100 * error:+.1f} %"
        numbers = [record.mean_seconds, prediction.chosen]
        others = [prediction.seconds[model] for model in MODELS[1:]]
        cells = [f"{1e6 * value:>10.1f}" if value is not None else f"{'-':>10}" for value in (*numbers, *others)]
        doubt = "" if prediction.counts else "  not counted"
        name = f"{record.task.name:<46} {prediction.measured.build:<18}"
        lines.append(f"{name} {cells[0]} {cells[1]} {shown:>8} {cells[2]} {cells[3]}{doubt}")
    lines += [f"line {skip.line} skipped: {skip.reason}" for skip in skipped]
    own = accuracy(predictions)
    ranks = "" if own.rank_correlation is None else f", rank correlation of time per MAC {own.rank_correlation:.4f}"
    lines.append(f"{own.records} records count: root mean square of log error {own.rms:.4f}{ranks}")
    for model in MODELS:
        result = accuracy(predictions, model)
        lines.append(f"all of them by {model}: {result.rms:.4f} over {result.records}")
    return lines


def parameter_lines(result: Fit) -> list[str]:
    """Return the fitted values with their standard errors."""
    return [
        f"{free.name:<22} {result.values[free.name]:>9.4g} +- {result.standard_errors[free.name]:<8.2g} {free.unit}"
        for free in FREE
    ]


def validation_lines(measured: Sequence[MeasuredWorkload], result: Fit, validation: CrossValidation) -> list[str]:
    """Return errors by record: fitted, and with the record's workload left out."""
    lines = [f"{'workload':<46} {'date':<10} {'measured us':>12} {'fitted':>8} {'left out':>9}"]
    for item, fitted, left_out in zip(measured, result.errors, validation.errors, strict=True):
        mean = item.record.mean_seconds or 0.0
        name = f"{item.record.task.name:<46} {item.record.date or '-':<10}"
        lines.append(f"{name} {1e6 * mean:>12.1f} {100 * fitted:>+7.1f}% {100 * left_out:>+8.1f}%")
    lines.append(f"root mean square of log error: {result.rms:.4f} fitted, {validation.rms:.4f} leaving a workload out")
    lines.append(f"rank correlation of time per MAC, leaving a workload out: {validation.rank_correlation:.4f}")
    return lines


def unseen_lines(kind: str, measured: Sequence[MeasuredWorkload], errors: NDArray[np.float64]) -> list[str]:
    """Return the errors of records of a task that no fit saw."""
    lines = [f"{item.record.task.name:<46} {100 * error:>+7.1f}%" for item, error in zip(measured, errors, strict=True)]
    largest = 100 * float(np.max(np.abs(errors)))
    lines.append(f"{kind}, which the fit never saw: {root_mean_square(errors):.4f}, at most {largest:.1f} %")
    return lines


def identification_lines(result: Fit) -> list[str]:
    """Return the limits of the measurements."""
    return unidentified(result)
