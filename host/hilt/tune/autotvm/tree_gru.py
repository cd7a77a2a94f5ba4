"""The tuner `treegru`: AutoTVM's loop around its neural cost model, which needs PyTorch (the extra `treegru`)."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from hilt.tune.autotvm.planned import PlannedTuner, PlanOptions, Streams, require_positive
from hilt.tune.boosted_trees import Loss
from hilt.tune.cost_model import Features, FeaturesOf, Indices, Scores, remembered
from hilt.tune.metrics import average_recall
from hilt.tune.options import require
from hilt.tune.problem import TuningProblem
from hilt.tune.search_space import SearchSpace

if TYPE_CHECKING:
    from hilt.tune.autotvm.tree_gru_network import TreeGRUNetwork

_LOG_SCALE = 8.0
"""Context vectors are scaled to log2(1 + x) over this number: between 0 and about 3 for any workload."""

_PREDICTED_AT_ONCE = 1024


@dataclass(frozen=True)
class TreeGRUOptions(PlanOptions):
    """The options of the tuner: the paper's numbers, else those of its authors' experiments.

    The network has a quarter of the authors' width, because theirs ran on a GPU.
    """

    loss: str = "rank"
    """rank or regression."""
    hidden: int = 32
    """Width of embedding, GRU state and decoder."""
    slots: int = 4
    """Memory slots of the network."""
    batches: int = 500
    """Training batches for each fit, at most."""
    batch_size: int = 128
    """Samples of a training batch."""
    patience: int = 100
    """Batches without gain of average recall after which training stops; the recall is computed every ten batches."""
    learning_rate: float = 7e-4
    """Step size of Adam."""
    weight_decay: float = 1e-4
    """L2 penalty on the weights."""
    gradient_clip: float = 5.0
    """Largest magnitude of an element of the gradient."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(find_spec("torch") is not None, "tuner treegru needs PyTorch: pip install 'hilt[treegru]'")
        require(self.loss in set(Loss), f"loss is one of {', '.join(Loss)}; not {self.loss!r}")
        require_positive(self, "hidden", "slots", "batches", "patience")
        require(self.batch_size >= 2, f"batch_size is at least 2, not {self.batch_size}")
        require(self.learning_rate > 0, f"learning_rate is above 0, not {self.learning_rate}")
        require(self.weight_decay >= 0, f"weight_decay is not negative, as {self.weight_decay} is")
        require(self.gradient_clip > 0, f"gradient_clip is above 0, not {self.gradient_clip}")


def treegru(problem: TuningProblem, seed: int, options: TreeGRUOptions) -> PlannedTuner:
    """Return the tuner of that name for a problem."""

    def loops_of(indices: Indices) -> Features:
        return np.asarray(np.log2(1 + problem.loop_context(indices).values) / _LOG_SCALE, dtype=np.float32)

    return tree_gru_tuner(problem.space, seed, options, remembered(loops_of, len(problem.space)))


def tree_gru_tuner(space: SearchSpace, seed: int, options: TreeGRUOptions, loops_of: FeaturesOf) -> PlannedTuner:
    """Return the same tuner over any space and features (n, loops, features)."""
    streams = Streams.of(seed)
    model = TreeGRU(options, streams.model_seeds(1)[0])
    # A rank has no zero: no candidate is dropped for its sign.
    return PlannedTuner(space, streams, options, model, loops_of, least_score=-np.inf)


class TreeGRU:
    """A CostModel over features (n, loops, features), trained anew by each fit.

    It runs on one thread of the processor: the same samples and seed give the same weights.
    """

    def __init__(self, options: TreeGRUOptions, seed: int) -> None:
        self._options = options
        self._seed = seed
        self._network: TreeGRUNetwork | None = None

    def fit(self, features: Features, labels: Scores) -> None:
        import torch

        from hilt.tune.autotvm.tree_gru_network import TreeGRUNetwork, one_thread, rank_loss

        options = self._options
        generator = np.random.default_rng(self._seed)
        network = TreeGRUNetwork(features.shape[2], options.hidden, options.slots, self._seed)
        loss_of = rank_loss if options.loss == Loss.RANK else torch.nn.functional.mse_loss
        loops, targets = torch.from_numpy(features), torch.from_numpy(labels)
        optimizer = torch.optim.Adam(network.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay)
        self._network = network
        best_recall, best_batch = -1.0, 0
        with one_thread():
            for batch in range(1, options.batches + 1):
                rows = torch.from_numpy(generator.permutation(len(labels))[: options.batch_size])
                optimizer.zero_grad()
                loss_of(network(loops[rows]), targets[rows]).backward()
                torch.nn.utils.clip_grad_value_(network.parameters(), options.gradient_clip)
                optimizer.step()
                if batch % 10:
                    continue
                recall = average_recall(self.predict(features), labels, options.plan_size)
                if recall > best_recall:
                    best_recall, best_batch = recall, batch
                elif batch - best_batch >= options.patience:
                    break

    def predict(self, features: Features) -> Scores:
        import torch

        from hilt.tune.autotvm.tree_gru_network import one_thread

        if self._network is None:
            raise RuntimeError("the cost model was asked before it was fitted")
        with one_thread(), torch.no_grad():
            parts = [
                self._network(torch.from_numpy(features[first : first + _PREDICTED_AT_ONCE]))
                for first in range(0, max(len(features), 1), _PREDICTED_AT_ONCE)
            ]
            return np.asarray(torch.cat(parts).numpy(), dtype=np.float32)
