"""pynq's own sources, as released: fetched once by pip into the cache, and read, never imported."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from hilt import paths

VERSIONS = ("2.7.0", "3.0.1", "3.1.2", "4.0.0")
"""The pynq versions of the images that hilt supports; for 3.1 the last release that pip takes."""
FETCH = "HILT_FETCH_PYNQ"
"""The variable that allows fetching the sources that are not in the cache: 140 MB in all."""
_SECONDS = 600


def source_directory(version: str) -> Path | None:
    """Return the folder `pynq` of a release.

    The result is None if it is not in the cache and must not or cannot be fetched.
    """
    directory = paths.cache() / "pynq-sources" / version
    archive = directory / f"pynq-{version}.tar.gz"
    if not archive.exists() and not (os.environ.get(FETCH) and _fetch(version, directory)):
        return None
    if not (directory / "pynq").is_dir():
        _unpack(archive, directory)
    return directory / "pynq"


def _fetch(version: str, directory: Path) -> bool:
    directory.mkdir(parents=True, exist_ok=True)
    words = ["download", "--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--dest", directory]
    command = [sys.executable, "-m", "pip", *map(str, words), f"pynq=={version}"]
    try:
        return subprocess.run(command, capture_output=True, timeout=_SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _unpack(archive: Path, directory: Path) -> None:
    """Unpack the Python files of the package only."""
    prefix = archive.name.removesuffix(".tar.gz") + "/"
    with tarfile.open(archive) as tar:
        for member in tar:
            name = member.name.removeprefix(prefix)
            if member.isfile() and name.startswith("pynq/") and name.endswith(".py"):
                member.name = name
                tar.extract(member, directory, filter="data")


class Release:
    """The parsed sources of one release."""

    def __init__(self, version: str, directory: Path) -> None:
        self.version = version
        self._directory = directory
        self._modules: dict[str, ast.Module] = {}

    def text(self, module: str) -> str:
        """Return the source of a file, named by its path below `pynq`."""
        return (self._directory / module).read_text(encoding="utf-8")

    def has(self, module: str) -> bool:
        return (self._directory / module).exists()

    def module(self, name: str) -> ast.Module:
        if name not in self._modules:
            self._modules[name] = ast.parse(self.text(name))
        return self._modules[name]

    def names(self, module: str) -> set[str]:
        """Return the names that a module defines or imports, at its top or below an `if`."""
        defined: set[str] = set()
        for node in ast.walk(self.module(module)):
            if isinstance(node, ast.ImportFrom | ast.Import):
                defined |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.ClassDef | ast.FunctionDef):
                defined.add(node.name)
        return defined

    def function(self, module: str, path: str) -> ast.FunctionDef:
        """Return a function by its path, as in `Bitstream.download`: the last one of that name in its class."""
        body: list[ast.stmt] = self.module(module).body
        *classes, name = path.split(".")
        for kind in classes:
            body = next(node for node in body if isinstance(node, ast.ClassDef) and node.name == kind).body
        return [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name][-1]

    def body(self, module: str, path: str) -> str:
        """Return the source of a function in one form, whatever its quotes and lines."""
        return ast.unparse(self.function(module, path))

    def parameters(self, module: str, path: str) -> list[str]:
        """Return the names of a function's parameters in order; `**name` if it takes any."""
        arguments = self.function(module, path).args
        names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        return names + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])
