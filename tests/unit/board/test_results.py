"""Delivery of the journal's content to the host, whatever its size."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hilt_board.daemon import Daemon
from hilt_board.home import open_home
from hilt_board.protocol import MAX_RESULTS, Measured, Results, ResultsReport, encode_frame, from_frame, to_frame


@pytest.mark.slow
@pytest.mark.parametrize("figures", [1, 1000])
def test_every_report_of_results_fits_a_frame(figures: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every report of results fits a frame.

    A hundred trials with a thousand figures, as `--repeat 1000` gives, do not fit one.
    """
    monkeypatch.setenv("HILT_AGENT_HOME", str(tmp_path / "agent"))
    monkeypatch.setattr("os.fsync", lambda _: None)

    async def fetched() -> list[Measured]:
        daemon = Daemon(open_home(), "", 10.0)
        values = tuple(1e6 / 3 + each for each in range(figures))
        for number in range(MAX_RESULTS + 5):
            daemon._journal.append(Measured(f"run/{number}/0", "ok", "", 0, values, values))
        found: list[Measured] = []
        while True:
            report = daemon._results(Results(found[-1].sequence if found else 0))
            frame = to_frame(report, 1)
            encode_frame(frame)
            assert isinstance(report, ResultsReport) and from_frame(frame)[1] == report
            found += report.results
            if not report.more:
                return found

    found = asyncio.run(fetched())
    assert [each.sequence for each in found] == list(range(1, MAX_RESULTS + 6))
    assert all(len(each.cycles) == figures for each in found)
