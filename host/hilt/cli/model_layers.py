"""One layer of an ONNX model on the command line: `model.onnx` and `model.onnx:LAYER`."""

from __future__ import annotations

import typer

from hilt.did_you_mean import did_you_mean
from hilt.schedule import Workload, load_workload
from hilt.schedule.networks import load_network
from hilt.schedule.onnx_model import SUFFIX, require_layers


def is_model(text: str) -> bool:
    """Return whether the text names a model, or a layer of one."""
    return text.endswith(SUFFIX) or f"{SUFFIX}:" in text


def layers_of(model: str) -> dict[str, str]:
    """Return the workload of each layer that VTA can run, by the name of its first node. Raises OnnxError."""
    return {
        layer.nodes[0] if layer.nodes else layer.workload: layer.workload for layer in load_network(model).supported
    }


def workload_of(text: str) -> Workload:
    """Return the workload of a name, or of a model's layer: `model.onnx:NODE`, NODE any node of the layer.

    Raises WorkloadError, OnnxError, and typer.BadParameter for a layer that the model does not have.
    """
    if not is_model(text):
        return load_workload(text)
    model, _, wanted = text.partition(f"{SUFFIX}:")
    network = load_network(model if model.endswith(SUFFIX) else f"{model}{SUFFIX}")
    require_layers(network)
    for layer in network.supported:
        if wanted and (wanted in layer.nodes or wanted == layer.workload):
            return load_workload(layer.workload)
    names = [layer.nodes[0] for layer in network.supported if layer.nodes]
    listed = f"its layers are {', '.join(names)}"
    if not wanted:
        raise typer.BadParameter(f"{text} has {len(names)} layers: name one as {text}:{names[0]}; {listed}")
    raise typer.BadParameter(f"{network.name} has no layer {wanted!r}; {did_you_mean(wanted, names, listed)}")
