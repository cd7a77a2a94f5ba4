"""The training of the threshold generator: each knob's predictor by itself, on valid and invalid configurations."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from hilt.tune.glimpse.encoding import CONFIGURATION_FEATURES, SLOTS
from hilt.tune.glimpse.thresholds import COEFFICIENTS, PIECES
from hilt_experiments.glimpse_training.modules import Floats, Perceptron
from hilt_experiments.glimpse_training.pools import Booleans, Indices, Pools

HIDDEN = 64
BATCH = 64
CONFIGURATIONS = 128
RATE = 3e-3
SHARPNESS = 4.0
"""Sharpness of the maximum over pieces, which is soft during training."""
FALSE_ALARM = 5.0
"""Cost of rejecting a valid configuration over that of measuring an invalid one: a rejection can hide the optimum."""


def fit_thresholds(pools: Pools, descriptions: Floats, learnt: Indices, steps: int) -> Perceptron:
    """Train the generator on the examples in `learnt`; half of each step's configurations are valid, half are not."""
    network = Perceptron(descriptions[learnt], (HIDDEN, COEFFICIENTS))
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
    tasks = np.array([example.task for example in pools.examples])
    levels = np.array([example.level for example in pools.examples])
    for _ in range(steps):
        rows = learnt[torch.randint(len(learnt), (BATCH,)).numpy()]
        exists = pools.indices[tasks[rows]] >= 0
        valid = pools.valid[tasks[rows], :, levels[rows]]
        chosen = _balanced(valid, exists)
        features = np.take_along_axis(pools.features[tasks[rows]], chosen[..., None], axis=1)
        labels = torch.from_numpy(~np.take_along_axis(valid, chosen, axis=1)).float()
        generated = network(torch.from_numpy(descriptions[rows]))
        generated = generated.reshape(-1, len(SLOTS), PIECES, CONFIGURATION_FEATURES + 1)
        above = torch.einsum("bspf,bnf->bnsp", generated[..., :-1], torch.from_numpy(features))
        above = above + generated[..., -1][:, None]
        soft = torch.logsumexp(SHARPNESS * above, dim=3) / SHARPNESS
        cost = torch.where(labels > 0, 1.0, FALSE_ALARM)[..., None].expand_as(soft)
        loss = binary_cross_entropy_with_logits(soft, labels[..., None].expand_as(soft), weight=cost)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return network


def _balanced(valid: Booleans, exists: Booleans) -> Indices:
    """Return (batch, CONFIGURATIONS) members of each pool, drawn with replacement."""
    odds = torch.rand(len(valid), CONFIGURATIONS).numpy()
    sides = torch.rand(len(valid), CONFIGURATIONS).numpy() < 0.5
    chosen = np.empty((len(valid), CONFIGURATIONS), dtype=np.int64)
    for row in range(len(valid)):
        kinds = [np.flatnonzero(valid[row]), np.flatnonzero(~valid[row] & exists[row])]
        kinds = [kind if len(kind) else other for kind, other in zip(kinds, kinds[::-1], strict=True)]
        picks = [kind[(odds[row] * len(kind)).astype(np.int64)] for kind in kinds]
        chosen[row] = np.where(sides[row], *picks)
    return chosen
