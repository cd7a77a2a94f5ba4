"""`hilt quantize`: the meaning of its options, and its output of a result whose figures are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hilt.cli.exit_codes import Exit
from hilt.cli.main import run as hilt
from hilt.network.images import Images
from hilt.network.quantize import files
from hilt.network.quantize.costs import Costs, LayerCost, OutputCost
from hilt.network.quantize.quantizer import Agreement, ClassificationAccuracy, KeptNode, Quantisation

COSTS = Costs(
    (LayerCost("conv1", "Conv", 1_500_000, 5, 31.25, 0.1), LayerCost("dense", "Gemm", 500_000, -1, 12.0, 0.2)),
    (OutputCost("y", 30.04), OutputCost("z", 25.0)),
    16,
    unseen=True,
)
PLAIN: Any = Quantisation(
    None,
    None,
    COSTS,
    Agreement(1_234_567, 0.98765, 12, 0, 1),
    None,
    False,
    False,
    0,
    0,
    (),
    (),
    (),  # type: ignore[arg-type]
)
FULL = replace(
    PLAIN,
    accuracy=ClassificationAccuracy(1_000, 0.9, 0.875, 0.8749),
    equalised=True,
    centred=True,
    bordered=3,
    channel_block=0,
    kept=(KeptNode("head", "Gemm", 1_500_000, 0.0012), KeptNode("tail", "Conv", 500_000, 0.0003)),
    notes=("a note", "another"),
)
Captured = pytest.CaptureFixture[str]


class Bench:
    """The quantiser, which answers at once with `result`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.result = PLAIN
        self.asked: dict[str, Any] = {}
        self.written: list[Path] = []
        self.output = folder / "q.onnx"
        monkeypatch.setattr(files, "quantise_file", self._quantise)
        monkeypatch.setattr(files, "write_model", lambda result, path: self.written.append(path))

    def _quantise(self, model: Path, calibration: Path, **asked: Any) -> Quantisation:
        asked["counting"]("running", "samples")(1, 2)
        self.asked = {"model": model, "calibration": calibration, **asked}
        return self.result

    def run(self, *options: str) -> int:
        return hilt(["quantize", "m.onnx", "--calibration", "d.npz", "-o", str(self.output), *options])


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    return Bench(tmp_path, monkeypatch)


def test_without_options_all_layers_are_quantised_and_the_scales_are_searched(bench: Bench) -> None:
    assert bench.run() == Exit.OK
    assert {name: value for name, value in bench.asked.items() if name != "counting"} == {
        **{"model": Path("m.onnx"), "calibration": Path("d.npz"), "labels": "", "shapes": {}, "values": {}},
        **{"channel_block": None, "search": True, "kept": [], "least_decibels": None, "borders": None, "images": None},
    }
    assert bench.written == [bench.output]


@pytest.mark.parametrize(
    ("options", "kept", "decibels"),
    [
        (["--float", "head"], ["head"], None),
        (["--float", "auto"], [], 20.0),
        (["--float", "head", "--float", "auto"], ["head"], 20.0),
        (["--float", "auto", "--min-db", "30"], [], 30.0),
        (["--min-db", "0"], [], 0.0),
    ],
)
def test_layers_stay_in_float_by_name_or_by_decibels(
    bench: Bench, options: list[str], kept: list[str], decibels: float | None
) -> None:
    bench.run(*options)
    assert (bench.asked["kept"], bench.asked["least_decibels"]) == (kept, decibels)


@pytest.mark.parametrize(
    ("options", "images"),
    [
        (["--mean", "1.5,2,3"], Images((1.5, 2.0, 3.0), (1.0,), "nhwc")),
        (["--scale", "255"], Images((0.0,), (255.0,), "nhwc")),
        (["--layout", "nchw"], Images((0.0,), (1.0,), "nchw")),
        (["--layout", "nhwc", "--mean", "0"], Images((0.0,), (1.0,), "nhwc")),
    ],
)
def test_any_word_about_images_makes_the_model_read_them(bench: Bench, options: list[str], images: Images) -> None:
    assert bench.run(*options) == Exit.OK
    assert bench.asked["images"] == images


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--layout", "hwc"], "--layout hwc is neither nhwc nor nchw"),
        (["--mean", "1,two"], "--mean 1,two is no list of numbers such as 123.7,116.3,103.5"),
        (["--scale", "1;2"], "--scale 1;2 is no list of numbers"),
        (["-o", "no/such/folder/q.onnx"], "its folder is missing"),
    ],
)
def test_what_is_refused_is_refused_before_a_sample_runs(
    bench: Bench, capsys: Captured, options: list[str], words: str
) -> None:
    assert bench.run(*options) != Exit.OK
    assert words in " ".join(capsys.readouterr().err.split()) and bench.asked == {} and bench.written == []


def test_the_loss_is_printed_by_layer_and_by_output(bench: Bench, capsys: Captured) -> None:
    bench.run()
    said = capsys.readouterr()
    header, conv, dense, *rest = said.out.splitlines()
    assert header.split() == ["layer", "operator", "MMAC", "scale", "signal", "to", "noise"]
    assert conv.split() == ["conv1", "Conv", "1.50", "2^-5", "31.2", "dB"]
    assert dense.split() == ["dense", "Gemm", "0.50", "2^1", "12.0", "dB"]
    assert rest == [
        "output y: 30.0 dB above the error of quantising",
        "output z: 25.0 dB above the error of quantising",
        "measured on 16 held-out samples",
        "integer reference against ONNX Runtime: 98.765 % of 1,234,567 int8 values equal; 12 are ties, which VTA "
        "rounds up and ONNX to even; 0 differ otherwise, by 1 at most",
        f"{bench.output}: any ONNX tool opens it; `hilt compile {bench.output} -o FILE.hilt` makes a bundle of it",
    ]
    assert said.err == ""


def test_what_was_done_to_the_network_is_said(bench: Bench, capsys: Captured) -> None:
    bench.result = replace(FULL, costs=replace(COSTS, unseen=False))
    bench.run()
    lines = capsys.readouterr().out.splitlines()
    assert lines[3:5] == ["a note", "another"]
    assert "measured on 16 samples that also fitted the scales; from eight on half are held out" in lines
    assert (
        "in float on the processor: head, tail; 50.0 % of the multiply-accumulates, about 1.5 ms on a "
        "Cortex-A9, 650 MHz"
    ) in lines
    borders = "3 layers read a constant around their data in place of zeros, which takes VTA some per cent longer"
    assert f"{borders}, and up to a fifth with depthwise layers" in lines
    assert any(line.startswith("channels were equalised") for line in lines)
    assert any(line.startswith("tensors were centred") for line in lines)
    assert "accuracy on 1,000 samples: float 90.00 %, quantised 87.50 %, integer reference 87.49 %" in lines


def test_an_output_that_lost_much_is_a_warning_that_names_the_layers_that_add_most(
    bench: Bench, capsys: Captured
) -> None:
    bench.result = replace(PLAIN, costs=replace(COSTS, outputs=(OutputCost("y", 15.0), OutputCost("z", 14.96))))
    assert bench.run() == Exit.OK
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: output z is only 15.0 dB above its error; most of it comes from dense, conv1: ")
    assert "--float dense" in line


def test_json_has_every_figure(bench: Bench, capsys: Captured) -> None:
    bench.result = FULL
    assert bench.run("--json") == Exit.OK
    out, err = capsys.readouterr()
    said = json.loads(out)
    assert (said["kind"], err, bench.written) == ("quantization", "", [bench.output])
    assert said["signal_to_noise_db"] == pytest.approx(27.52) and said["samples"] == {"measured": 16, "unseen": True}
    assert (said["equalised"], said["centred"], said["bordered"], said["warnings"]) == (True, True, 3, [])
    assert [node["name"] for node in said["float"]] == ["head", "tail"] and said["notes"] == ["a note", "another"]
    assert said["accuracy"]["reference"] == 0.8749 and said["agreement"]["ties"] == 12
    assert said["layers"][1] == {
        **{"name": "dense", "op": "Gemm", "macs": 500_000, "exponent": -1, "decibels": 12.0, "added": 0.2}
    }
    bench.result = PLAIN
    bench.run("--json")
    assert json.loads(capsys.readouterr().out)["accuracy"] is None
