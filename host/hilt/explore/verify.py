"""Runs compiled designs on the Verilated RTL, and compares cycles and every tensor with the prediction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hilt.atomic_write import atomic_write
from hilt.explore.design import Design, compiling_apart
from hilt.explore.inference import compiled_for, load_batched, target_of
from hilt.explore.subject import Subject
from hilt.network.random_inputs import random_inputs
from hilt.network.reference import evaluate
from hilt.network.search import Searcher
from hilt.network.simulated import SimulatedVta
from hilt.network.verify import WrongTensorError, compare, inside_of
from hilt.schedule import lower, make_tensors
from hilt.simulator.build import design_key, quick_build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt_runtime import InferenceError, Network, read_bundle

_SEED = 1


@dataclass(frozen=True)
class DesignVerification:
    """A design's programs on the RTL, beside the prediction."""

    name: str
    """The network, or one of its layers."""
    status: str
    """`done`, or how the RTL ended."""
    predicted_cycles: int
    rtl_cycles: int
    output_is_right: bool

    @property
    def agrees(self) -> bool:
        """Return whether the RTL took exactly the predicted cycles and every tensor is the reference's."""
        return self.status == "done" and self.output_is_right and self.predicted_cycles == self.rtl_cycles

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"agrees": self.agrees}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DesignVerification:
        """Return the verification that `to_dict` described."""
        return cls(**{name: value for name, value in values.items() if name != "agrees"})


Progress = Callable[[int, int, "tuple[Design, DesignVerification] | None"], None]
"""Called with (designs run, all of them, the newest with its result)."""


def verify(
    subject: Subject, designs: Sequence[Design], folder: Path, executor: Executor,
    progress: Progress = lambda done, total, newest: None,
) -> list[DesignVerification]:  # fmt: skip
    """Run a network on the RTL of designs and return each one's result, in order.

    Those that agreed before are read from `folder`; the others run, and are kept there if they agree.
    Raises MissingToolError, BuildError.
    """
    files = [folder / f"{_key(subject, design)[:32]}.json" for design in designs]
    shown = {place: known for place, file in enumerate(files) if (known := _read(file))}
    progress(len(shown), len(designs), None)
    waiting = [place for place in compiling_apart(designs) if place not in shown]
    pending = {executor.submit(verify_design, subject, designs[place]): place for place in waiting}
    for future in as_completed(pending):
        place = pending[future]
        shown[place] = future.result()
        if shown[place].agrees:
            with atomic_write(files[place]) as file:
                json.dump(shown[place].to_dict(), file)
        progress(len(shown), len(designs), (designs[place], shown[place]))
    return [shown[place] for place in range(len(designs))]


def verify_design(subject: Subject, design: Design) -> DesignVerification:
    """Run a network on the RTL of a design, and return both cycle counts.

    The RTL is compiled on first use, which takes a minute or more. Raises MissingToolError, BuildError.
    """
    if subject.graph is None:
        return _verify_layers(subject, design)
    graph, compiled = compiled_for(subject.graph, design)
    predicted = sum(program["cycles"] for program in compiled.manifest["programs"])
    inputs = random_inputs(graph)
    with SimulatedVta(target_of(design), "rtl") as device:
        try:
            inference = Network(read_bundle(compiled.data, subject.name), device, keep=True).run(inputs)
        except InferenceError as error:
            return DesignVerification(subject.name, error.outcome, predicted, 0, False)
    cycles = sum(step.cycles or 0 for step in inference.steps)
    try:
        expected = evaluate(graph, inputs, inference.tensors)
        compare(inference.tensors, expected, graph, inside_of(compiled.manifest))
    except WrongTensorError:
        return DesignVerification(subject.name, "done", predicted, cycles, False)
    return DesignVerification(subject.name, "done", predicted, cycles, True)


def _verify_layers(subject: Subject, design: Design) -> DesignVerification:
    """Run each layer of a table on the RTL, and return the sums; the first that does not end ends it."""
    predicted = cycles = 0
    right = True
    searcher = Searcher(design.accelerator, design.memory)
    for text, _ in subject.layers:
        workload = load_batched(text, design.parameters.batch)
        schedule = searcher.schedule(workload, None)
        program = lower(workload, schedule.knobs, design.accelerator)
        tensors = make_tensors(workload, design.accelerator, seed=_SEED)
        library, limit = quick_build(design.accelerator, "rtl"), 4 * schedule.cycles + 10_000
        run = run_program(library, program, tensors.inputs, memory=design.memory, max_cycles=limit)
        if run.execution.status is not DeviceStatus.DONE:
            return DesignVerification(
                text, run.execution.status.name.lower(), schedule.cycles, run.execution.cycles, False
            )
        predicted, cycles = predicted + schedule.cycles, cycles + run.execution.cycles
        right = right and bool(np.array_equal(run.output, tensors.expected.ravel()))
    return DesignVerification(subject.name, "done", predicted, cycles, right)


def _key(subject: Subject, design: Design) -> str:
    """Return a digest of everything that decides the RTL's result, its sources among it."""
    facts = {
        "design": design.to_dict() | {"name": ""},
        "network": subject.key,
        "rtl": design_key(design.accelerator, "rtl"),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> DesignVerification | None:
    """Return the kept verification; None where there is none, or it cannot be read and is made again."""
    try:
        return DesignVerification.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None
