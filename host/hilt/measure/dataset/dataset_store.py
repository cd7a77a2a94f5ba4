"""The dataset store: the folder of datasets in HILT_HOME, and the search in it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from hilt import paths
from hilt.did_you_mean import did_you_mean
from hilt.measure.dataset.dataset import Dataset, DatasetError, differing
from hilt.measure.dataset.dataset_key import DatasetKey

_KEY_DIGITS = 12
_SUFFIX = ".npz"


class MissingDatasetError(DatasetError):
    """A dataset that was not built, or was built of something else than is here now; `subject` if its key is known."""

    def __init__(self, message: str, subject: DatasetKey | None = None) -> None:
        super().__init__(message)
        self.subject = subject


class DatasetStore:
    """A folder of datasets, HILT_HOME/datasets: `<subject's name>.<start of its key>.npz`."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = _default_folder() if folder is None else folder
        self.folder.mkdir(parents=True, exist_ok=True)

    def path_of(self, subject: DatasetKey) -> Path:
        return self.folder / f"{_file_name(subject.name)}.{subject.key[:_KEY_DIGITS]}{_SUFFIX}"

    def path_of_imported(self, name: str) -> Path:
        """Return the file of an imported landscape: its key is its name's, so a second import takes its place."""
        return self.folder / f"{_file_name(name)}.{hashlib.sha256(name.encode()).hexdigest()[:_KEY_DIGITS]}{_SUFFIX}"

    def chunks_of(self, subjects: Sequence[DatasetKey]) -> Path:
        """Return the folder of the finished chunks of datasets that are built together."""
        key = hashlib.sha256(" ".join(subject.key for subject in subjects).encode()).hexdigest()
        return self.folder / f".building-{key[:_KEY_DIGITS]}"

    def has(self, subject: DatasetKey) -> bool:
        return self.path_of(subject).is_file()

    def get(self, subject: DatasetKey) -> Dataset:
        """Return the subject's dataset.

        Raises:
            MissingDatasetError: It is not there; if only an outdated one is there, the message names the differences.
        """
        path = self.path_of(subject)
        if path.is_file():
            dataset = Dataset.read(path)
            if dataset.identity != subject.identity:
                raise DatasetError(f"{path} differs from its name: {_differences(dataset, subject)}")
            return dataset
        how = f"`{build_command(subject)}` builds it"
        outdated = sorted(self.folder.glob(f"{_escaped(_file_name(subject.name))}.*{_SUFFIX}"))
        if outdated:
            differences = _differences(Dataset.read(outdated[-1]), subject)
            raise MissingDatasetError(f"dataset {subject.name} is of something else: {differences}; {how}", subject)
        raise MissingDatasetError(f"there is no dataset {subject.name}; {how}", subject)

    def paths(self) -> list[Path]:
        return sorted(self.folder.glob(f"[!.]*{_SUFFIX}"))

    def find(self, text: str) -> Dataset:
        """Return the one dataset whose name or key begins with this. Raises DatasetError: none, or several."""
        found = [path for path in self.paths() if path.name.startswith(_file_name(text)) or _key(path).startswith(text)]
        exact = [path for path in found if path.name.rsplit(".", 2)[0] == _file_name(text)]
        found = exact or found
        if len(found) > 1:
            some = ", ".join(path.name.removesuffix(_SUFFIX) for path in found[:4])
            raise DatasetError(f"{text!r} begins the names of {len(found)} datasets ({some}); type more of one")
        if not found:
            names = [path.name.rsplit(".", 2)[0] for path in self.paths()]
            hint = did_you_mean(text, names, "`hilt dataset list` shows them")
            raise MissingDatasetError(f"no dataset is called {text!r}; {hint}")
        return Dataset.read(found[0])


def _default_folder() -> Path:
    """Return HILT_HOME/datasets. Datasets of hilt 0.1, which called the folder `landscapes`, are moved there."""
    folder, older = paths.home() / "datasets", paths.home() / "landscapes"
    if older.is_dir() and not folder.exists():
        older.rename(folder)
    return folder


def build_command(subject: DatasetKey) -> str:
    """Return the command that builds the dataset."""
    space = "--space ml2" if subject.kind == "ml2" else f"--orders {subject.orders}"
    board = f"--board-model {subject.board_model} --checks {subject.checks} {space}"
    return f"hilt dataset build {subject.workload.name} {board}"


def _key(path: Path) -> str:
    return path.name.split(".")[-2]


def _file_name(text: str) -> str:
    return text.replace("/", "_")


def _escaped(text: str) -> str:
    return "".join(f"[{letter}]" if letter in "[]*?" else letter for letter in text)


def _differences(dataset: Dataset, subject: DatasetKey) -> str:
    """Return the differences between the metadata and the subject, each with both values."""
    return "; ".join(differing(dataset.identity, subject.identity)) or "nothing that its metadata name"
