"""The training of the neural acquisition function.

It first imitates an oracle that knows every merit. Then follows reinforcement (proximal policy optimisation, as in
MetaBO) on whole searches, which minimises regret.

State: the candidates with their known features, step and budget, layer and Blueprint. Action: the batch to measure,
drawn without replacement from the softmax of the candidates' worths. Reward of a step: minus the regret after it. The
baseline is the mean over searches of the same layer, target and budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from hilt.tune.glimpse.encoding import CONFIGURATION_FEATURES
from hilt_experiments.glimpse_training.modules import Floats, Perceptron
from hilt_experiments.glimpse_training.searches import BUDGETS, CANDIDATES, Course, Search, Step, pick

HIDDEN = (64, 64)
ORACLE_SHARPNESS = 12.0
ORACLE_RATE = 2e-3
ORACLE_BATCH = 32
GROUP = 4
"""Searches of one example and budget."""
DISCOUNT = 0.95
EPOCHS = 3
CLIP = 0.2
RATE = 3e-4
ENTROPY = 2e-3

Report = Callable[[str], None]


@dataclass(frozen=True)
class AcquisitionSchedule:
    """The length of the training: searches to show the oracle, its steps, and rounds of reinforcement."""

    oracle_searches: int = 80
    oracle_steps: int = 300
    rounds: int = 12
    groups: int = 8
    """Groups of searches in a round."""


def fit_acquisition(courses: Sequence[Course], schedule: AcquisitionSchedule, seed: int, report: Report) -> Perceptron:
    """Train the network; the result depends only on courses, schedule and seed."""
    generator = np.random.default_rng(seed)
    shown = [_search(courses, generator, _surrogate_and_chance(generator)) for _ in range(schedule.oracle_searches)]
    steps = [step for search in shown for step in search.steps]
    examples = np.concatenate([step.inputs for step in steps])
    network = Perceptron(examples, (*HIDDEN, 1))
    _imitate(network, steps, schedule.oracle_steps, generator)
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
    for number in range(schedule.rounds):
        groups = [_group(courses, network, generator) for _ in range(schedule.groups)]
        _reinforce(network, optimiser, groups)
        if number % 4 == 0 or number == schedule.rounds - 1:
            mean = np.mean([step.regret for group in groups for search in group for step in search.steps])
            report(f"reinforcement round {number}: mean regret {mean:.3f}")
    return network


Policy = Callable[[Floats], Floats]
"""A function from inputs (candidates, inputs) to worths (candidates,)."""


def policy_of(network: Perceptron) -> Policy:
    """Return the present network as a policy."""

    def worth(inputs: Floats) -> Floats:
        with torch.no_grad():
            return np.asarray(network(torch.from_numpy(inputs))[:, 0].numpy())

    return worth


def run_search(course: Course, budget: tuple[int, int], policy: Policy, generator: np.random.Generator) -> Search:
    """Run a whole search."""
    search = Search(course, *budget, generator)
    while not search.over:
        candidates, inputs = search.candidates()
        search.measure(candidates, inputs, pick(policy(inputs), search.batch, generator))
    return search


def _surrogate_and_chance(generator: np.random.Generator) -> Policy:
    """Return a policy for searches before training: the surrogate's prediction, more or less closely followed."""
    trust = float(generator.uniform(0, 12))

    def worth(inputs: Floats) -> Floats:
        return trust * inputs[:, _PREDICTED]

    return worth


def _search(courses: Sequence[Course], generator: np.random.Generator, policy: Policy) -> Search:
    course = courses[int(generator.integers(len(courses)))]
    return run_search(course, BUDGETS[int(generator.integers(len(BUDGETS)))], policy, generator)


def _group(courses: Sequence[Course], network: Perceptron, generator: np.random.Generator) -> list[Search]:
    course = courses[int(generator.integers(len(courses)))]
    budget = BUDGETS[int(generator.integers(len(BUDGETS)))]
    return [run_search(course, budget, policy_of(network), generator) for _ in range(GROUP)]


def _imitate(network: Perceptron, steps: list[Step], count: int, generator: np.random.Generator) -> None:
    """Minimise the cross-entropy to softmax(ORACLE_SHARPNESS * log merit); invalid configurations get nothing."""
    optimiser = torch.optim.AdamW(network.parameters(), lr=ORACLE_RATE, weight_decay=1e-3)
    useful = [step for step in steps if step.merits.max() > 0]
    for _ in range(count):
        rows = generator.integers(len(useful), size=ORACLE_BATCH)
        inputs, exists = _padded([useful[row] for row in rows])
        merits = np.zeros(exists.shape, dtype=np.float32)
        for place, row in enumerate(rows):
            known = useful[row].merits
            merits[place, : len(known)] = (known / known.max()) ** ORACLE_SHARPNESS
        target = torch.from_numpy(merits / merits.sum(axis=1, keepdims=True))
        logarithms = torch.log_softmax(_logits(network, inputs, exists), dim=1)
        loss = -(target * logarithms).sum(dim=1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def _reinforce(network: Perceptron, optimiser: torch.optim.Optimizer, groups: Sequence[Sequence[Search]]) -> None:
    steps: list[Step] = []
    advantages: list[float] = []
    for group in groups:
        returns = np.array([_returns([step.regret for step in search.steps]) for search in group])
        gains = returns - returns.mean(axis=0)
        for search, gain in zip(group, gains, strict=True):
            steps += search.steps
            advantages += gain.tolist()
    if not steps:
        return
    advantage = torch.tensor(advantages, dtype=torch.float32)
    advantage = advantage / (advantage.std() + 1e-6)
    inputs, exists = _padded(steps)
    with torch.no_grad():
        before, _ = _log_probability(network, inputs, exists, steps)
    for _ in range(EPOCHS):
        after, entropy = _log_probability(network, inputs, exists, steps)
        ratio = torch.exp(after - before)
        gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
        loss = -gain.mean() - ENTROPY * entropy.mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def _returns(regrets: Sequence[float]) -> Floats:
    """Return the discounted sum of rewards from each step on."""
    found = np.zeros(len(regrets), dtype=np.float32)
    total = 0.0
    for place in range(len(regrets) - 1, -1, -1):
        total = -regrets[place] + DISCOUNT * total
        found[place] = total
    return found


def _log_probability(
    network: Perceptron, inputs: torch.Tensor, exists: torch.Tensor, steps: Sequence[Step]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the log probability (steps,) of each step's picks and the entropy of its first pick.

    The picks are made one after the other.
    """
    logits = _logits(network, inputs, exists)
    first = torch.log_softmax(logits, dim=1)
    entropy = -(first.exp() * first.clamp_min(-50)).sum(dim=1)
    total = torch.zeros(len(steps))
    most = max(len(step.picks) for step in steps)
    rows = torch.arange(len(steps))
    for place in range(most):
        there = torch.tensor([place < len(step.picks) for step in steps])
        choice = torch.tensor([int(step.picks[place]) if place < len(step.picks) else 0 for step in steps])
        chosen = torch.log_softmax(logits, dim=1)[rows, choice]
        total = total + torch.where(there, chosen, 0.0)
        gone = torch.zeros_like(logits, dtype=torch.bool)
        gone[rows, choice] = there
        logits = logits.masked_fill(gone, _NEVER)
    return total, entropy


def _logits(network: Perceptron, inputs: torch.Tensor, exists: torch.Tensor) -> torch.Tensor:
    return network(inputs)[..., 0].masked_fill(~exists, _NEVER)


def _padded(steps: Sequence[Step]) -> tuple[torch.Tensor, torch.Tensor]:
    inputs = np.zeros((len(steps), CANDIDATES, steps[0].inputs.shape[1]), dtype=np.float32)
    exists = np.zeros((len(steps), CANDIDATES), dtype=np.bool_)
    for row, step in enumerate(steps):
        inputs[row, : len(step.inputs)] = step.inputs
        exists[row, : len(step.inputs)] = True
    return torch.from_numpy(inputs), torch.from_numpy(exists)


_NEVER = -1e9
_PREDICTED = CONFIGURATION_FEATURES
"""Column of the surrogate's prediction among the inputs."""
