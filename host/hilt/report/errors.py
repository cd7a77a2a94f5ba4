"""Errors of a report. Each message is one line: object, fact, next step."""

from __future__ import annotations


class MissingLibraryError(Exception):
    """A library of the extra `report` is not installed."""

    def __init__(self, output: str, library: str) -> None:
        super().__init__(f"{output} needs {library}: pip install 'hilt[report]'")
