"""Tuners that others wrote, as contenders: thin adapters between their ask/tell and ours."""

from __future__ import annotations

from importlib import import_module, metadata, util
from typing import Any

from hilt.tune import Tuner, TuningProblem, UnknownTunerError

_EXTRA = "peers"
_PEERS = {
    "optuna-tpe": ("optuna_tuner", ("optuna",), "optuna"),
    "optuna-gp": ("optuna_tuner", ("optuna", "torch"), "optuna"),
    "optuna-cmaes": ("optuna_tuner", ("optuna", "cmaes"), "optuna"),
    "smac": ("smac_tuner", ("smac",), "smac"),
    **{f"nevergrad-{name}": ("nevergrad_tuner", ("nevergrad",), "nevergrad") for name in ("ngopt", "discrete", "de")},
    **{
        f"kernel-tuner-{name}": ("kernel_tuner_tuner", ("kernel_tuner",), "kernel_tuner")
        for name in ("genetic", "annealing", "mls", "bayes", "ils", "pso", "diff-evo", "vndx", "greywolf")
    },
}
"""Name: (module here, packages imported, distribution)."""
RESTRICT_THEMSELVES = frozenset(name for name in _PEERS if name.startswith("kernel-tuner-"))
"""Peers whose space holds only configurations that compile (`restricted`); others are told of each refusal at once."""


def peer_names() -> list[str]:
    """Return the names of the peers that are installed with the packages that they import."""
    return [name for name, (_, needed, _) in _PEERS.items() if all(map(util.find_spec, needed))]


def extra_needed(name: str) -> str:
    """Return the extra that brings a peer; empty for a name that is none."""
    return _EXTRA if name in _PEERS else ""


def module_of(name: str) -> str:
    """Return the module of the peer's adapter."""
    return f"hilt_experiments.peers.{_PEERS[name][0]}"


def version_of(name: str) -> str:
    """Return the version of the peer's distribution."""
    return metadata.version(_PEERS[name][2])


def make_peer(name: str, problem: TuningProblem, seed: int, **options: Any) -> Tuner:
    """Return a new tuner of the peer. Raises UnknownTunerError if it is not installed."""
    if name not in peer_names():
        raise UnknownTunerError(f"no peer {name!r} is installed; pip install 'hilt[{_EXTRA}]' brings them")
    tuner: Tuner = import_module(module_of(name)).make(name, problem, seed, **options)
    return tuner
