"""The board's names of ONNX's element types, and the ends of files that are cut: held against onnx and zipfile."""

from __future__ import annotations

import io
import zipfile

import pytest
from onnx import TensorProto, helper

from hilt_runtime import archive, operators_shape
from hilt_runtime.archive import ZipReadError


def test_element_types_are_onnxs() -> None:
    (names,) = [
        value
        for value in vars(operators_shape).values()
        if isinstance(value, dict) and value.get(TensorProto.FLOAT) == "float32"
    ]
    assert names == {code: helper.tensor_dtype_to_np_dtype(code).name for code in names}
    assert set(names) >= {TensorProto.UINT64, TensorProto.BOOL, TensorProto.DOUBLE}


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("a", b"content")
    return file.getvalue()


@pytest.mark.parametrize("missing", range(1, 23))
def test_a_zip_file_whose_end_is_cut_is_none(missing: int) -> None:
    whole = zipped()
    archive._check_directory(io.BytesIO(whole), len(whole))
    cut = whole[:-missing]
    with pytest.raises(ZipReadError, match="it is no whole zip file"):
        archive._check_directory(io.BytesIO(cut), len(cut))


def test_a_comment_behind_the_end_is_read_over() -> None:
    with zipfile.ZipFile(file := io.BytesIO(zipped()), "a") as made:
        made.comment = b"x" * 500
    archive._check_directory(file, len(file.getvalue()))
