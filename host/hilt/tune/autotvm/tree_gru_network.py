"""The network of AutoTVM's context encoded TreeGRU (section 4, Figure 3d). It needs torch to be imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import Tensor, nn


class TreeGRUNetwork:
    """Context vectors of loops in, a score out.

    Each loop's context vector is encoded; a GRU summarises the loop AST from the innermost loop out; at each loop its
    state h is scattered over memory slots, out_i = softmax(W^T h)_i h; the slots are summed over the loops and decoded.
    """

    def __init__(self, features: int, hidden: int, slots: int, seed: int) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._encode = nn.Linear(features, hidden)
            self._gru = nn.GRU(hidden, hidden, batch_first=True)
            self._to_slots = nn.Linear(hidden, slots, bias=False)
            self._decode = nn.Linear(slots * hidden, hidden)
            self._score = nn.Linear(hidden, 1)
            for weight in self.parameters():
                if weight.dim() > 1:
                    nn.init.xavier_uniform_(weight)

    def parameters(self) -> list[Tensor]:
        modules = (self._encode, self._gru, self._to_slots, self._decode, self._score)
        return list(chain.from_iterable(module.parameters() for module in modules))

    def __call__(self, loops: Tensor) -> Tensor:
        """Return the scores (n,) of loops (n, loops, features), outermost first."""
        states, _ = self._gru(torch.tanh(self._encode(loops.flip(1))))
        shares = torch.softmax(self._to_slots(states), dim=2)
        slots = torch.einsum("nls,nlh->nsh", shares, states)
        decoded: Tensor = self._score(torch.tanh(self._decode(slots.flatten(1))))
        return decoded.squeeze(1)


def rank_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Return equation 2 as its mean over the pairs of a batch with c_i != c_j.

    Equation 2 is log(1 + exp(-sign(c_i - c_j)(f_i - f_j))).
    """
    order = torch.sign(labels[:, None] - labels[None, :])
    losses = nn.functional.softplus(-order * (scores[:, None] - scores[None, :]))
    pairs = order != 0
    return (losses * pairs).sum() / pairs.sum().clamp(min=1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the context on one thread.

    Sums in another order would make another network, and a resumed run another search.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
