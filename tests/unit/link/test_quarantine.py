"""Boards that are kept apart, by whatever name."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.link.errors import QuarantinedError
from hilt.link.quarantine import check_free, quarantine, quarantined, release

INJECTED = "virtual:pynq@desk?rate=0.2&kinds=" + "+".join(["worker_crash"] * 30)


@pytest.mark.parametrize("name", ["desk", "../desk/:", "ä" * 90, INJECTED])
def test_a_board_is_kept_apart_until_it_is_released(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    check_free(name)
    quarantine(name, "its canary failed")
    assert {board: kept.reason for board, kept in quarantined().items()} == {name: "its canary failed"}
    with pytest.raises(QuarantinedError, match="its canary failed"):
        check_free(name)
    check_free(f"{name}x")
    assert release(name) and not release(name)
    check_free(name)
    assert not quarantined()


def test_a_file_that_cannot_be_read_keeps_its_board_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    quarantine("desk", "its canary failed")
    (tmp_path / "quarantine" / "desk.json").write_text("{")
    assert list(quarantined()) == ["desk"]
    with pytest.raises(QuarantinedError, match="cannot be read"):
        check_free("desk")
