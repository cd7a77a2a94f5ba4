"""A network's inference on a design, as the compiler would have it: no board is involved.

With a graph the compiler itself makes the programs, and the inference is the one that `hilt run` reports. Of a table of
layers the compiler's searcher finds each layer's schedule, and the inference is VTA's part alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from hilt.explore.design import Design
from hilt.explore.subject import Subject
from hilt.network.compile import Compiled, compile_network
from hilt.network.graph import Graph, GraphError
from hilt.network.images_at_once import with_images
from hilt.network.latency import Latency
from hilt.network.predicted import predicted_profile
from hilt.network.processor import assumed_speed
from hilt.network.search import NoScheduleError, Searcher
from hilt.network.target import CompileTarget, aimed, holds_bands
from hilt.schedule import Conv2d, load_convolution
from hilt.simulator.twin import Twin


@dataclass(frozen=True)
class LayerSchedule:
    """A layer on VTA: its name or workload, how often it is there, its knobs and the twin's cycles."""

    name: str
    count: int
    knobs: Mapping[str, int]
    cycles: int


@dataclass(frozen=True)
class DesignInference:
    """One pass of a network on a design.

    Attributes:
        layers: The layers on VTA.
        images: Images of the pass.
        latency: The whole pass; of a table of layers VTA's part alone.
        whole: Whether the processor's part is in it.
        reason: Why there is no pass; then there are no layers.
    """

    layers: tuple[LayerSchedule, ...]
    images: int
    latency: Latency
    whole: bool = True
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"latency": self.latency.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DesignInference:
        """Return the inference that `to_dict` described."""
        layers = tuple(LayerSchedule(**layer) for layer in values["layers"])
        latency = Latency.from_dict(values["latency"])
        return cls(layers, values["images"], latency, values["whole"], values["reason"])


def infer(subject: Subject, design: Design) -> DesignInference:
    """Return a network's pass on a design.

    Raises:
        MissingToolError: There is no compiler to build the twin with.
        BuildError: The twin cannot be built for the design.
    """
    Twin(design.accelerator)
    return _of_layers(subject, design) if subject.graph is None else _of_graph(subject.graph, design)


def target_of(design: Design) -> CompileTarget:
    """Return the target that a design is compiled for."""
    return CompileTarget(design.title, design.accelerator, design.memory, processor=assumed_speed(design.core))


def graph_on(graph: Graph, design: Design) -> Graph:
    """Return the graph with an image for each batch lane, where images can go beside each other, else the graph.

    The graph itself, too, where the lanes hold bands of its image.
    """
    if holds_bands(design.accelerator, graph):
        return graph
    try:
        return with_images(graph, design.parameters.batch)
    except GraphError:
        return graph


def compiled_for(graph: Graph, design: Design) -> tuple[Graph, Compiled]:
    """Return the graph as the design runs it, and its bundle."""
    whole = graph_on(graph, design)
    return whole, compile_network(whole, aimed(target_of(design), whole, None))


def _of_graph(graph: Graph, design: Design) -> DesignInference:
    whole, compiled = compiled_for(graph, design)
    profile = predicted_profile(whole, compiled.manifest, design.core)
    images = whole.tensors[whole.inputs[0]].shape[0] if whole is not graph else 1
    layers = tuple(
        LayerSchedule(layer["name"], 1, layer["knobs"], layer["cycles"]) for layer in compiled.manifest["layers"]
    )
    reason = "" if layers else "no layer of it fits the buffers"
    return DesignInference(layers, images, profile.latency, True, reason)


def _of_layers(subject: Subject, design: Design) -> DesignInference:
    images = design.parameters.batch
    searcher = Searcher(design.accelerator, design.memory)
    layers = []
    for text, count in subject.layers:
        try:
            found = searcher.schedule(load_batched(text, images), None)
        except NoScheduleError as error:
            return DesignInference((), images, Latency(0.0, 0.0, 0.0, 0.0, 0), False, f"{text}: {error}")
        layers.append(LayerSchedule(text, count, found.knobs, found.cycles))
    vta = sum(layer.cycles * layer.count for layer in layers) / design.clock_hz * 1e6
    return DesignInference(tuple(layers), images, Latency(vta, 0.0, 0.0, 0.0, len(layers)), False)


def load_batched(text: str, images: int) -> Conv2d:
    """Return a convolution with the design's batch, where it has fewer images."""
    workload = load_convolution(text)
    return workload if workload.batch >= images else replace(workload, batch=images)
