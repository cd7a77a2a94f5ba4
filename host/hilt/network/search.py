"""A schedule for a layer that has none: the twin's best of a bounded search.

The analytic model ranks all configurations that compile; the twin then counts the cycles of the first ones, and of the
neighbours of the best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from hilt.network.bands import Bands, with_bands
from hilt.network.lower_tiles import Tiled, lower_tiles, tile_knobs
from hilt.network.tile_writer import DATA
from hilt.run_choices import CheckLevel
from hilt.schedule import Conv2d, Rejected, convolution, lower
from hilt.schedule.checks import Checks
from hilt.schedule.code import Code, code_of
from hilt.schedule.fused import alone
from hilt.schedule.interleaved import Interleaved, interleaved
from hilt.schedule.residual import Skip, with_residual
from hilt.schedule.tiling import Tiling, TilingProblem
from hilt.simulator.device import MemoryModel
from hilt.simulator.machine import MachineParameters, MachineTwin, timing_of
from hilt.simulator.twin import Twin, TwinStatus
from hilt.tune.model_guided.candidates import candidates_of
from hilt.tune.model_guided.memories import prior_mean
from hilt.tune.problem import TuningProblem
from hilt.vta.accelerator import Accelerator
from hilt.vta.program import Program

_BY_ESTIMATE = 1024
_ROUNDS = 3
_CENTRES = 3
_AS_IT_RUNS = 24
"""Configurations that are counted with their residual and bands, the fastest without that have room for a residual."""
_OF_A_SHAPE = 2
"""The most of these with one shape of tiles."""
_ALTERNATIVES = range(6, 13)
"""How many schedules of a layer are tried beside its neighbours': the least, and more that are within `_SLOWER`."""
_SLOWER = 1.05
_TILE_ALTERNATIVES = 16
_SHAPE = ("tile_b", "tile_h", "tile_w", "oc_nthread", "h_nthread")
"""Knobs that tell a schedule's first and last tiles, which meet those of the layers beside it."""


class NoScheduleError(ValueError):
    """No configuration of a layer fits the accelerator."""


@dataclass(frozen=True)
class Schedule:
    """A layer's knobs, the cycles that the twin counts for it alone, and where the knobs are from."""

    knobs: Mapping[str, int]
    cycles: int
    origin: str


@dataclass
class Searcher:
    """Finds schedules on one accelerator with one memory; a layer asked for twice is searched once."""

    accelerator: Accelerator
    memory: MemoryModel
    machine: MachineParameters | None = None
    """The machine that counts cycles; None is hilt's RTL."""
    _twin: Twin | MachineTwin | None = None
    _known: dict[tuple[Conv2d, Skip | None, Bands | None, Interleaved | None], list[Schedule]] = field(
        default_factory=dict
    )

    @property
    def twin(self) -> Twin | MachineTwin:
        if self._twin is None:
            self._twin = timing_of(self.accelerator, self.machine)
        return self._twin

    def schedule(self, workload: Conv2d, skip: Skip | None) -> Schedule:
        """Return the best schedule of the search. Raises NoScheduleError if no configuration fits the accelerator."""
        return self.schedules(workload, skip)[0]

    def schedules(
        self,
        workload: Conv2d,
        skip: Skip | None,
        bands: Bands | None = None,
        form: Interleaved | None = None,
    ) -> list[Schedule]:
        """Return the best schedules of the search, fastest first, all with other shapes of tiles.

        Raises:
            NoScheduleError: No configuration fits the accelerator.
        """
        key = (replace(workload, name=""), skip, bands, form)
        if key not in self._known:
            self._known[key] = self._search(workload, skip, bands, form)
        return self._known[key]

    def tile_schedule(self, name: str, work: Tiled, bands: Bands | None = None) -> Schedule:
        """Return the best of `tile_schedules`."""
        return self.tile_schedules(name, work, bands)[0]

    def tile_schedules(self, name: str, work: Tiled, bands: Bands | None = None) -> list[Schedule]:
        """Return the best sizes of the tiles of such a layer, fastest first; every size that fits is counted.

        Raises:
            NoScheduleError: No size fits the accelerator.
        """
        fitting: list[dict[str, int]] = []
        programs: list[Program] = []
        for knobs in tile_knobs(work):
            with suppress(Rejected):
                programs.append(self._program(lower_tiles(work, knobs, self.accelerator), None, bands))
                fitting.append(knobs)
        if not programs:
            raise NoScheduleError(f"layer {name}: no tile of it fits {self.accelerator.parameters.name}")
        cycles = self.cycles(programs)
        order = sorted(range(len(cycles)), key=cycles.__getitem__)[:_TILE_ALTERNATIVES]
        return [Schedule(fitting[place], int(cycles[place]), "twin") for place in order if cycles[place] < float("inf")]

    def judge(
        self,
        workload: Conv2d,
        knobs: Mapping[str, int],
        skip: Skip | None,
        origin: str,
        bands: Bands | None = None,
        form: Interleaved | None = None,
    ) -> Schedule:
        """Return a schedule of given knobs with its cycles. Raises Rejected if they do not fit."""
        code = code_of(lower(workload, knobs, self.accelerator), self.accelerator)
        code = interleaved(code, form) if form else code
        cycles = self.cycles([self._program(code, skip, bands)])[0]
        return Schedule(dict(knobs), int(cycles), origin)

    def _search(
        self, workload: Conv2d, skip: Skip | None, bands: Bands | None, form: Interleaved | None
    ) -> list[Schedule]:
        checks: Checks = CheckLevel.STRICT if self.accelerator.hazards == "none" else CheckLevel.COMPILER
        problem = TuningProblem.of(workload, self.accelerator, checks=checks, orders=4, machine=self.machine)
        counted = self._counted_around_the_best(problem)
        ranked = sorted(counted, key=lambda index: counted[index])
        if form is not None:
            ranked = self._interleaved(problem, ranked, form, counted)
        elif skip is not None or bands is not None:
            ranked = self._as_it_runs(problem, ranked, skip, bands, counted)
            if not ranked:
                raise NoScheduleError(
                    f"layer {workload.name}: no tile of it leaves room on chip for the residual; "
                    f"{self.accelerator.parameters.name} has {self.accelerator.parameters.inp_depth} input elements"
                )
        found = _of_other_shapes(problem, [index for index in ranked if counted[index] < float("inf")], counted)
        if not found:
            raise NoScheduleError(f"layer {workload.name}: the twin finishes none of {len(ranked)} configurations")
        return found

    def _counted_around_the_best(self, problem: TuningProblem) -> dict[int, float]:
        """Return cycles by configuration: of the best by the closed-form model, and of the neighbours of the best so.

        Raises:
            NoScheduleError: No configuration compiles.
        """
        candidates = candidates_of(problem)
        if not len(candidates):
            layer = problem.workload.name
            raise NoScheduleError(f"layer {layer}: no tile of it fits {self.accelerator.parameters.name}")
        estimate = candidates.analytic_model.cycles(prior_mean(self.accelerator))
        order = candidates.indices[np.argsort(estimate, kind="stable")]
        counted: dict[int, float] = {}
        self._count(problem, order[:_BY_ESTIMATE].tolist(), counted)
        allowed = set(candidates.indices.tolist())
        for _ in range(_ROUNDS):
            best = sorted(counted, key=lambda index: counted[index])[:_CENTRES]
            around = [int(index) for centre in best for index in problem.space.neighbours(centre)]
            self._count(problem, [index for index in dict.fromkeys(around) if index in allowed], counted)
        return counted

    def _count(self, problem: TuningProblem, indices: list[int], counted: dict[int, float]) -> None:
        """Add the cycles of configurations that are not counted yet."""
        new = np.array([index for index in indices if index not in counted], dtype=np.int64)
        if not len(new):
            return
        cycles = problem.predicted_cycles(new, [self.memory])[:, 0]
        for index, value in zip(new.tolist(), cycles.tolist(), strict=True):
            counted[index] = value if value == value else float("inf")

    def _as_it_runs(
        self,
        problem: TuningProblem,
        ranked: list[int],
        skip: Skip | None,
        bands: Bands | None,
        counted: dict[int, float],
    ) -> list[int]:
        """Return those that have room for the residual, if there is one, fastest first, and count them anew."""
        tiling = Tiling.of(
            TilingProblem.of(convolution(problem.workload), self.accelerator),
            problem.space.columns(np.array(ranked, dtype=np.int64)),
        )
        room = self.accelerator.parameters.inp_depth - tiling.inp_elements * tiling.threads
        needed = 0 if skip is None else tiling.width
        fitting: list[int] = []
        shapes: Counter[tuple[int, ...]] = Counter()
        for index in np.array(ranked)[room >= needed].tolist():
            shape = _shape(problem.space.knobs_at(index))
            program = problem.lowered(index) if shapes[shape] < _OF_A_SHAPE else None
            if program is None:
                continue
            try:
                joined = self._program(code_of(program, self.accelerator), skip, bands)
            except Rejected:
                continue
            counted[index] = self.cycles([joined])[0]
            fitting.append(index)
            shapes[shape] += 1
            if len(fitting) == _AS_IT_RUNS:
                break
        return sorted(fitting, key=lambda index: counted[index])

    def _interleaved(
        self, problem: TuningProblem, ranked: list[int], form: Interleaved, counted: dict[int, float]
    ) -> list[int]:
        """Return those whose tiles have all blocks of one output's channels, fastest first, and count them anew."""
        fitting: list[int] = []
        for index in ranked:
            program = problem.lowered(index) if problem.space.knobs_at(index)["tile_co"] == form.outputs else None
            if program is not None:
                code = interleaved(code_of(program, self.accelerator), form)
                counted[index] = self.cycles([self._program(code, None)])[0]
                fitting.append(index)
            if len(fitting) == _AS_IT_RUNS:
                break
        return sorted(fitting, key=lambda index: counted[index])

    def _program(self, code: Code, skip: Skip | None, bands: Bands | None = None) -> Program:
        if skip is not None:
            code = with_residual(code, skip, self.accelerator)
        if bands is not None:
            code = with_bands(code, bands, DATA)
        return alone(code, dict.fromkeys(code.names, 1 << 20), self.accelerator)

    def cycles(self, programs: list[Program]) -> list[float]:
        """Return the twin's cycles of programs; infinity where one does not finish."""
        predicted = self.twin.predict(programs, self.memory)
        return [
            float(prediction["cycles"]) if prediction["status"] == TwinStatus.DONE else float("inf")
            for prediction in predicted
        ]


def _of_other_shapes(problem: TuningProblem, ranked: list[int], counted: dict[int, float]) -> list[Schedule]:
    """Return the first configurations of `ranked` whose tiles are of a shape that none before them has."""
    found: dict[tuple[int, ...], Schedule] = {}
    for index in ranked:
        if len(found) >= _ALTERNATIVES.start and counted[index] > _SLOWER * counted[ranked[0]]:
            break
        knobs = problem.space.knobs_at(index)
        found.setdefault(_shape(knobs), Schedule(knobs, int(counted[index]), "twin"))
        if len(found) == _ALTERNATIVES.stop - 1:
            break
    return list(found.values())


def _shape(knobs: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(knobs.get(name, 1) for name in _SHAPE)
