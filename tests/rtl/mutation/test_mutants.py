"""The list of mutants fits the RTL, and its two copies hold them. The mutants themselves: `make rtl-mutation`."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt import paths
from tests.rtl.mutation.mutant import Mutant, mutants, mutated_rtl, with_all

LISTED = mutants()
RTL = paths.hls_directory() / "rtl"


def test_every_mutant_changes_one_line_of_the_rtl(tmp_path: Path) -> None:
    assert len(LISTED) >= 100
    assert len({mutant.name for mutant in LISTED}) == len(LISTED)
    for mutant in LISTED:
        before = (RTL / mutant.file).read_text().splitlines()
        folder = tmp_path / str(mutant.number)
        after = (mutated_rtl(mutant, folder) / mutant.file).read_text().splitlines()
        assert sum(one != other for one, other in zip(before, after, strict=True)) == 1, mutant.name


def test_the_copy_with_all_has_each_once(tmp_path: Path) -> None:
    copy = with_all(LISTED, tmp_path)
    text = "".join(path.read_text() for path in (copy / "rtl").glob("*.sv*"))
    for mutant in LISTED:
        assert text.count(f"(vta_pkg::mutant == {mutant.number} ? ({mutant.put}) : (") == 1, mutant.name


def test_a_line_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"nothing: vta_fifo.sv has 0 lines like it"):
        Mutant(1, "nothing", "vta_fifo.sv", "no such «line»", "0").span("module vta_fifo;")
