"""The workloads whose trials run a network's layers as the compiled network runs them.

Layers share a workload if they have one shape and one epilogue. Constants change neither instructions nor cycles, so
bias, shift, clip and the exact scale of a skip connection are the trial's own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hilt.network.band_layers import placed_layer
from hilt.network.graph import Graph
from hilt.network.layers import NotOnVtaError, VtaLayer, folded, with_taps
from hilt.network.lower_layer import lowered_bias, multiplies_bias
from hilt.network.vta_form import in_vta_form
from hilt.schedule import Conv2d, bound_cycles
from hilt.schedule.fused import SKIP_SHIFTS
from hilt.schedule.onnx_model import Layer, Network
from hilt.schedule.workload_syntax import format_workload
from hilt.vta.accelerator import Accelerator

_TUNED = ("conv2d", "dense")


def tuned_form(layer: VtaLayer, accelerator: Accelerator) -> Conv2d:
    """Return the workload of a layer in the form that the network runs, but for shifts that differ by channel block."""
    if layer.residual:
        epilogue = "skip" if layer.residual_shift <= SKIP_SHIFTS["skip"] else "shifted_skip"
    else:
        epilogue = "bias" if lowered_bias(layer, accelerator) is None else "low_bias"
    if multiplies_bias(layer, accelerator):
        epilogue = f"product_{epilogue.removeprefix('low_')}"
    return replace(layer.workload.schedule_shape, epilogue=epilogue)


def tuned_network(graph: Graph, name: str, accelerator: Accelerator, *, bands: bool = False) -> Network:
    """Return a network's convolutions and dense layers in the forms in which the compiled graph runs them.

    Its other operators are those that VTA cannot run. With `bands`, the batch lanes hold bands of the image: a trial
    computes as many images as there are lanes, each of the rows that a band reads.
    """
    layers: dict[str, Layer] = {}
    on_vta: set[str] = set()
    others: Counter[str] = Counter()
    form = in_vta_form(graph, accelerator.parameters)
    for node in form.nodes:
        try:
            layer = placed_layer(form, node, accelerator, bands=bands)
        except NotOnVtaError as error:
            made = Layer("", str(error), macs=form.macs(node))
            if node.op == "reshape" and node.inputs[0] in on_vta:
                on_vta.update(node.outputs)
            elif node.op not in _TUNED:
                others[node.op] += 1
        else:
            on_vta.update(node.outputs)
            if not isinstance(layer, VtaLayer):
                continue
            if layer.data not in on_vta:
                layer = _folded_if_bound_lower(layer, accelerator)
            made = Layer(format_workload(tuned_form(layer, accelerator)), macs=form.macs(node))
        if node.op in _TUNED:
            layers.setdefault(made.workload or node.name, made).nodes.append(node.name)
    return Network(name, tuple(layers.values()), dict(others))


def _folded_if_bound_lower(layer: VtaLayer, accelerator: Accelerator) -> VtaLayer:
    """Return a layer whose input the processor packs; its kernel's taps are channels if the bound is lower then."""
    block = accelerator.parameters.block
    forms = (layer, folded(layer), with_taps(layer, block)) if layer.workload.in_channels < block else (layer,)
    return min((form for form in forms if form is not None), key=lambda each: bound_cycles(each.workload, accelerator))
