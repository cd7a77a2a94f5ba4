"""Networks by the catalogue's name, or from an ONNX file."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

from hilt.schedule.catalogue import load_workload
from hilt.schedule.onnx_model import SUFFIX, Layer, Network, read_network
from hilt.schedule.workload import WorkloadError


def network_names() -> list[str]:
    """Return every network of the catalogue (workloads.toml)."""
    return list(_tables())


def load_network(text: str) -> Network:
    """`resnet18`, with each layer as often as it is in the network, or the network of a file `model.onnx`.

    Raises WorkloadError, OnnxError.
    """
    if text.endswith(SUFFIX):
        return read_network(Path(text))
    layers = _tables().get(text)
    if layers is None:
        known = ", ".join(network_names())
        raise WorkloadError(f"no network named {text!r}; there are {known}, or give a model{SUFFIX}")
    found = []
    for name, values in layers.items():
        nodes = [f"{name}.{number + 1}" for number in range(int(str(values.get("count", 1))))]
        workload = load_workload(f"{text}.{name}")
        found.append(Layer(f"{text}.{name}", nodes=nodes, macs=workload.macs))
    return Network(text, tuple(found), {})


def _tables() -> dict[str, dict[str, dict[str, object]]]:
    return tomllib.loads(resources.files("hilt.schedule").joinpath("workloads.toml").read_text(encoding="utf-8"))
