"""Datasets in files that others read and write: Kernel Tuner's cache, and CSV, with a data card beside them."""

from __future__ import annotations

import re
from pathlib import Path

from hilt.atomic_write import atomic_write
from hilt.measure.dataset.csv_file import read_csv, write_csv
from hilt.measure.dataset.data_card import data_card
from hilt.measure.dataset.dataset import Dataset, DatasetError
from hilt.measure.dataset.dataset_store import DatasetStore, MissingDatasetError
from hilt.measure.dataset.kernel_tuner_file import read_kernel_tuner, write_kernel_tuner
from hilt.measure.dataset.recorded_space import LARGEST_FILE, is_imported
from hilt.run_choices import DatasetForm
from hilt.schedule import workload_of
from hilt.schedule.workload_syntax import format_workload

_NAME = re.compile(r"[A-Za-z0-9][\w.@+-]{0,99}", re.ASCII)


def import_recorded(path: Path, name: str, store: DatasetStore) -> Dataset:
    """Read a file of records and keep it as the dataset `name`; JSON is Kernel Tuner's, all else CSV.

    Raises DatasetError, which names the file and the place, for a file that is malformed or too large, and for a name
    that a dataset of hilt's own has.
    """
    if not _NAME.fullmatch(name):
        raise DatasetError(f"{name[:40]!r} is no dataset's name: letters, digits and . _ @ + - after a letter or digit")
    try:
        text = _text_of(path)
        read = read_kernel_tuner if text.lstrip()[:1] in ("{", "[") else read_csv
        dataset = read(text, name).dataset()
    except DatasetError as error:
        raise DatasetError(f"{path} is no dataset: {error}") from error
    _refuse_own(store, name)
    dataset.write(store.path_of_imported(name))
    return dataset


def export_recorded(dataset: Dataset, path: Path, form: DatasetForm) -> Path:
    """Write a dataset, and its data card beside it; return the card's path. Raises UnwritableFileError."""
    with atomic_write(path) as file:
        if form is DatasetForm.CSV:
            write_csv(dataset, file)
        else:
            device, kernel, size = _described(dataset)
            write_kernel_tuner(dataset, file, device, kernel, size)
    card = path.with_name(f"{path.name}.card.md")
    with atomic_write(card) as file:
        file.write(data_card(dataset, form))
    return card


def _described(dataset: Dataset) -> tuple[str, str, int]:
    """Return the device, the kernel and the problem size."""
    if is_imported(dataset):
        imported = dataset.identity["imported"]
        return imported["device"], imported["kernel"], 0
    identity, subject = dataset.identity, dataset.metadata["subject"]
    workload = workload_of(subject["workload"])
    device = f"VTA {identity['parameters']}, ISA {identity['isa']}, {identity['clock_hz'] / 1e6:g} MHz (hilt)"
    return device, format_workload(workload), workload.macs


def _text_of(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise DatasetError(f"it has {size:,} bytes; at most {LARGEST_FILE:,} are read")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DatasetError(str(error.strerror)) from error
    except UnicodeDecodeError as error:
        raise DatasetError("it is no text in UTF-8") from error


def _refuse_own(store: DatasetStore, name: str) -> None:
    """Raise DatasetError where a dataset that hilt built has the name."""
    try:
        known = store.find(name)
    except MissingDatasetError:
        return
    if known.name == name and not is_imported(known):
        raise DatasetError(f"{name} is the name of a dataset that hilt built; give --name another")
