"""A bundle's manifest: steps, programs, and the memory of tensors and constants."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.ahead import joined_ahead
from hilt.network.aliases import Aliases
from hilt.network.buffers import Life, one_behind_another, shared
from hilt.network.graph import Graph, Node, Tensor
from hilt.network.layers import Fold, TiledLayer, VtaLayer
from hilt.network.linked import Linked
from hilt.network.lower_gate import unit_blocks
from hilt.network.lower_layer import bias_constants, layer_code
from hilt.network.partition import Part, Placement
from hilt.network.product_tiles import Product
from hilt.network.search import Searcher
from hilt.network.target import CompileTarget
from hilt.network.tile_writer import ROWS, UNITS
from hilt.network.timing import layer_ends
from hilt.schedule import bound_cycles
from hilt.schedule.chain import Chain, ChainLink
from hilt.schedule.code import Code
from hilt.schedule.residual import IDENTITY, RESIDUAL, identity_block, identity_blocks
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import uses_bands, uses_table, uses_window
from hilt.vta.layout import pack_weights

_LIMIT_FACTOR = 8
_LIMIT_SECONDS = 1.0
"""The limit of a program: so many times the twin's cycles for it, plus so many seconds of the device."""


@dataclass
class _Lifetime:
    bytes: int
    shape: list[int]
    first: int
    last: int


@dataclass(frozen=True)
class _SubBuffer:
    """A tensor's part of another buffer, from a byte offset on."""

    buffer: str
    offset: int
    shape: list[int]


@dataclass
class Planner:
    """Goes through the parts in order and writes down steps, programs and the lives of tensors in VTA's memory."""

    graph: Graph
    target: CompileTarget
    searcher: Searcher
    grouped: Sequence[Part]
    aliases: Aliases
    steps: list[dict[str, Any]] = field(default_factory=list)
    chains: list[Linked] = field(default_factory=list)
    lives: dict[str, _Lifetime] = field(default_factory=dict)
    """The buffers with tensors, by name."""
    sub_buffers: dict[str, _SubBuffer] = field(default_factory=dict)
    """The buffers that lie within others, by name."""
    buffer_of: dict[str, str] = field(default_factory=dict)
    """The buffer of each tensor that lies packed in memory."""
    plain: set[str] = field(default_factory=set)
    """Tensors that the processor has as arrays."""
    turned: dict[str, Node] = field(default_factory=dict)
    """Transposes of tensors (N, H, W, C) to (N, C, H, W) that no step needed yet, by output: packing does without."""
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)
    """The contents of VTA's memory that never change, by buffer."""
    _kept_constants: dict[tuple[str, tuple[int, ...], bytes], str] = field(default_factory=dict)
    """The buffer of each constant that layers may share, by its contents."""
    inside: list[str] = field(default_factory=list)
    """Tensors that never lie in memory: only a table on the way to the store reads them, or they are padded."""
    now: int = 0

    def plan(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        self.plain.update(self.graph.inputs)
        for part in self.grouped:
            if part.on_vta:
                self._chain(part)
            else:
                for placement in part.placements:
                    self._processor(placement)
        for name in self.graph.outputs:
            self._make_plain(name)
        return self._manifest()

    # --- steps ---

    def _chain(self, part: Part) -> None:
        self._pack_inputs(part)
        chain = Linked(self.target.accelerator)
        for placement in part.placements:
            self.now += 1
            if placement.layer is None:
                self._without_layer(placement)
                continue
            link = self._layer_link(placement.layer, placement)
            if not chain.has_room(link, placement.layer.tabled):
                self._program(chain)
                chain = Linked(self.target.accelerator)
            chain.add(link, placement)
        self._program(chain)

    def _pack_inputs(self, part: Part) -> None:
        """Let the processor pack tensors that a chain reads and does not make."""
        made = {name for placement in part.placements for name in placement.node.outputs}
        for placement in part.placements:
            layer = placement.layer
            if placement.view:
                self._make_all_packed([name for name in placement.node.inputs if name not in made])
            if layer is not None:
                self._make_all_packed([name for name in layer.reads.values() if name not in made])
            if isinstance(layer, VtaLayer) and layer.fold:
                self._make_folded(layer, layer.fold)

    def _without_layer(self, placement: Placement) -> None:
        """Note where the output of a view or an epilogue lies."""
        node = placement.node
        if not placement.epilogue:
            self._view(placement)
        elif node.inputs[0] not in self.buffer_of:
            self.inside.append(node.inputs[0])

    def _program(self, chain: Linked) -> None:
        """Add a program of layers, and the step that runs it."""
        number = len(self.chains)
        self.chains.append(chain)
        self.constants |= chain.constants
        self.steps.append({"kind": "vta", "name": f"vta {number}", "program": number})

    def _layer_link(self, layer: VtaLayer | TiledLayer, placement: Placement) -> ChainLink:
        return self._tiled_link(layer, placement) if isinstance(layer, TiledLayer) else self._link(layer, placement)

    def _tiled_link(self, layer: TiledLayer, placement: Placement) -> ChainLink:
        assert placement.schedule is not None
        accelerator = self.target.accelerator
        code = layer_code(layer, placement.schedule.knobs, accelerator)
        names = {buffer: self._read(tensor) for buffer, tensor in layer.reads.items()}
        if IDENTITY in code.names:
            names[IDENTITY] = "identity of 1"
            self.constants[names[IDENTITY]] = identity_block(0, accelerator)
        if UNITS in code.names:
            names[UNITS] = "unit blocks"
            self.constants[names[UNITS]] = unit_blocks(accelerator)
        if ROWS in code.names and isinstance(layer.work, Product):
            block = accelerator.parameters.block
            names[ROWS] = self._buffer(f"rows of {layer.node.name}", (1, block, block * layer.work.factors, 1))
        for buffer, array in layer.constants.items():
            names[buffer] = self._constant(f"{buffer} of {layer.node.name}", array)
        return self._located(code, names | self._written(layer))

    def _make_folded(self, layer: VtaLayer, fold: Fold) -> None:
        """Let the processor write a layer's data with columns, or all taps, of the kernel as channels."""
        self.now += 1
        buffer = self._buffer(f"{layer.data} folded for {layer.node.name}", layer.data_shape)
        self._pack_step(f"fold {layer.data}", layer.data, buffer, fold=fold.to_dict())

    def _link(self, layer: VtaLayer, placement: Placement) -> ChainLink:
        assert placement.schedule is not None
        accelerator, parameters = self.target.accelerator, self.target.accelerator.parameters
        name = layer.node.name
        code = layer_code(layer, placement.schedule.knobs, accelerator)
        names = {"wgt": self._constant(f"weights of {name}", pack_weights(layer.weights, parameters))}
        for buffer, array in bias_constants(layer, code, accelerator).items():
            names[buffer] = self._constant(f"{buffer} of {name}", array)
        if layer.fold is None:
            names["inp"] = self._read(layer.data)
        else:
            names["inp"] = f"tensor {layer.data} folded for {layer.node.name}"
            self.lives[names["inp"]].last = self.now
        if layer.skip is not None:
            steps = ", ".join(str(1 << shift) for shift in layer.skip.identities)
            names["identity"] = f"identity of {steps}"
            self.constants[names["identity"]] = identity_blocks(layer.skip, accelerator)
            names["residual"] = self._read(layer.residual)
        return self._located(code, names | self._written(layer))

    def _constant(self, name: str, array: NDArray[Any]) -> str:
        """Keep a constant of VTA's memory, once for all layers that read the same bytes; return its buffer."""
        key = (array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).digest())
        kept = self._kept_constants.setdefault(key, name)
        self.constants[kept] = array
        return kept

    def _located(self, code: Code, names: Mapping[str, str]) -> ChainLink:
        """Return a link whose tensors are at their places in the buffers that they lie in."""
        sub_buffers = {name: self.sub_buffers[buffer] for name, buffer in names.items() if buffer in self.sub_buffers}
        element = self.target.accelerator.parameters.out_element_bytes
        return ChainLink(
            code,
            {**names, **{name: part.buffer for name, part in sub_buffers.items()}},
            {name: part.offset // element for name, part in sub_buffers.items()},
        )

    def _written(self, layer: VtaLayer | TiledLayer) -> dict[str, str]:
        """Return new buffers for the tensors that a layer writes, by the buffers of its code."""
        return {buffer: self._write(tensor) for buffer, tensor in layer.writes.items()}

    def _processor(self, placement: Placement) -> None:
        self.now += 1
        node = placement.node
        if placement.view:
            self._make_all_packed(node.inputs)
            self._view(placement)
            return
        if placement.packed is not None:
            self._on_packed(node, placement.packed)
            return
        for name in node.inputs:
            if name in self.graph.tensors:
                self._make_plain(name)
        if self._turns(node):
            self.turned[node.outputs[0]] = node
            return
        self.plain.update(node.outputs)
        self._cpu_step(node, node.attributes)

    def _turns(self, node: Node) -> bool:
        """Return whether a node makes (N, C, H, W) of an int8 tensor (N, H, W, C)."""
        if node.op != "transpose" or tuple(node.attributes["perm"]) != (0, 3, 1, 2):
            return False
        return node.inputs[0] in self.graph.tensors and self.graph.tensors[node.inputs[0]].dtype == "int8"

    def _on_packed(self, node: Node, attributes: Mapping[str, Any]) -> None:
        """Let the processor compute a node on tensors where they lie in VTA's layout."""
        tensors = [name for name in node.inputs if name in self.graph.tensors]
        self._make_all_packed(tensors)
        self.now += 1
        buffers = {name: self._read(name) for name in tensors}
        buffers[node.outputs[0]] = self._write(node.outputs[0])
        self._cpu_step(node, attributes, packed=buffers)

    def _cpu_step(self, node: Node, attributes: Mapping[str, Any], **more: Any) -> None:
        facts = {"inputs": list(node.inputs), "outputs": list(node.outputs), "attributes": dict(attributes)}
        self.steps.append({"kind": "cpu", "name": node.name, "op": node.op, **facts, **more})

    def _view(self, placement: Placement) -> None:
        """Let the output lie where the inputs lie."""
        self._write(placement.node.outputs[0])

    def _make_all_packed(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self.graph.tensors:
                self._make_packed(name)

    def _make_packed(self, name: str) -> None:
        if name in self.buffer_of:
            return
        self.now += 1
        buffer = self._write(name)
        self._pack_step(f"pack {name}", name, buffer)

    def _pack_step(self, title: str, tensor: str, buffer: str, **more: Any) -> None:
        """Let the processor write a tensor in VTA's layout, from the tensor with its channels last if there is one."""
        if tensor in self.turned:
            tensor, more = self.turned[tensor].inputs[0], {**more, "channels_last": True}
        self.steps.append({"kind": "pack", "name": title, "tensor": tensor, "buffer": buffer, **more})

    def _make_plain(self, name: str) -> None:
        if name in self.plain:
            return
        self.now += 1
        if name in self.turned:
            node = self.turned[name]
            self._cpu_step(node, node.attributes)
            self.plain.add(name)
            return
        buffer = self._read(name)
        shape = list(self.graph.tensors[name].shape)
        self.plain.add(name)
        self.steps.append(
            {"kind": "unpack", "name": f"unpack {name}", "tensor": name, "buffer": buffer, "shape": shape}
        )

    def _read(self, tensor: str) -> str:
        buffer = self.buffer_of[tensor]
        self._live(buffer).last = self.now
        return buffer

    def _write(self, tensor: str) -> str:
        """Return a new buffer for a packed tensor, within that of its root."""
        shape = self.graph.tensors[tensor].shape
        root, offset = self.aliases.of(tensor)
        if root == tensor:
            buffer = self._buffer(tensor, shape)
        else:
            whole, buffer = self._buffer(root, self.graph.tensors[root].shape), f"tensor {tensor}"
            self.sub_buffers[buffer] = _SubBuffer(whole, offset, self.target.layout.shape(shape))
        self.buffer_of[tensor] = buffer
        return buffer

    def _buffer(self, name: str, shape: tuple[int, ...]) -> str:
        """Return the buffer for a packed tensor of this shape, which lives from its first part on."""
        packed = self.target.layout.shape(shape)
        life = self.lives.setdefault(f"tensor {name}", _Lifetime(math.prod(packed), packed, self.now, self.now))
        life.last = self.now
        return f"tensor {name}"

    def _live(self, buffer: str) -> _Lifetime:
        return self.lives[self.sub_buffers[buffer].buffer if buffer in self.sub_buffers else buffer]

    # --- the manifest ---

    def _manifest(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays: dict[str, NDArray[Any]] = {}
        sizes = {name: life.bytes for name, life in self.lives.items()}
        sizes |= {name: array.nbytes for name, array in self.constants.items()}
        programs, layers = [], []
        features: dict[str, bool] = {}
        for number, linked in enumerate(self.chains):
            chain = joined_ahead(linked.links, sizes, self.target.accelerator, self.searcher.twin, self.target.memory)
            program = chain.program
            for name, uses in (("table", uses_table), ("window", uses_window), ("bands", uses_bands)):
                if uses(program.instructions, self.target.accelerator):
                    features[name] = True
            uops = f"micro-ops of vta {number}"
            self.constants[uops] = program.uops
            facts, about = self._program_facts(number, chain, linked, uops, arrays)
            programs.append(facts)
            layers += about
        used = {name: self._constant_part(name, array, arrays) for name, array in self.constants.items()}
        offsets, constant_bytes = one_behind_another({name: array.nbytes for name, array in self.constants.items()})
        lives = [Life(name, life.bytes, life.first, life.last) for name, life in self.lives.items()]
        places, activation_bytes = shared(lives)
        separate, separate_bytes = one_behind_another({life.name: life.bytes for life in lives})
        manifest = {
            "name": self.graph.name,
            "target": self.target.facts() | features,
            "inputs": [_tensor_facts(self.graph.tensors[name]) for name in self.graph.inputs],
            "outputs": [_tensor_facts(self.graph.tensors[name]) for name in self.graph.outputs],
            "memory": {"constants": constant_bytes, "activations": activation_bytes, "separate": separate_bytes},
            "constants": {name: {"part": part, "offset": offsets[name]} for name, part in used.items()},
            "buffers": self._buffers(places, separate),
            "packed": {
                tensor: {"buffer": buffer, "shape": list(self.graph.tensors[tensor].shape)}
                for tensor, buffer in self.buffer_of.items()
            },
            "arrays": self._host_constants(arrays),
            "programs": programs,
            "inside": self.inside,
            "steps": self.steps,
            "layers": layers,
        }
        return manifest, arrays

    def _buffers(self, places: Mapping[str, int], separate: Mapping[str, int]) -> dict[str, dict[str, Any]]:
        """Return the buffers' entries, and those of tensors within them."""
        buffers: dict[str, dict[str, Any]] = {
            name: {"bytes": life.bytes, "shape": life.shape, "offset": places[name], "separate": separate[name]}
            for name, life in self.lives.items()
        }
        for name, part in self.sub_buffers.items():
            buffers[name] = {
                "bytes": math.prod(part.shape),
                "shape": part.shape,
                "offset": places[part.buffer] + part.offset,
                "separate": separate[part.buffer] + part.offset,
                "within": part.buffer,
            }
        return buffers

    def _program_facts(
        self,
        number: int,
        chain: Chain,
        linked: Linked,
        uops: str,
        arrays: dict[str, NDArray[Any]],
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return a program's entry, and one for each of its layers with its share of the twin's cycles."""
        accelerator, program = self.target.accelerator, chain.program
        prefix = f"programs/{number}"
        arrays[f"{prefix}/instructions.npy"] = program.instructions
        relocations = []
        for index, buffer in enumerate(program.buffers):
            part = f"{prefix}/relocations/{index}.npy"
            arrays[part] = buffer.instructions.astype(np.uint32)
            name = uops if buffer.name == "uop" else buffer.name
            relocations.append({"buffer": name, "element_bytes": buffer.element_bytes, "part": part})
        lengths = linked.by_layer(chain.lengths)
        ends = layer_ends(program, lengths, self.searcher.twin, self.target.memory)
        cycles = ends[-1]
        facts = {
            "instructions": f"{prefix}/instructions.npy",
            "count": len(program.instructions),
            "relocations": relocations,
            "cycles": cycles,
            "limit_seconds": _LIMIT_SECONDS + _LIMIT_FACTOR * cycles / accelerator.clock_hz,
        }
        about = []
        for (before, end), placement in zip(itertools.pairwise([0, *ends]), linked.placements, strict=True):
            assert placement.layer is not None and placement.schedule is not None
            about.append(
                {
                    "name": placement.node.name,
                    "program": number,
                    "op": placement.node.op,
                    "macs": self.graph.macs(placement.node),
                    "cycles": end - before,
                    "alone": placement.schedule.cycles,
                    "bound": _bound(placement.layer, accelerator),
                    "residual": RESIDUAL in placement.layer.reads,
                    "residual_cycles": self._residual_cycles(placement),
                    "schedule": placement.schedule.origin,
                    "knobs": dict(placement.schedule.knobs),
                }
            )
        return facts, about

    def _residual_cycles(self, placement: Placement) -> int:
        """Return by how many cycles a layer alone is slower for its residual."""
        layer, schedule = placement.layer, placement.schedule
        if not isinstance(layer, VtaLayer) or not layer.residual or schedule is None:
            return 0
        alone = self.searcher.judge(layer.workload, schedule.knobs, None, schedule.origin, layer.bands)
        return schedule.cycles - alone.cycles

    def _constant_part(self, name: str, array: NDArray[Any], arrays: dict[str, NDArray[Any]]) -> str:
        part = f"memory/{sum(key.startswith('memory/') for key in arrays)}.npy"
        arrays[part] = array
        return part

    def _host_constants(self, arrays: dict[str, NDArray[Any]]) -> dict[str, str]:
        """Return the parts of constants that processor steps read, by name."""
        names = [name for step in self.steps if step["kind"] == "cpu" for name in step["inputs"]]
        wanted = [name for name in dict.fromkeys([*names, *self.graph.outputs]) if name in self.graph.constants]
        for number, name in enumerate(wanted):
            arrays[f"arrays/{number}.npy"] = self.graph.constants[name]
        return {name: f"arrays/{number}.npy" for number, name in enumerate(wanted)}


def _bound(layer: VtaLayer | TiledLayer, accelerator: Accelerator) -> int:
    """Return cycles that no schedule of this layer can beat."""
    if isinstance(layer, TiledLayer):
        return layer.work.micro_ops
    return bound_cycles(layer.workload, accelerator)


def _tensor_facts(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype, "scale": tensor.scale}
