"""The training of the prior generator H: the product of its distributions should cover fast valid configurations."""

from __future__ import annotations

import numpy as np
import torch

from hilt.tune.glimpse.encoding import SLOTS, VALUE_FEATURES
from hilt_experiments.glimpse_training.modules import Floats, Perceptron
from hilt_experiments.glimpse_training.pools import Indices, Pools

HIDDEN = 96
SHARPNESS = 8.0
"""Exponent of the merit: a configuration twice as slow as the best counts 2^-8 of it."""
MARGINAL_SHARE = 0.1
"""Share in the loss of the cross-entropy of each knob alone.

It makes each factor a good distribution by itself, and not only their product.
"""
BATCH = 64
RATE = 2e-3
DECAY = 1e-4


def fit_prior(pools: Pools, descriptions: Floats, learnt: Indices, steps: int) -> Perceptron:
    """Minimise -log of the expected merit of a draw from the product, restricted to the pool.

    Each configuration of the pool stands for `weight` of the space. Only the examples in `learnt` are used for
    training.
    """
    network = Perceptron(descriptions[learnt], (HIDDEN, HIDDEN, len(SLOTS) * VALUE_FEATURES))
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
    merits = np.stack([pools.merit(example) for example in pools.examples]) ** SHARPNESS
    tasks = np.array([example.task for example in pools.examples])
    for _ in range(steps):
        rows = learnt[torch.randint(len(learnt), (BATCH,)).numpy()]
        loss = _loss(network, pools, descriptions[rows], tasks[rows], merits[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return network


def _loss(network: Perceptron, pools: Pools, descriptions: Floats, tasks: Indices, merits: Floats) -> torch.Tensor:
    parameters = network(torch.from_numpy(descriptions)).reshape(-1, len(SLOTS), VALUE_FEATURES)
    logits = torch.einsum("bsf,bsvf->bsv", parameters, torch.from_numpy(pools.values[tasks]))
    exists = torch.from_numpy(pools.value_exists[tasks])
    exists = torch.cat([exists[..., :1] | ~exists.any(dim=2, keepdim=True), exists[..., 1:]], dim=2)  # absent knobs
    logarithms = torch.log_softmax(logits.masked_fill(~exists, -1e9), dim=2)
    positions = torch.from_numpy(pools.positions[tasks])
    each = torch.gather(logarithms, 2, positions.transpose(1, 2))  # (batch, slots, pool)
    weight = torch.from_numpy(pools.weight[tasks])
    joint = torch.log_softmax(each.sum(dim=1) + torch.log(weight.clamp_min(1e-12)), dim=1)
    merit = torch.from_numpy(merits)
    expected = -torch.logsumexp(joint + torch.log(merit.clamp_min(1e-12)), dim=1).mean()
    share = merit / merit.sum(dim=1, keepdim=True).clamp_min(1e-12)
    marginal = -(share[:, None, :] * each).sum(dim=2).mean()
    return expected + MARGINAL_SHARE * marginal
