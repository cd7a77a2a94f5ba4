"""HW-Aware Initialization, Figure 2: the effect of the share of valid training samples on the cost model."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from hilt.schedule import knob_features
from hilt.tune.boosted_trees import BoostedTrees, Loss
from hilt.tune.metrics import ndcg_at, pairwise_accuracy, precision_at
from hilt_experiments.bench import Bench
from hilt_experiments.datasets import DEEPBENCH, dataset_of, subject

RATIOS = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95)
SIZES = (50, 100, 200)
AT = 50
"""The cutoff of precision and nDCG, in configurations: one epoch. The paper does not give it."""
_METRICS = ("ndcg", "precision", "valid_invalid", "valid_valid", "all")


def figure2(bench: Bench) -> None:
    """Hold Figure 2: trees of AutoTVM, trained on samples with several shares of valid ones.

    They are judged on a quarter of the space, set aside.
    """
    seeds = bench.seeds(1, 20)
    rows: list[dict[str, Any]] = []
    for name in bench.workloads(DEEPBENCH, DEEPBENCH):
        of = subject(name)
        dataset = dataset_of(of)
        if not dataset.valid.any():
            bench.report(f"{name} is left out: none of its configurations is valid")
            continue
        performance = dataset.optimum / dataset.microseconds
        features = knob_features(of.space, np.arange(len(of.space)))
        for seed in range(seeds):
            generator = np.random.default_rng(seed)
            shuffled = generator.permutation(len(performance))
            test, training = np.split(shuffled, [len(shuffled) // 4])
            valid = training[dataset.valid[training]]
            invalid = training[~dataset.valid[training]]
            for size in SIZES:
                for ratio in RATIOS:
                    wanted = round(ratio * size)
                    if wanted > len(valid) or size - wanted > len(invalid):
                        continue
                    chosen = np.concatenate((valid[:wanted], invalid[: size - wanted]))
                    trees = BoostedTrees(Loss.RANK, min(64, size), 400, 20, seed)
                    trees.fit(features[chosen], performance[chosen].astype(np.float32))
                    predicted = trees.predict(features[test])
                    pairs = pairwise_accuracy(predicted, performance[test])
                    found = (
                        ndcg_at(predicted, performance[test], AT),
                        precision_at(predicted, dataset.valid[test], AT),
                        *(pairs.valid_invalid, pairs.valid_valid, pairs.all),
                    )
                    measured = dict(zip(_METRICS, (round(each, 5) for each in found), strict=True))
                    rows.append({"workload": name, "seed": seed, "samples": size, "valid_ratio": ratio, **measured})
    bench.table("figure2", rows)
    _draw(bench, rows)
    compare(bench, rows)


def mean_of(rows: list[dict[str, Any]], metric: str, size: int, ratio: float) -> float:
    """Return the mean of `metric` over the layers and seeds that have a sample for every share.

    Otherwise a curve would change its layers on its way.
    """
    of_size = [row for row in rows if row["samples"] == size]
    shares = Counter((row["workload"], row["seed"]) for row in of_size)
    found = [
        row[metric]
        for row in of_size
        if row["valid_ratio"] == ratio and shares[row["workload"], row["seed"]] == len(RATIOS)
    ]
    return float(np.nanmean(found)) if found else float("nan")


def _draw(bench: Bench, rows: list[dict[str, Any]]) -> None:
    with bench.plot("figure2", rows=2, columns=2) as plots:
        for axes, metric in zip(plots, _METRICS[:4], strict=True):
            for size in SIZES:
                axes.plot(
                    RATIOS, [mean_of(rows, metric, size, ratio) for ratio in RATIOS], ".-", label=f"{size} samples"
                )
            axes.set(title=metric.replace("_", "-"), xlabel="valid share of the training set")
            axes.legend(fontsize=6)


def compare(bench: Bench, rows: list[dict[str, Any]]) -> None:
    """Keep a comparison for each part of the figure, with 100 samples.

    Without a layer that has them for every share there is a line, and no comparison.
    """
    size = 100
    curve = [mean_of(rows, "ndcg", size, ratio) for ratio in RATIOS]
    if np.isnan(curve).all():
        bench.report(f"no layer has {size} samples for every share")
        return
    best = RATIOS[int(np.nanargmax(curve))]
    bench.compare(
        f"Figure 2a: valid share at which nDCG@{AT} is best ({size} samples)",
        "0.5",
        f"{best} (nDCG {np.nanmax(curve):.3f}; {curve[0]:.3f} at {RATIOS[0]}, {curve[-1]:.3f} at {RATIOS[-1]})",
    )
    for figure, metric, paper in (
        ("2b", "precision", "falls"),
        ("2c", "valid_invalid", "falls"),
        ("2d", "valid_valid", "-"),
    ):
        low, high = mean_of(rows, metric, size, 0.1), mean_of(rows, metric, size, 0.9)
        bench.compare(f"Figure {figure}: {metric} at valid shares 0.1 and 0.9", paper, f"{low:.3f} and {high:.3f}")
    gain = [mean_of(rows, "all", each, 0.5) for each in SIZES]
    bench.compare(
        "Figure 2: pairs ordered right, by samples",
        "little gain after 100",
        ", ".join(f"{value:.3f} at {each}" for each, value in zip(SIZES, gain, strict=True)),
    )
