"""Tuners from outside hilt: those of installed packages, and those of a file.

A package offers a tuner by an entry point of the group `hilt.tuners`. A file offers it by `--tuner FILE.py:CLASS`. Both
name a class that is called with a TuningProblem, a seed and a frozen dataclass of options, and that has `ask` and
`tell` (docs/how-to/new-tuner.md).
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from hilt.tune.feedback import Tuner
from hilt.tune.problem import TuningProblem

GROUP = "hilt.tuners"
SOURCE_OPTION = "source_sha256"
"""The option under which a run records the tuner's source, so that it is not resumed with another one."""


class PluginError(ValueError):
    """A tuner from outside that cannot be loaded, or is no tuner."""


@dataclass(frozen=True)
class NoOptions:
    """The options of a tuner that has none."""


@dataclass(frozen=True)
class Plugin:
    """A tuner from outside."""

    name: str
    summary: str
    options: type[Any]
    build: Callable[[TuningProblem, int, Any], Tuner]
    source: Path

    @property
    def source_sha256(self) -> str:
        """Return the SHA-256 of the file that defines the class, in hexadecimal."""
        return hashlib.sha256(self.source.read_bytes()).hexdigest()


def is_file_name(name: str) -> bool:
    """Return whether the name is FILE.py:CLASS."""
    return name.rpartition(":")[0].endswith(".py")


def canonical_name(name: str) -> str:
    """Return FILE.py:CLASS with the file's absolute path, so that a run finds it from any folder; else the name."""
    if not is_file_name(name):
        return name
    file, _, attribute = name.rpartition(":")
    return f"{Path(file).resolve()}:{attribute}"


def installed_names() -> list[str]:
    """Return the names of the tuners of installed packages, sorted; nothing is imported."""
    return sorted({point.name for point in metadata.entry_points(group=GROUP)})


def find_plugin(name: str) -> Plugin | None:
    """Return the tuner of a file or of a package, or None if no package has the name. Raises PluginError."""
    if is_file_name(name):
        return _from_file(canonical_name(name))
    points = [point for point in metadata.entry_points(group=GROUP) if point.name == name]
    if not points:
        return None
    try:
        tuner = points[0].load()
    except Exception as error:
        raise PluginError(f"tuner {name}: {points[0].value} cannot be loaded: {_text(error)}") from error
    return _plugin(name, tuner)


def load_module(purpose: str, path: Path, form: str) -> ModuleType:
    """Import a user's file.

    Args:
        purpose: The object that names it, for messages.
        path: The file.
        form: The form of such a name.

    Raises:
        PluginError: The file is not there, or cannot be imported.
    """
    if not path.is_file():
        raise PluginError(f"{purpose}: there is no file {path}; give it as {form}")
    module_name = f"hilt_file_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look up their module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        raise PluginError(f"{purpose}: {path.name} cannot be imported: {_text(error)}") from error
    return module


@cache
def _from_file(name: str) -> Plugin:
    file, _, attribute = name.rpartition(":")
    module = load_module(f"tuner {name}", Path(file), "FILE.py:CLASS")
    tuner = getattr(module, attribute, None)
    path = Path(file)
    if tuner is None:
        classes = [key for key, value in vars(module).items() if isinstance(value, type) and hasattr(value, "ask")]
        raise PluginError(
            f"tuner {name}: {path.name} has no {attribute!r}; classes with `ask` in it: {', '.join(classes) or 'none'}"
        )
    return _plugin(name, tuner)


def _plugin(name: str, tuner: Any) -> Plugin:
    missing = [method for method in ("ask", "tell") if not callable(getattr(tuner, method, None))]
    if not isinstance(tuner, type) or missing:
        wanted = f"has no {' and no '.join(missing)}" if missing else "is no class"
        raise PluginError(f"tuner {name}: {getattr(tuner, '__name__', tuner)!s} {wanted}; see docs/how-to/new-tuner.md")
    summary = (inspect.getdoc(tuner) or "from outside").split("\n")[0]
    options = _options_of(tuner)

    def build(problem: TuningProblem, seed: int, values: Any) -> Tuner:
        made: Tuner = tuner(problem, seed) if options is NoOptions else tuner(problem, seed, values)
        return made

    return Plugin(name, summary, options, build, Path(inspect.getfile(tuner)))


def _options_of(tuner: type[Any]) -> type[Any]:
    """Return the dataclass that the constructor's parameter `options` is annotated with."""
    try:
        hints = get_type_hints(tuner.__init__)
    except Exception as error:
        raise PluginError(f"tuner {tuner.__name__}: its annotations cannot be read: {_text(error)}") from error
    options = hints.get("options", NoOptions)
    if not (isinstance(options, type) and dataclasses.is_dataclass(options)):
        raise PluginError(f"tuner {tuner.__name__}: `options` is annotated {options!s}; make it a frozen dataclass")
    return options


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
