"""`hilt tune` imports the modules of a run: no other tuner, no network's passes, no SSH library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

_CODE = """
import json, sys
import hilt.cli.attending, hilt.cli.main, hilt.cli.tune, hilt.engine.launch
from hilt.engine.run_spec import RunSpec, make_run
from hilt.measure import describe_board
make_run(RunSpec("resnet18.C5", "virtual:pynq", "grid", 1), describe_board("virtual:pynq"))
print(json.dumps(sorted(sys.modules)))
"""
_MOST = 200
"""Modules of hilt that a command imports at most before its engine starts; 175 when this was written."""


def test_a_layers_run_is_made_without_other_tuners_networks_and_ssh(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CODE], env={**os.environ, "HILT_HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    modules = set(json.loads(done.stdout))
    assert "hilt.tune.plain_tuners" in modules
    assert {"scipy", "onnx", "paramiko", "xgboost"} & modules == set()
    assert {"hilt.tune.model_guided.tuner", "hilt.engine.loop", "hilt_runtime.network"} & modules == set()
    assert not [name for name in modules if name.startswith("hilt.network.onnx_")]
    assert len([name for name in modules if name.startswith("hilt")]) <= _MOST
