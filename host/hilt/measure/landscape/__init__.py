"""Landscapes: the recorded outcome and cycles of every configuration of a space on one board.

The compiler and the twin decide what they can; a seeded sample is run on the RTL and the golden model, and the file
says how often they disagree. A landscape is a measurer, like a board, that has already been asked everything.
"""

from hilt.measure.landscape.recording import Landscape as Landscape
from hilt.measure.landscape.recording import LandscapeError as LandscapeError
from hilt.measure.landscape.shelf import Shelf as Shelf
from hilt.measure.landscape.subject import Subject as Subject
