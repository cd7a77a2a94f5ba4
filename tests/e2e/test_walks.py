"""Three users' walks: each types the commands that the documents give, in their order, in a folder of its own.

The commands are read from README.md and docs/, so that a document that goes wrong fails here. A walk replaces words by
smaller ones only where `sizes` says so: a budget, a layer, a network.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from hilt.explore.exploration import SCHEMA
from hilt.vta.parameters import load_parameters
from tests.e2e.conftest import stop_boards

ROOT = Path(__file__).parents[2]
SECONDS = 900
pytestmark = pytest.mark.slow

Typed = Callable[..., list[str]]


def commands(document: str, heading: str, block: int = 0) -> list[str]:
    """Return the `hilt` commands of a block of code below a heading, without their comments."""
    text = (ROOT / document).read_text(encoding="utf-8")
    section = text[text.index(heading) + len(heading) :]
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    typed_in = [text for language, text in blocks if not language][block]
    return [line.partition(" #")[0].strip() for line in typed_in.splitlines() if line.startswith("hilt ")]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Typed]:
    """Return a function that runs commands as typed, and returns the output of each."""
    home = tmp_path / "home"
    monkeypatch.chdir(tmp_path)

    def run(lines: Sequence[str], sizes: Mapping[str, str] | None = None) -> list[str]:
        said = []
        for line in lines:
            words = [(sizes or {}).get(word, word) for word in shlex.split(line)]
            for word, smaller in (sizes or {}).items():
                words = [each.replace(word, smaller) if word.startswith("resnet18.") else each for each in words]
            done = subprocess.run(
                [sys.executable, "-c", "from hilt.cli.main import main; main()", *words[1:]],
                env=os.environ | {"HILT_HOME": str(home)},
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"
            said.append(done.stdout)
        return said

    try:
        yield run
    finally:
        with monkeypatch.context() as patch:
            patch.setenv("HILT_HOME", str(home))
            stop_boards(home)


def own_model() -> NDArray[np.float32]:
    """Write model.onnx, two float convolutions with trained-looking weights, and data.npz; return the samples in it."""
    random = np.random.default_rng(0)
    nodes, weights, data = [], [], "image"
    for number, (inputs, outputs) in enumerate(((16, 16), (16, 32))):
        values = random.normal(0, 0.1, (outputs, inputs, 3, 3)).astype(np.float32)
        weights.append(numpy_helper.from_array(values, f"w{number}"))
        nodes.append(helper.make_node("Conv", [data, f"w{number}"], [f"c{number}"], f"conv{number}", pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [f"c{number}"], [f"r{number}"], f"relu{number}"))
        data = f"r{number}"
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 16, 8, 8])
    result = helper.make_tensor_value_info(data, TensorProto.FLOAT, [1, 32, 8, 8])
    graph = helper.make_graph(nodes, "mine", [image], [result], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "model.onnx")
    samples = np.random.default_rng(1).normal(0, 1, (12, 16, 8, 8)).astype(np.float32)
    np.savez("data.npz", image=samples)
    return samples


@pytest.mark.ssh
@pytest.mark.rtl
def test_an_engineer_with_a_model_gets_its_output_from_the_board(typed: Typed, tmp_path: Path) -> None:
    np.save("x.npy", own_model()[:1])
    lines = commands("README.md", "**I have a model.**")
    assert [line.split()[1] for line in lines] == ["quantize", "campaign", "run"]
    said = typed(lines, {"2h": "10"})
    assert "equal to the integer reference" in said[2] and Path("out/schedule.json").is_file()
    output = np.load("y.npy")
    assert output.shape == (1, 32, 8, 8) and np.isfinite(output).all() and output.std() > 0
    assert json.loads(Path("out/schedule.json").read_text())["total"]["complete"]
    later = typed(["hilt show last", "hilt report last", "hilt log export last vta.log"])
    assert "an inference" in later[0] and Path("vta.log").is_file()


@pytest.mark.ssh
@pytest.mark.rtl
def test_a_designer_with_a_parameter_file_compares_and_runs_it(typed: Typed, tmp_path: Path) -> None:
    mapping = load_parameters("pynq").to_mapping()
    Path("mine.json").write_text(json.dumps(mapping))
    Path("sweep.toml").write_text('[base]\nparameters = "mine.json"\n[sweep]\nLOG_ACC_BUFF_SIZE = [16, 17]\n')
    lines = commands("README.md", "**I change VTA.**")
    assert [line.split()[1] for line in lines] == ["explore", "boards", "tune", "explain"]
    own_model()
    typed(["hilt quantize model.onnx --calibration data.npz -o resnet18.onnx"])
    said = typed(lines, {"16": "4", "resnet18": "resnet18.onnx"})
    assert "2 designs for resnet18" in said[0]
    kept = list((tmp_path / "home" / "explore" / "resnet18" / "designs").glob("*.json"))
    assert len(kept) == 2 and SCHEMA == 2
    assert "4 of 4 trials" in said[2] and "virtual:mine" in said[2]
    assert "GEMM" in said[3]


@pytest.mark.ssh
@pytest.mark.rtl
def test_a_researcher_with_a_tuner_runs_and_compares_it(typed: Typed) -> None:
    document = "docs/how-to/new-tuner.md"
    source = re.search(r"^```python\n(.*?)^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)
    assert source is not None
    Path("nearby.py").write_text(source[1])
    lines = commands(document, "# How to add a new tuner", block=0)
    assert [line.split()[1] for line in lines] == ["tuners", "tune"]
    options, tuned = typed(lines, {"resnet18.C5": "resnet18.C10", "16": "6"})
    assert "width" in options and "Largest distance" in options
    assert "6 of 6 trials" in tuned
    on_records = commands(document, "## Compare it")
    assert [line.split()[1] for line in on_records] == ["dataset", "tune", "bench"]
    built = ["--rtl-sample", "0", "--golden-sample", "1"]
    on_records[0] = shlex.join([*shlex.split(on_records[0]), *built])
    _, recorded = typed(on_records[:2], {"resnet18.C5": "resnet18.C10"})
    assert "300 of 300 trials" in recorded
    (compared,) = typed(["hilt compare last --json"])
    assert json.loads(compared)["runs"][0]["tuner"].endswith("NearbyTuner")
