from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from hilt.tune.autotvm.tree_gru import TreeGRU, TreeGRUOptions, tree_gru_tuner

from .. import conformance
from ..grids import Grid

torch = pytest.importorskip("torch", reason="the tuner treegru is an extra: pip install 'hilt[treegru]'")
network = pytest.importorskip("hilt.tune.autotvm.tree_gru_network")

SMALL = {
    "plan_size": 32,
    "hidden": 12,
    "slots": 2,
    "batches": 200,
    "patience": 200,
    "batch_size": 64,
    "learning_rate": 1e-2,
}


def loops(count: int, seed: int) -> np.ndarray:
    """Four loops with three features each, as of a quarter to two doublings."""
    return np.random.default_rng(seed).uniform(0, 2, (count, 4, 3)).astype(np.float32)


def worth(features: np.ndarray) -> np.ndarray:
    """The better, the larger the innermost loop's first feature and the smaller the second of those around it; a third
    fails."""
    found = np.exp(features[:, -1, 0] - 0.5 * features[:, :-1, 1].sum(axis=1))
    found[features[:, 0, 2] > 4 / 3] = 0
    return np.asarray(found / found.max(), dtype=np.float32)


@pytest.mark.parametrize("loss", ["rank", "regression"])
def test_it_learns_an_order_and_the_same_weights_again(loss: str) -> None:
    train, test = loops(200, 0), loops(200, 1)
    predictions = []
    for _ in range(2):
        model = TreeGRU(TreeGRUOptions(loss=loss, **SMALL), seed=3)
        model.fit(train, worth(train))
        predictions.append(model.predict(test))
    assert (predictions[0] == predictions[1]).all()
    assert spearmanr(predictions[0], worth(test)).statistic > 0.6


def test_another_seed_is_another_network_and_torchs_own_seed_is_left_alone() -> None:
    torch.manual_seed(7)
    undisturbed = torch.rand(4)
    torch.manual_seed(7)
    rows = torch.from_numpy(loops(5, 0))
    first, second = (network.TreeGRUNetwork(3, 8, 2, seed)(rows) for seed in (1, 2))
    assert not torch.allclose(first, second)
    assert torch.equal(torch.rand(4), undisturbed)


def test_rank_loss_is_equation_2_over_pairs_that_differ() -> None:
    scores, labels = [0.3, -1.0, 2.0, 0.5], [0.0, 1.0, 1.0, 0.25]
    terms = [
        np.log1p(np.exp(-np.sign(labels[i] - labels[j]) * (scores[i] - scores[j])))
        for i in range(4)
        for j in range(4)
        if labels[i] != labels[j]
    ]
    assert float(network.rank_loss(torch.tensor(scores), torch.tensor(labels))) == pytest.approx(np.mean(terms))
    assert float(network.rank_loss(torch.tensor(scores), torch.zeros(4))) == 0.0


def test_the_state_goes_from_the_innermost_loop_out() -> None:
    """The state goes from the innermost loop out.

    The features of the outermost loop cannot reach the states of the loops inside it, and reach its own.
    """
    seen: list[torch.Tensor] = []
    net = network.TreeGRUNetwork(3, 8, 2, 0)
    net._to_slots.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].detach()))
    rows = loops(1, 0)
    changed = rows.copy()
    changed[:, 0] += 1
    for each in (rows, changed):
        net(torch.from_numpy(each))
    assert torch.equal(seen[0][:, :-1], seen[1][:, :-1])
    assert not torch.equal(seen[0][:, -1], seen[1][:, -1])


def test_its_tuner_asks_each_once_and_the_same_again() -> None:
    grid = Grid((8, 6, 4), valid_share=0.5, seed=3)

    def search() -> list[int]:
        options = TreeGRUOptions(**{**SMALL, "batches": 20})
        tuner = tree_gru_tuner(grid, 4, options, lambda indices: grid.features(indices)[:, None, :] / 4)
        return [feedback.index for feedback in conformance.run(tuner, 80, 16, grid.measure)]

    asked = search()
    assert len(set(asked)) == 80
    assert search() == asked


def test_predicting_before_fitting_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="before it was fitted"):
        TreeGRU(TreeGRUOptions(), 0).predict(loops(1, 0))
