"""The end of a quantised model's campaign: its layers measured as the network runs them, the bundle, one inference.

A campaign's trials run each layer by itself, in the form that the network has. Here the fastest schedules of each
layer, and the twin's best, run once more with the network's constants, and the fastest go into bundles. The bundle
whose inference is the fastest on the board is the campaign's, and every tensor of it is compared with the integer
reference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hilt.atomic_write import atomic_write, atomic_write_bytes
from hilt.campaign.numbered_phases import NumberedPhases
from hilt.engine.campaign_results import load_result
from hilt.engine.command_progress import Phases
from hilt.engine.run_files import RunFiles
from hilt.measure.interfaces import Listen
from hilt.network.board_run import BoardRunner, Inferences, target_of
from hilt.network.compile import Compiled, compile_network
from hilt.network.graph import Graph, GraphError
from hilt.network.graph_file import graph_bytes, read_graph
from hilt.network.kept_view import keep_view
from hilt.network.layers import VtaLayer
from hilt.network.network_view import network_view
from hilt.network.onnx_graph import OnnxError
from hilt.network.onnx_import import import_model
from hilt.network.partition import ByNode, Measured, Tuned, form_of, single_layer, tuned_options
from hilt.network.processor_speed import measure_processor
from hilt.network.processor_time import processor_time
from hilt.network.profile import Profile, profile
from hilt.network.random_inputs import random_inputs
from hilt.network.reference import evaluate
from hilt.network.target import CompileTarget, aimed
from hilt.network.verified_inference import verify_inference
from hilt.network.verify import Verified, compare
from hilt.report.campaign_inference import INFERENCE
from hilt.schedule import Workload, convolution, workload_of
from hilt.store import Campaign, Run, Store, Trial
from hilt_runtime import read_bundle
from hilt_runtime.arrays import encode_arrays

BUNDLE = "network.hilt"
GRAPH = "network.graph"
_BEST = 3
"""Schedules of a layer that are measured once more."""
_BUNDLES = (
    ("fastest layers", "each layer's fastest schedule", 1),
    ("layers chosen together", "schedules chosen together", _BEST + 1),
)
"""Two bundles: the words of its phase, those of its choice, and the schedules of a layer among which it chooses."""
_PHASES = 7
_INFERENCES = 2
"""A bundle's inferences: the first is cold."""
_SLOWER = 1.05
"""So many times the best latency alone they may take."""


@dataclass(frozen=True)
class TunedInference:
    """A campaign's bundle, and an inference before and after tuning.

    Attributes:
        path: The bundle.
        network: The network's name.
        board: The board that it ran on.
        before: One inference with the fallback schedules.
        after: One inference of the bundle.
        verified: The comparison of that inference with the reference.
        chosen: Which bundle was the fastest, in words.
        view: The network with the inference, as hilt.network.network_view has it.
        layers: The microseconds of each layer's schedules in the form that the network has, the fastest first.
    """

    path: Path
    network: str
    board: str
    before: Profile
    after: Profile
    verified: Verified
    chosen: str
    layers: Mapping[str, list[float]]
    view: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "bundle": str(self.path),
            "network": self.network,
            "board": self.board,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "verified": asdict(self.verified),
            "chosen": self.chosen,
            "layers": {name: list(times) for name, times in self.layers.items()},
            "view": dict(self.view),
        }


def keep_graph(
    home: Path,
    campaign: Campaign,
    model: Path,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float] | None = None,
) -> str:
    """Keep a quantised model's graph with its campaign, so that any command can end the campaign with a bundle.

    Args:
        home: HILT_HOME.
        campaign: The campaign.
        model: The model's file.
        shapes: Shapes of inputs that the model leaves open.
        values: Inputs that become constants.

    Returns:
        Why there is none; empty if there is one.
    """
    try:
        graph = import_model(model, shapes, values)
    except (OnnxError, GraphError) as error:
        return str(error)
    atomic_write_bytes(RunFiles(home, campaign.uuid).directory / GRAPH, graph_bytes(graph))
    return ""


def has_graph(home: Path, campaign: Campaign) -> bool:
    """Return whether a campaign ends with a bundle."""
    return (home / "runs" / campaign.uuid / GRAPH).is_file()


def tuned_schedules(store: Store, campaign: Campaign, *, most: int = 1, fallback: bool = False) -> Tuned:
    """Return the best knobs of a campaign's layers by shape, or those of its fallback."""
    schedules: dict[Workload, list[Mapping[str, int]]] = {}
    for layer in load_result(store, campaign).layers:
        if layer.run is None or layer.best is None:
            continue
        if fallback:
            trials = [] if layer.fallback is None else [layer.fallback]
        else:
            trials = [layer.best, *_nearly_best(store, layer.run)]
        knobs: list[Mapping[str, int]] = [dict(trial.knobs) for trial in trials]
        if knobs:
            distinct = [values for place, values in enumerate(knobs) if values not in knobs[:place]]
            schedules[convolution(workload_of(layer.run.workload_spec)).schedule_shape] = distinct[:most]
    return schedules


def _nearly_best(store: Store, run: Run) -> list[Trial]:
    """Return a run's verified trials that are at most _SLOWER times as long as the fastest, the fastest first."""
    timed = [(trial.microseconds, trial) for trial in store.trials(run.uuid) if trial.verified and trial.microseconds]
    timed.sort(key=lambda each: (each[0], each[1].ordinal))
    return [trial for latency, trial in timed if latency <= timed[0][0] * _SLOWER]


def end_with_bundle(
    store: Store, campaign: Campaign, board: str, folder: Path, phases: Phases, listen: Listen
) -> TunedInference:
    """Write a campaign's bundle to a folder, run and verify it on the board, and keep the figures.

    `phases` takes each phase with its number and the time left, `listen` the events of the board. Raises the errors of
    compiling and of running on a board.
    """
    home = store.path.parent
    graph = read_graph((home / "runs" / campaign.uuid / GRAPH).read_bytes())
    inputs = random_inputs(graph)
    candidates = tuned_schedules(store, campaign, most=_BEST)
    with BoardRunner(board, listen) as runner:
        stage = NumberedPhases(phases, _PHASES)
        stage.next("the board's processor")
        measure_processor(runner)
        target = aimed(target_of(board), graph, None)

        def compiled(words: str, tuned: Tuned, by_node: ByNode | None = None) -> Compiled:
            stage.next(words)
            placing = stage.counter("placing", "nodes")
            return compile_network(graph, target, tuned, stage.begin, by_node, on_node=placing)

        fallback = compiled("fallback bundle", tuned_schedules(store, campaign, fallback=True))
        stage.next("layers in the network")
        measured = _measure_layers(fallback, candidates, target, runner, stage)
        bundles = {
            chosen: compiled(f"bundle of {words}", candidates, _fastest(measured, most))
            for words, chosen, most in _BUNDLES
        }
        stage.next("inferences")
        before = _profile(graph, fallback, runner, inputs, _INFERENCES)[0]
        runs = {name: _profile(graph, made, runner, inputs, _INFERENCES) for name, made in bundles.items()}
    chosen = min(runs, key=lambda name: runs[name][0].vta)
    after, answer = runs[chosen]
    stage.next("every tensor")
    verified = verify_inference(graph, bundles[chosen].manifest, inputs, answer.arrays, stage)
    atomic_write_bytes(folder / BUNDLE, bundles[chosen].data)
    view = network_view(graph, bundles[chosen].manifest, after, answer.engines)
    keep_view(bundles[chosen].data, view)
    times = {name: [microseconds for microseconds, _ in options] for name, options in measured.items()}
    ending = TunedInference(folder / BUNDLE, graph.name, board, before, after, verified, chosen, times, view)
    with atomic_write(RunFiles(home, campaign.uuid).directory / INFERENCE) as file:
        json.dump(ending.to_dict(), file, indent=1)
        file.write("\n")
    return ending


def _fastest(measured: Mapping[str, Sequence[Measured]], most: int) -> ByNode:
    """Return the knobs of the fastest schedules of each layer."""
    return {name: [knobs for _, knobs in options[:most]] for name, options in measured.items()}


def _measure_layers(
    compiled: Compiled, tuned: Tuned, target: CompileTarget, runner: BoardRunner, phases: Phases
) -> dict[str, list[Measured]]:
    """Return each layer's schedules with their microseconds as the network runs them, fastest first, by node.

    Layers of one form are measured once. A schedule that leaves no room for a residual is left out.
    """
    forms = {form for placement in compiled.placements if (form := form_of(placement)) is not None}
    known: dict[Any, list[Measured]] = {}
    found: dict[str, list[Measured]] = {}
    for placement in compiled.placements:
        form = form_of(placement)
        if form is None:
            continue
        if form not in known:
            phases.counter(placement.node.name, "layers")(len(known), len(forms))
            alone = single_layer(compiled.form, placement.node)
            assert isinstance(placement.layer, VtaLayer)
            options, _ = tuned_options(placement.layer, tuned, target.accelerator)
            known[form] = _measure_layer(alone, options[:_BEST], target, runner)
        if known[form]:
            found[placement.node.name] = known[form]
    return found


def _measure_layer(alone: Graph, options: Any, target: CompileTarget, runner: BoardRunner) -> list[Measured]:
    inputs = random_inputs(alone)
    expected = evaluate(alone, inputs)
    node = alone.nodes[0].name
    measured: dict[str, Measured] = {}
    for knobs in [*options, None]:  # None: the twin's best for this form
        by_node = {} if knobs is None else {node: [knobs]}
        compiled = compile_network(alone, target, {}, by_node=by_node)
        placement = compiled.placements[0]
        if placement.schedule is None or (knobs is not None and placement.schedule.origin != "tuned"):
            continue
        figures, answer = _profile(alone, compiled, runner, inputs)
        compare(answer.arrays, expected, alone)
        chosen = dict(placement.schedule.knobs)
        measured.setdefault(json.dumps(chosen, sort_keys=True), (figures.vta, chosen))
    return sorted(measured.values(), key=lambda each: each[0])


def _profile(
    graph: Graph, compiled: Compiled, runner: BoardRunner, inputs: Mapping[str, Any], repeat: int = 1
) -> tuple[Profile, Inferences]:
    """Run inferences; return the times of one, and the answer with all tensors."""
    bundle = read_bundle(compiled.data, compiled.manifest["name"])
    answer = runner.run(bundle, compiled.data, encode_arrays(inputs, {}), repeat=repeat, keep=True)
    time = processor_time(runner.connection.name, graph, bundle.manifest, answer.engines)
    return profile(bundle.manifest, answer.runs, time), answer
