"""The contenders of an experiment: a tuner of hilt's or a peer that others wrote, with its options."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hilt import tune
from hilt.tune import Tuner, TuningProblem
from hilt.tune.options import TunerOptionError
from hilt.tune.registry import tuner_module
from hilt_experiments import peers
from hilt_experiments.restricted import RestrictedTuner

_RESTRICTED = "restricted"
"""The option of every contender: a configuration that does not compile is no trial."""


@dataclass(frozen=True)
class Contender:
    """A tuner under the name that tables and plots give it."""

    label: str
    tuner: str
    options: tuple[tuple[str, Any], ...] = field(default=())

    @classmethod
    def of(cls, tuner: str, label: str = "", **options: Any) -> Contender:
        """Return a contender with these options in place of the tuner's defaults."""
        return cls(label or tuner, tuner, tuple(sorted(options.items())))

    def exists(self) -> bool:
        """Return True if hilt or an installed peer has the tuner."""
        return tune.tuner_exists(self.tuner) or self.tuner in peers.peer_names()

    def all_options(self) -> dict[str, object]:
        """Return all options of the tuner, defaults included."""
        own, restricted = self._options()
        chosen = {_RESTRICTED: True} if restricted else {}
        return (tune.resolve_options(self.tuner, **own) if tune.tuner_exists(self.tuner) else own) | chosen

    def restricted(self) -> Contender:
        """Return the same contender, whose proposals that do not compile are no trials."""
        own, _ = self._options()
        return Contender.of(self.tuner, f"{self.label}, restricted", **own, restricted=True)

    def _options(self) -> tuple[dict[str, Any], bool]:
        """Return the tuner's own options, and whether it is restricted to configurations that compile."""
        own = dict(self.options)
        return own, bool(own.pop(_RESTRICTED, False))

    def make(self, problem: TuningProblem, seed: int) -> Tuner:
        """Return a new tuner for the problem. Raises TunerOptionError, UnknownTunerError."""
        own, restricted = self._options()
        if restricted and self.tuner in peers.RESTRICT_THEMSELVES:
            return peers.make_peer(self.tuner, problem, seed, restricted=True, **own)
        if tune.tuner_exists(self.tuner):
            tuner = tune.make_tuner(self.tuner, problem, seed, **own)
        else:
            tuner = peers.make_peer(self.tuner, problem, seed, **own)
        return RestrictedTuner(tuner, problem.compiles) if restricted else tuner

    def code(self) -> str:
        """Return the SHA-256 of the sources that decide its proposals; for a peer, also its package's version."""
        wrapper = code_of("hilt_experiments.restricted") if self._options()[1] else ""
        if tune.tuner_exists(self.tuner):
            return code_of(tuner_module(self.tuner)) + wrapper
        return code_of(peers.module_of(self.tuner)) + peers.version_of(self.tuner) + wrapper


def known(contenders: Iterable[Contender]) -> tuple[list[Contender], list[str]]:
    """Return the contenders that can run here, and a line for each that cannot."""
    there, lines = [], []
    for each in contenders:
        if not each.exists():
            lines.append(f"{each.label} is left out: no tuner {each.tuner!r} is here ({_hint(each.tuner)})")
            continue
        try:
            each.all_options()
        except TunerOptionError as error:  # it needs a library that is not here
            lines.append(f"{each.label} is left out: {error}")
        else:
            there.append(each)
    return there, lines


def _hint(tuner: str) -> str:
    needed = peers.extra_needed(tuner)
    return f"pip install 'hilt[{needed}]'" if needed else f"there are {', '.join(tune.tuner_names())}"


@cache
def code_of(module: str) -> str:
    """Return the SHA-256 of the module, its imports and their weights.

    Its imports are those of hilt.tune, hilt.schedule.features and hilt_experiments.peers, at any depth.
    """
    seen: dict[str, bytes] = {}
    folders: set[Path] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        path = _source(name)
        if path is None:
            continue
        seen[name] = path.read_bytes()
        folders.add(path.parent)
        waiting += [each for each in _imports(seen[name], name, path) if each.startswith(_WATCHED)]
    digest = hashlib.sha256()
    for name in sorted(seen):
        digest.update(json.dumps(name).encode() + hashlib.sha256(seen[name]).digest())
    for weights in sorted({each for folder in folders for each in folder.glob("*.npz")}):
        digest.update(weights.name.encode() + hashlib.sha256(weights.read_bytes()).digest())
    return digest.hexdigest()


_WATCHED = ("hilt.tune.", "hilt.schedule.features", "hilt_experiments.peers.")


def _source(module: str) -> Path | None:
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, AttributeError):
        return None
    return Path(found.origin) if found is not None and found.origin and found.origin.endswith(".py") else None


def _imports(source: bytes, module: str, path: Path) -> list[str]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            names += [base, *(f"{base}.{each.name}" for each in node.names)]
    return names
