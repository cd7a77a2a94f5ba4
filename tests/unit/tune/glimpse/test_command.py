from __future__ import annotations

from pathlib import Path

import pytest

from hilt.cli.main import run


def test_show_names_layers_never_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["glimpse", "show"]) == 0
    printed = capsys.readouterr().out
    assert "Never seen: any layer with the shape of one of deepbench or resnet18" in printed
    assert "Blueprint of" in printed


def test_a_file_that_is_no_weights_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "weights.npz").write_text("no weights")
    assert run(["glimpse", "show", str(tmp_path / "weights.npz")]) == 2
    assert "cannot be used" in capsys.readouterr().err


def test_training_does_not_begin_where_its_result_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    assert run(["glimpse", "train", "--output", str(tmp_path / "none" / "weights.npz")]) == 2
    assert "cannot write" in capsys.readouterr().err
