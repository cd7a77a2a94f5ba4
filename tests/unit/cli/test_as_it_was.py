"""The output of commands for a small store and schedules, beside the accepted one.

Where it is meant to change: `build/host-env/bin/pytest tests/unit/cli/test_as_it_was.py --snapshot-update`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from hilt.cli.main import run as hilt
from hilt.store import RunState, Store, database_path
from hilt.trial import Outcome
from tests.unit.report.campaign_store import make
from tests.unit.report.test_one_figure import keep
from tests.unit.store import examples

RUN, OTHER = "3f2a91bc-0000-4000-8000-000000000001", "77777777-0000-4000-8000-000000000001"
_ID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){0,3}(-[0-9a-f]{12}|[0-9a-f]{24})?\b")
"""Ids of the campaign, which are new each time."""
_NOW = re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d")
COMMANDS = (
    "runs", "runs --json", "runs --all", "show CAMPAIGN", "show RUN", "show OTHER", "campaigns",
    "campaigns --json", "best", "compare RUN OTHER", "compare RUN OTHER --json", "compare CAMPAIGN RUN", "tag RUN fast",
    "note RUN hello", "show RUN", "archive OTHER", "runs", "tuners", "tuners hilt",
    "space resnet18.C10", "explain resnet18.C10 1000",
    "tune resnet18.C99", "show zzz", "explain resnet18.C10 tile_h=3",
)  # fmt: skip


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Fill a store with a campaign and two runs; clocks are those of UTC."""
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    campaign, _ = make(tmp_path)
    keep(tmp_path, campaign)
    with Store(database_path(tmp_path)) as store:
        for place, uuid in enumerate((RUN, OTHER)):
            store.create_run(examples.run(uuid, seed=place, created=60.0 * place, tuner=("random", "ga")[place]))
            trials = [examples.trial(number, 7 * number, 900.0 - 50 * number - place) for number in range(5)]
            failed = replace(
                trials[2], microseconds=None, verification=None, outcome=Outcome.TIMEOUT, reason="no FINISH"
            )
            store.record(uuid, [*trials[:2], failed, *trials[3:]])
            store.set_state(uuid, (RunState.FINISHED, RunState.STOPPED)[place])
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "UTC")
        time.tzset()
        yield {"CAMPAIGN": campaign.uuid, "RUN": RUN[:8], "OTHER": OTHER[:8]}
    time.tzset()


def test_output(
    names: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
) -> None:
    lines = []
    for command in COMMANDS:
        status = hilt([names.get(word, word) for word in command.split()])
        printed = capsys.readouterr()
        lines += [f"$ hilt {command}", printed.out.rstrip(), printed.err.rstrip(), f"status {int(status)}"]
    text = "\n".join(line.rstrip() for line in "\n".join(lines).splitlines())
    text = _NOW.sub("a time of this year", text)
    assert _ID.sub(lambda found: found[0] if found[0][:8] in names.values() else "*" * len(found[0]), text) == snapshot
