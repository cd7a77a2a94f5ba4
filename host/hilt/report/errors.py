"""What keeps a report from being made. Each is one line: what is wrong; what to do."""

from __future__ import annotations


class MissingLibraryError(Exception):
    """A library of the extra `report` is not installed."""

    def __init__(self, what: str, library: str) -> None:
        super().__init__(f"{what} needs {library}: pip install 'hilt[report]'")
