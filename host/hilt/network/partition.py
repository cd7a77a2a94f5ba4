"""The partition of nodes between VTA and the processor: place, order and reason of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from hilt.network.aliases import Aliases
from hilt.network.band_layers import placed_layer
from hilt.network.core_speed import node_work
from hilt.network.crossings import crossing_seconds, fold_work, layout_work, packed_seconds
from hilt.network.graph import Graph, Node, check
from hilt.network.layers import NotOnVtaError, Tabled, TiledLayer, VtaLayer, folded, outputs_beside, table_of, with_taps
from hilt.network.lower_layer import layer_code
from hilt.network.packed_layout import PackedLayout
from hilt.network.packed_steps import packed_attributes
from hilt.network.processor import ASSUMED, ProcessorSpeed
from hilt.network.search import NoScheduleError, Schedule, Searcher
from hilt.network.tuned_forms import tuned_form
from hilt.network.window_layers import windowed
from hilt.schedule import ConfigurationError, Rejected, Workload, convolution
from hilt.schedule.residual import Skip
from hilt.vta.accelerator import Accelerator

Tuned = Mapping[Workload, Sequence[Mapping[str, int]]]
"""Knobs by shape and form (`schedule_shape`), the fastest first; those of the plain form are for any form."""
ByNode = Mapping[str, Sequence[Mapping[str, int]]]
"""Knobs by node, measured in the form that the network has, the fastest first."""
Measured = tuple[float, Mapping[str, int]]
"""Microseconds of a layer, and its knobs."""
Form = tuple[Workload, Skip | None, int]
"""A layer's shape, its residual, and how many of its channel blocks shift differently."""


@dataclass(frozen=True, eq=False)
class Placement:
    """The place of one node: VTA where it has a layer and a schedule, else the processor; `reason` says why.

    A `view` runs nowhere: its inputs and its output lie in one memory of VTA's (`Aliases`). An `epilogue` is a table:
    the STOREs of the layer that makes its input go by it (`Tabled` of that layer). `packed` are the attributes with
    which the processor computes a node on tensors in VTA's layout. `alternatives` are schedules that are slower alone,
    but may be faster between the layer's neighbours.
    """

    node: Node
    layer: VtaLayer | TiledLayer | None
    schedule: Schedule | None
    reason: str
    view: bool = False
    alternatives: tuple[Schedule, ...] = ()
    packed: Mapping[str, Any] | None = None
    epilogue: bool = False

    @property
    def on_vta(self) -> bool:
        return self.layer is not None or self.epilogue


@dataclass(frozen=True)
class Part:
    """Consecutive nodes on one side: a chain of layers on VTA, or nodes on the processor one after another.

    Views may stand among either.
    """

    placements: tuple[Placement, ...]
    on_vta: bool


def place(
    graph: Graph,
    searcher: Searcher,
    tuned: Tuned,
    by_node: ByNode | None = None,
    speed: ProcessorSpeed = ASSUMED,
    on_node: Callable[[int, int], None] = lambda done, total: None,
    aliases: Aliases | None = None,
) -> list[Placement]:
    """Return where each node runs, in the graph's order; `aliases` takes the tensors that lie within others.

    A node that VTA can run goes there unless the processor is faster by the model of its core, the way to VTA and
    back included. With `bands`, the batch lanes hold bands of the image.
    """
    aliases = aliases or Aliases(graph, PackedLayout(searcher.accelerator.parameters))
    layout = aliases.layout
    placements: list[Placement] = []
    packed: set[str] = set()
    """Tensors that are made in VTA's layout."""
    written: set[str] = set()
    """Tensors of the processor's that VTA reads: they are packed already when another layer reads them."""
    for node in graph.nodes:
        placement = _view(graph, node, packed, aliases) or _epilogue(graph, node, placements, searcher.accelerator)
        if placement is None:
            knobs = (by_node or {}).get(node.name, ())
            placement = _place(graph, node, searcher, tuned, knobs, packed, written, speed, layout)
            if not placement.on_vta:
                placement = replace(placement, packed=_on_packed(graph, node, packed, layout))
        placements.append(placement)
        on_node(len(placements), len(graph.nodes))
        if placement.on_vta or placement.view or placement.packed is not None:
            packed.update(node.outputs)
        if placement.on_vta:
            aliases.by_vta.update(node.outputs)
        if placement.on_vta and not (isinstance(placement.layer, VtaLayer) and placement.layer.fold):
            written.update(node.inputs)
    return placements


def _on_packed(graph: Graph, node: Node, packed: set[str], layout: PackedLayout) -> dict[str, Any] | None:
    """Return the attributes with which the processor computes a node in VTA's layout; None if it does so in its own.

    It does if the larger part of the node's inputs lies in VTA's layout.
    """
    return packed_attributes(graph, node, layout) if _mostly_packed(graph, node, packed) else None


def _mostly_packed(graph: Graph, node: Node, packed: set[str]) -> bool:
    """Return whether the larger part of a node's inputs lies in VTA's layout."""
    sizes = {name: graph.tensors[name].size for name in node.inputs if name in graph.tensors}
    return 2 * sum(size for name, size in sizes.items() if name in packed) > sum(sizes.values())


def _view(graph: Graph, node: Node, packed: set[str], aliases: Aliases) -> Placement | None:
    """Return the placement of a node that moves nothing; None of others."""
    if not _mostly_packed(graph, node, packed) or not aliases.join(node):
        return None
    return Placement(node, None, None, "its output lies where its inputs lie", view=True)


def _epilogue(graph: Graph, node: Node, placements: list[Placement], accelerator: Accelerator) -> Placement | None:
    """Return the placement of a table that the layer in front of it stores by, and give that layer the table.

    None of other nodes, and of tables of a tensor that no layer makes, or one that has a table.
    """
    if node.op != "table":
        return None
    try:
        entries = table_of(graph, node, accelerator)
    except NotOnVtaError:
        return None
    for place, maker in enumerate(placements):
        layer = maker.layer
        if layer is not None and layer.output == node.inputs[0] and layer.tabled is None:
            others = [each for each in graph.nodes if node.inputs[0] in each.inputs and each is not node]
            tabled = Tabled(entries, node.outputs[0], alone=not others and layer.output not in graph.outputs)
            placements[place] = replace(maker, layer=replace(layer, tabled=tabled))
            return Placement(node, None, None, f"{maker.node.name} stores by way of the table", epilogue=True)
    return None


def _place(
    graph: Graph,
    node: Node,
    searcher: Searcher,
    tuned: Tuned,
    knobs: Sequence[Mapping[str, int]],
    packed: set[str],
    written: set[str],
    speed: ProcessorSpeed,
    layout: PackedLayout,
) -> Placement:
    accelerator = searcher.accelerator
    try:
        layer = placed_layer(graph, node, accelerator, bands=layout.bands)
        measured = _with_room(layer, _measured(layer, searcher, knobs), accelerator)
        schedules = measured or _schedules(layer, searcher, tuned)
        if isinstance(layer, VtaLayer) and layer.data not in packed:
            layer, schedules = _folded_if_faster(layer, schedules, searcher, tuned, speed, layout)
        layer, schedules = _windowed_if_faster(layer, schedules, searcher)
        schedules = _with_room(layer, schedules, accelerator)
        if not schedules:
            raise NoScheduleError(f"layer {node.name}: no tile of it leaves room on chip for the border of its sums")
    except (NotOnVtaError, NoScheduleError) as error:
        return Placement(node, None, None, str(error))
    schedule = schedules[0]
    on_vta, beside = schedule.cycles / accelerator.clock_hz, speed.seconds(node_work(graph, node))
    more_on_vta, more_beside = crossing_seconds(graph, node, layer, packed, written, speed, layout)
    if _on_packed(graph, node, packed, layout) is not None:
        beside, more_beside = packed_seconds(graph, node, packed | written, speed, layout)
    if beside + more_beside < on_vta + more_on_vta:
        faster = f"the processor takes about {beside * 1e6:,.0f} us ({speed.source}), VTA {on_vta * 1e6:,.0f} us (twin)"
        faster += f"; packing and starts {more_beside * 1e6:,.0f} and {more_on_vta * 1e6:,.0f} us"
        return Placement(node, None, None, faster)
    how = f"VTA takes {on_vta * 1e6:,.1f} us (twin), the processor about {beside * 1e6:,.0f} us ({speed.source})"
    return Placement(node, layer, schedule, how, alternatives=tuple(schedules[1:]))


def _folded_if_faster(
    layer: VtaLayer,
    schedules: list[Schedule],
    searcher: Searcher,
    tuned: Tuned,
    speed: ProcessorSpeed,
    layout: PackedLayout,
) -> tuple[VtaLayer, list[Schedule]]:
    """Return the layer whose data the processor packs.

    The columns of its kernel, or all taps, become channels if VTA and the packing are faster together: less of each
    block is empty, but each pixel is written as often as the kernel reads it. Neighbouring outputs share a block if
    that is faster.
    """
    clock, block = searcher.accelerator.clock_hz, layout.parameters.block
    if layer.workload.in_channels >= block:
        return layer, schedules
    found = [(schedules[0].cycles / clock + speed.seconds(layout_work(layer.data_shape, layout)), layer, schedules)]
    forms = [folded(layer, block, outputs) for outputs in outputs_beside(layer, block)]
    for form in (*forms, with_taps(layer, block)):
        if form is not None:
            with suppress(NoScheduleError):
                others = _schedules(form, searcher, tuned)
                taken = others[0].cycles / clock + speed.seconds(fold_work(form, layout))
                found.append((taken, form, others))
    _, chosen, fastest = min(found, key=lambda each: each[0])
    return chosen, fastest


def _windowed_if_faster(
    layer: VtaLayer | TiledLayer, schedules: list[Schedule], searcher: Searcher
) -> tuple[VtaLayer | TiledLayer, list[Schedule]]:
    """Return a depthwise convolution by window GEMMs, if VTA has them and is faster so."""
    windows = windowed(layer, searcher.accelerator) if isinstance(layer, VtaLayer) else None
    if windows is None:
        return layer, schedules
    with suppress(NoScheduleError):
        others = searcher.tile_schedules(windows.node.name, windows.work, windows.bands)
        if others[0].cycles < schedules[0].cycles:
            return windows, others
    return layer, schedules


def _with_room(layer: VtaLayer | TiledLayer, schedules: list[Schedule], accelerator: Accelerator) -> list[Schedule]:
    """Return the schedules that leave room on chip for the layer's border."""
    if layer.border is None:
        return schedules
    found = []
    for schedule in schedules:
        with suppress(Rejected):
            layer_code(layer, schedule.knobs, accelerator)
            found.append(schedule)
    return found


def _measured(layer: VtaLayer | TiledLayer, searcher: Searcher, options: Sequence[Mapping[str, int]]) -> list[Schedule]:
    """Return the schedules of given knobs, as far as they fit."""
    found: list[Schedule] = []
    if isinstance(layer, TiledLayer):
        return found
    for knobs in options:
        with suppress(Rejected, ConfigurationError):
            found.append(searcher.judge(layer.workload, knobs, layer.skip, "tuned", layer.bands, layer.interleaved))
    return found


def _schedules(layer: VtaLayer | TiledLayer, searcher: Searcher, tuned: Tuned) -> list[Schedule]:
    """Return the schedules tuned in the layer's form, else those of its shape that fit, else the twin's best ones."""
    if isinstance(layer, TiledLayer):
        return [searcher.tile_schedule(layer.node.name, layer.work, layer.bands)]
    options, in_order = tuned_options(layer, tuned, searcher.accelerator)
    # A schedule of another form may leave no room for the residual.
    found = _measured(layer, searcher, options)
    if not found:
        return searcher.schedules(layer.workload, layer.skip, layer.bands, layer.interleaved)
    if not in_order:
        # They were tuned in another form, and in this one another schedule may be faster.
        others = searcher.schedules(layer.workload, layer.skip, layer.bands, layer.interleaved)
        found = sorted([*found, *others], key=lambda each: each.cycles)
    return found


def tuned_options(layer: VtaLayer, tuned: Tuned, accelerator: Accelerator) -> tuple[Sequence[Mapping[str, int]], bool]:
    """Return knobs for a layer, and whether they are in the order of its own form.

    Knobs tuned in its form come alone. Else those of the plain form come, which a bias changes little; else those of
    the same shape in any form.
    """
    form = tuned_form(layer, accelerator)
    if form in tuned:
        return tuned[form], True
    if form.plain in tuned:
        return tuned[form.plain], not layer.residual
    others = [options for key, options in tuned.items() if convolution(key).plain == form.plain]
    return [knobs for options in others for knobs in options], False


def parts(graph: Graph, placements: Sequence[Placement]) -> list[Part]:
    """Return the nodes in an order that changes sides as rarely as greedy choice can, grouped by side."""
    waiting = list(placements)
    there = set(graph.inputs) | set(graph.constants) | {""}
    grouped: list[Part] = []
    side: list[Placement] = []
    on_vta = False
    while waiting:
        ready = [placement for placement in waiting if there.issuperset(placement.node.inputs)]
        same = [placement for placement in ready if placement.view or placement.on_vta == on_vta]
        if not same:
            if side:
                grouped.append(Part(tuple(side), on_vta))
            side, on_vta = [], not on_vta
            continue
        chosen = same[0]
        waiting.remove(chosen)
        there.update(chosen.node.outputs)
        side.append(chosen)
    if side:
        grouped.append(Part(tuple(side), on_vta))
    return grouped


def form_of(placement: Placement) -> Form | None:
    """Return the form in which VTA runs a node; None for a layer without weights, and if it does not run there."""
    layer = placement.layer
    if not isinstance(layer, VtaLayer) or layer.fold is not None:
        return None
    return layer.workload.schedule_shape, layer.skip, len(layer.shifts)


def single_layer(graph: Graph, node: Node) -> Graph:
    """Return a graph of this node alone, to measure its fused form; the tensors that it reads are the inputs."""
    data = tuple(dict.fromkeys(name for name in node.inputs if name in graph.tensors))
    made = replace(
        graph,
        inputs=data,
        outputs=node.outputs,
        nodes=(node,),
        tensors={name: graph.tensors[name] for name in (*data, *node.outputs)},
        constants={name: graph.constants[name] for name in node.inputs if name in graph.constants},
    )
    check(made)
    return made
