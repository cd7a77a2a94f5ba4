"""Cases of the processor's operators, of numpy alone: boards read them too."""

from __future__ import annotations

from typing import Any

import numpy as np

RANDOM = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.normal(0, 2, shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray[Any, Any]:
    return np.abs(normal(*shape)) + np.float32(0.1)


def whole(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


X = normal(2, 4, 6, 5)
CASES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    **{op: (op, [X], {}) for op in (
        "Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "HardSwish", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid",
        "Sign", "Sin", "Softplus", "Softsign", "Tanh", "Elu", "HardSigmoid", "LeakyRelu", "Softmax", "LogSoftmax",
        "Flatten", "GlobalAveragePool", "GlobalMaxPool", "Transpose", "Shape", "Size", "Identity", "ArgMax", "ArgMin",
        "Mish", "NonZero", "Asinh", "Atan", "Celu", "Cosh", "Selu", "Shrink", "Sinh", "Tan", "ThresholdedRelu",
        "ReduceSumSquare", "ReduceL2", "ReduceL1", "ReduceMean", "ReduceMax", "ReduceProd",
    )},
    **{f"{op} of two": (op, [X, normal(4, 1, 5)], {}) for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum")},
    **{f"{op} of two": (op, [X, normal(4, 1, 5)], {}) for op in ("Greater", "Less", "GreaterOrEqual", "LessOrEqual")},
    **{op: (op, [positive(3, 4) / 100], {}) for op in ("Acos", "Asin", "Atanh")},
    "Acosh": ("Acosh", [positive(3, 4) + 1], {}),
    "Mean": ("Mean", [X, normal(4, 1, 5), normal(5)], {}),
    "LRN": ("LRN", [X], {"size": 5, "alpha": 0.5, "beta": 0.6, "bias": 2.0}),
    "LRN of three": ("LRN", [X], {"size": 3}),
    "Sqrt": ("Sqrt", [positive(3, 4)], {}),
    "Log": ("Log", [positive(3, 4)], {}),
    "Pow": ("Pow", [positive(3, 4), normal(4)], {}),
    "Mod": ("Mod", [whole(5, -5, 7), whole(3, 3, -4)], {}),
    "fmod": ("Mod", [normal(5), positive(5)], {"fmod": 1}),
    "Div of integers": ("Div", [whole(7, -7, 8), whole(2, 2, -3)], {}),
    "Equal": ("Equal", [whole(1, 2), whole(1, 3)], {}),
    "Where": ("Where", [X > 0, X, normal(5)], {}),
    "PRelu": ("PRelu", [X, normal(4, 1, 1)], {}),
    "Clip": ("Clip", [X, np.float32(-1), np.float32(0.5)], {}),
    "Clip above": ("Clip", [X, None, np.float32(0.5)], {}),
    "Softmax of channels": ("Softmax", [X], {"axis": 1}),
    "ReduceMean of axes": ("ReduceMean", [X], {"axes": [1, 3], "keepdims": 0}),
    "ReduceSum": ("ReduceSum", [X, whole(2)], {}),
    "ArgMax of channels": ("ArgMax", [X], {"axis": 1, "keepdims": 0}),
    "MatMul": ("MatMul", [normal(2, 3, 4), normal(4, 5)], {}),
    "Gemm": ("Gemm", [normal(4, 3), normal(5, 4), normal(5)], {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}),
    "Einsum": ("Einsum", [normal(2, 3), normal(3, 4)], {"equation": "ij,jk->ik"}),
    "BatchNormalization": ("BatchNormalization", [X, *(positive(4) for _ in range(4))], {}),
    "InstanceNormalization": ("InstanceNormalization", [X, normal(4), normal(4)], {}),
    "LayerNormalization": ("LayerNormalization", [X, normal(5), normal(5)], {}),
    "TopK": ("TopK", [X, whole(2)], {"axis": 1}),
    "CumSum": ("CumSum", [X, np.array(1, np.int64)], {"exclusive": 1, "reverse": 1}),
    "Reshape": ("Reshape", [X, whole(0, -1)], {}),
    "Squeeze": ("Squeeze", [normal(1, 3, 1), whole(-1)], {}),
    "Unsqueeze": ("Unsqueeze", [X, whole(0, -1)], {}),
    "Concat": ("Concat", [X, X], {"axis": -1}),
    "Slice": ("Slice", [X, whole(1, -1), whole(100, -100), whole(1, 3), whole(2, -2)], {}),
    "Split": ("Split", [X, whole(1, 3)], {"axis": 1}),
    "Gather": ("Gather", [X, np.array([[0, 2], [1, -1]])], {"axis": 1}),
    "GatherElements": ("GatherElements", [normal(3, 3), np.array([[1, 2, 0], [2, 0, -1]])], {}),
    "GatherND": ("GatherND", [X, np.array([[0, 1], [1, 2]])], {}),
    "ScatterND": ("ScatterND", [normal(4, 2), np.array([[1], [3]]), normal(2, 2)], {}),
    "Expand": ("Expand", [normal(3, 1), whole(2, 1, 4)], {}),
    "Tile": ("Tile", [normal(2, 3), whole(2, 2)], {}),
    "Pad": ("Pad", [X, whole(0, 0, 1, -1, 0, 0, 2, 3), np.float32(1.5)], {}),
    "Pad reflecting": ("Pad", [X, whole(0, 0, 1, 2, 0, 0, 2, 3)], {"mode": "reflect"}),
    "Pad of edges": ("Pad", [X, whole(0, 1, 1, 2, 2, 0, 2, 3)], {"mode": "edge"}),
    "DepthToSpace": ("DepthToSpace", [X], {"blocksize": 2}),
    "DepthToSpace CRD": ("DepthToSpace", [X], {"blocksize": 2, "mode": "CRD"}),
    "SpaceToDepth": ("SpaceToDepth", [normal(1, 2, 4, 6)], {"blocksize": 2}),
    "Cast": ("Cast", [X], {"to": 7}),
    "Range": ("Range", [np.array(1, np.int64), np.array(9, np.int64), np.array(3, np.int64)], {}),
    "Trilu": ("Trilu", [normal(4, 4)], {"upper": 0}),
    "OneHot": ("OneHot", [whole(1, 3), np.array(4, np.int64), np.array([0, 5], np.float32)], {}),
    "MaxPool": ("MaxPool", [X], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
    "MaxPool ceil": ("MaxPool", [X], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}),
    "MaxPool 1-D": ("MaxPool", [normal(1, 3, 9)], {"kernel_shape": [3], "strides": [2]}),
    "AveragePool": ("AveragePool", [X], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "AveragePool with pads": ("AveragePool", [X], {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}),
    "AveragePool same": ("AveragePool", [X], {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "Conv": ("Conv", [X, normal(6, 2, 3, 3), normal(6)], {"group": 2, "pads": [1, 2, 0, 1], "strides": [2, 1]}),
    "Conv dilated": ("Conv", [X, normal(3, 4, 2, 2)], {"dilations": [2, 3]}),
    "Conv 1-D": ("Conv", [normal(1, 3, 9), normal(2, 3, 3)], {"strides": [2], "pads": [1, 1]}),
    "ConvTranspose": (
        "ConvTranspose", [X, normal(4, 3, 3, 2), normal(6)],
        {"group": 2, "strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [1, 0]},
    ),
    "Resize linear": (
        "Resize", [X, None, np.array([1, 1, 2, 1.5], np.float32)], {"mode": "linear"}
    ),
    "Resize half_pixel_symmetric": (
        "Resize", [X, None, np.array([1, 1, 1.4, 0.7], np.float32)],
        {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"},
    ),
    "Resize nearest": (
        "Resize", [X, None, None, whole(2, 4, 9, 4)],
        {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"},
    ),
    **{
        f"Resize nearest, {mode}": (
            "Resize", [X, None, np.array([1, 1, 2, 2], np.float32)],
            {"mode": "nearest", "nearest_mode": mode, "coordinate_transformation_mode": "asymmetric"},
        )
        for mode in ("ceil", "round_prefer_ceil", "round_prefer_floor")
    },
    "Resize cubic": (
        "Resize", [X, None, None, whole(2, 4, 12, 10)],
        {"mode": "cubic", "coordinate_transformation_mode": "align_corners"},
    ),
    "LSTM": (
        "LSTM", [normal(5, 2, 3), normal(2, 16, 3) / 4, normal(2, 16, 4) / 4, normal(2, 32), None, normal(2, 2, 4),
                 normal(2, 2, 4)],
        {"hidden_size": 4, "direction": "bidirectional"},
    ),
    "GRU": (
        "GRU", [normal(5, 2, 3), normal(1, 12, 3) / 4, normal(1, 12, 4) / 4, normal(1, 24)],
        {"hidden_size": 4, "linear_before_reset": 1},
    ),
    "GRU reverse": (
        "GRU", [normal(5, 2, 3), normal(1, 12, 3) / 4, normal(1, 12, 4) / 4, normal(1, 24)],
        {"hidden_size": 4, "direction": "reverse"},
    ),
    "Hardmax": ("Hardmax", [normal(3, 4, 5)], {"axis": 1}),
    "LpNormalization": ("LpNormalization", [normal(3, 4, 5)], {"axis": 1, "p": 1}),
    "LpPool": ("LpPool", [X], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "p": 3}),
    "GlobalLpPool": ("GlobalLpPool", [X], {"p": 2}),
    "IsInf": ("IsInf", [np.array([1, np.inf, -np.inf, np.nan], np.float32)], {"detect_negative": 0}),
    "ScatterElements": (
        "ScatterElements", [normal(3, 5), np.array([[1, -1], [0, 2]]), normal(2, 2)], {"axis": 1},
    ),
    "ScatterElements adding": (
        "ScatterElements", [normal(3, 5), np.array([[1, 1], [0, 2]]), normal(2, 2)], {"axis": 0, "reduction": "add"},
    ),
    "ScatterND adding": (
        "ScatterND", [normal(4, 2), np.array([[1], [1]]), normal(2, 2)], {"reduction": "add"},
    ),
    **{
        f"GridSample {mode} {padding} {corners}": (
            "GridSample", [normal(2, 3, 5, 4), normal(2, 3, 6, 2)],
            {"mode": mode, "padding_mode": padding, "align_corners": corners},
        )
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for corners in (0, 1)
    },
    "RNN": (
        "RNN", [normal(5, 2, 3), normal(2, 4, 3) / 4, normal(2, 4, 4) / 4, normal(2, 8), None, normal(2, 2, 4)],
        {"hidden_size": 4, "direction": "bidirectional", "activations": ["Tanh", "Relu"]},
    ),
    "ReverseSequence": ("ReverseSequence", [normal(5, 3, 2), whole(1, 4, 5)], {}),
    "ReverseSequence of rows": ("ReverseSequence", [normal(3, 5), whole(5, 1, 2)], {"time_axis": 1, "batch_axis": 0}),
    "LSTM with peepholes": (
        "LSTM", [normal(5, 2, 3), normal(2, 16, 3) / 4, normal(2, 16, 4) / 4, normal(2, 32), None, None,
                 normal(2, 2, 4), normal(2, 12)],
        {"hidden_size": 4, "direction": "bidirectional"},
    ),
    "Resize of two axes": (
        "Resize", [X, None, np.array([1.5, 2], np.float32)], {"mode": "linear", "axes": [-1, 2]}
    ),
    **{
        f"Resize, {policy}": (
            "Resize", [X, None, None, whole(*sizes)],
            {"mode": mode, "keep_aspect_ratio_policy": policy, "axes": axes, "nearest_mode": "floor"},
        )
        for policy, mode, sizes, axes in (
            ("not_larger", "nearest", (9, 11), [2, 3]),
            ("not_smaller", "linear", (4, 13), [3, 2]),
            ("not_larger", "linear", (2, 4, 12, 10), [0, 1, 2, 3]),
        )
    },
}  # fmt: skip
NUMPY_ALONE = {
    *("Cos", "Sin", "Asinh", "Atan", "Celu", "Cosh", "Sinh", "Tan", "Acos", "Asin", "Atanh", "Acosh"),
    *("ReduceL2", "ReduceL1", "ReduceProd", "Size", "NonZero", "Mean", "LRN", "LRN of three"),
    *("Log of", "Pow", "Mod", "fmod", "Div of integers", "Equal", "PRelu", "Einsum", "TopK", "CumSum"),
    *("GatherElements", "GatherND", "ScatterND", "Tile", "Pad", "Cast", "Range", "Trilu", "OneHot"),
    *("ReverseSequence", "ReverseSequence of rows"),
    *("ConvTranspose", "ReduceMean of axes", "Hardmax", "LpNormalization", "LpPool", "GlobalLpPool", "IsInf"),
    *("ScatterElements", "ScatterElements adding", "ScatterND adding"),
    *(case for case in CASES if case.startswith("GridSample")),
}
"""The cases that the native engine leaves to numpy."""
