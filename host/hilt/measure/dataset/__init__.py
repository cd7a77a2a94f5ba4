"""Datasets: the recorded outcome and cycles of every configuration of a space on one board.

The compiler and the twin decide as much as they can. A seeded sample is run on the RTL and the golden model, and the
file records how often they disagree. A dataset is a measurer, like a board, that has already answered everything.
"""

from hilt.measure.dataset.dataset import Dataset as Dataset
from hilt.measure.dataset.dataset import DatasetError as DatasetError
from hilt.measure.dataset.dataset_key import DatasetKey as DatasetKey
from hilt.measure.dataset.dataset_store import DatasetStore as DatasetStore
