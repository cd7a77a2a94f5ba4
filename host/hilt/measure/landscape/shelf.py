"""Where landscapes lie, and how they are found."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from hilt import paths
from hilt.measure.landscape.recording import Landscape, LandscapeError, differing
from hilt.measure.landscape.subject import Subject

_KEY_DIGITS = 12
_SUFFIX = ".npz"


class MissingLandscapeError(LandscapeError):
    """A landscape that was not built, or was built of something else than is here now."""


class Shelf:
    """A folder of landscapes, HILT_HOME/landscapes: `<subject's name>.<start of its key>.npz`."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = paths.home() / "landscapes" if folder is None else folder
        self.folder.mkdir(parents=True, exist_ok=True)

    def path_of(self, subject: Subject) -> Path:
        return self.folder / f"{_file_name(subject.name)}.{subject.key[:_KEY_DIGITS]}{_SUFFIX}"

    def chunks_of(self, subjects: Sequence[Subject]) -> Path:
        """The folder of what is done of landscapes that are built together."""
        key = hashlib.sha256(" ".join(subject.key for subject in subjects).encode()).hexdigest()
        return self.folder / f".building-{key[:_KEY_DIGITS]}"

    def has(self, subject: Subject) -> bool:
        return self.path_of(subject).is_file()

    def get(self, subject: Subject) -> Landscape:
        """Raises MissingLandscapeError, which names what differs where only an outdated one is there."""
        path = self.path_of(subject)
        if path.is_file():
            landscape = Landscape.read(path)
            if landscape.identity != subject.identity:
                raise LandscapeError(f"{path} is not what its name says: {_differences(landscape, subject)}")
            return landscape
        how = f"`{build_command(subject)}` builds it"
        outdated = sorted(self.folder.glob(f"{_escaped(_file_name(subject.name))}.*{_SUFFIX}"))
        if outdated:
            differences = _differences(Landscape.read(outdated[-1]), subject)
            raise MissingLandscapeError(f"landscape {subject.name} is of something else: {differences}; {how}")
        raise MissingLandscapeError(f"there is no landscape {subject.name}; {how}")

    def paths(self) -> list[Path]:
        return sorted(self.folder.glob(f"[!.]*{_SUFFIX}"))

    def find(self, text: str) -> Landscape:
        """The one whose name or key begins with this. Raises LandscapeError: none, or several."""
        found = [path for path in self.paths() if path.name.startswith(_file_name(text)) or _key(path).startswith(text)]
        exact = [path for path in found if path.name.rsplit(".", 2)[0] == _file_name(text)]
        found = exact or found
        if len(found) > 1:
            some = ", ".join(path.name.removesuffix(_SUFFIX) for path in found[:4])
            raise LandscapeError(f"{text!r} begins the names of {len(found)} landscapes ({some}); type more of one")
        if not found:
            raise MissingLandscapeError(f"no landscape is called {text!r}; `hilt landscape list` shows what there is")
        return Landscape.read(found[0])


def build_command(subject: Subject) -> str:
    """How to build it."""
    space = "--space ml2" if subject.kind == "ml2" else f"--orders {subject.orders}"
    board = f"--personality {subject.personality} --checks {subject.checks} {space}"
    return f"hilt landscape build {subject.workload.name} {board}"


def _key(path: Path) -> str:
    return path.name.split(".")[-2]


def _file_name(text: str) -> str:
    return text.replace("/", "_")


def _escaped(text: str) -> str:
    return "".join(f"[{letter}]" if letter in "[]*?" else letter for letter in text)


def _differences(landscape: Landscape, subject: Subject) -> str:
    """What its metadata and the subject have different, both values named."""
    return "; ".join(differing(landscape.identity, subject.identity)) or "nothing that its metadata name"
