"""The steps of the selftest, from SSH to ten layers; each gives one check as soon as it is done."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from hilt.link.agent import AgentConnection
from hilt.link.deadline import Deadline
from hilt.link.errors import RefusedError
from hilt.measure.board_description import BoardTarget
from hilt.measure.board_measurer import BoardMeasurer
from hilt.measure.canary import make_canary
from hilt.measure.connection import program_board, who
from hilt.measure.doctor import check_board
from hilt.measure.interfaces import Request
from hilt.measure.selftest import programs
from hilt.measure.selftest.layers import SelftestLayer, choose_layer
from hilt.measure.selftest.memory import MemoryFit, fit_memory, load_requests, store_requests
from hilt.trial import Outcome, Result

LAYERS = tuple(f"resnet18.C{number}" for number in range(2, 12))
_TOLERANCE = 0.02
"""Between a figure of the board and the one expected, relative."""
_LONGEST_DISTANCE = 6
_FRESH_TENSORS = 6
_CLOCK_ROUNDS = (1_000_000, 4_000_000)
_DRIFT_ROUNDS = 200_000
_FEWEST_DRIFT_RUNS = 5
CLOCK_SHARES = (0.5, 0.75, 1.0)
"""Shares of the bitstream's clock. It is never driven faster than it was built for."""
_CLOCK_SECONDS = 300.0


@dataclass(frozen=True)
class SelftestSettings:
    """The extent of the selftest."""

    minutes: float = 5.0
    """Minutes for the drift, on a board whose latencies may move."""
    layers: Sequence[str] = LAYERS


@dataclass(frozen=True)
class Check:
    """One step: whether the board is as it should be, a line for people, and the figures behind it."""

    name: str
    well: bool
    text: str
    figures: Mapping[str, float] = field(default_factory=dict)


class _Bench:
    """A board that runs requests one after another, under keys of their own."""

    def __init__(self, measurer: BoardMeasurer) -> None:
        self.description = measurer.description
        self.accelerator = measurer.description.accelerator
        self._measurer = measurer
        self._run = uuid.uuid4().hex
        self._next = 0

    @property
    def time_scale(self) -> float:
        """Return wall seconds for each second of the device; 1 on a real board."""
        connected = self._measurer.connection.connected
        return 1.0 if connected is None else float(connected.agent.welcome.time_scale)

    def run(self, requests: Sequence[Request]) -> list[Result]:
        """Return the results in the order of the requests."""
        numbered = []
        for request in requests:
            numbered.append(replace(request, ordinal=self._next, key=f"{self._run}/{self._next}/0"))
            self._next += 1
        results: dict[int, Result] = {}
        self._measurer.measure(numbered, results.__setitem__)
        return [results[request.ordinal] for request in numbered]

    def cycles(self, result: Result) -> float:
        """Return the latency in cycles, by the counter or by the wall clock where there is none."""
        if result.cycles is not None:
            return float(result.cycles)
        return (result.microseconds or 0.0) * self.description.clock_hz / 1e6


def selftest(
    target: BoardTarget, settings: SelftestSettings, keep: Callable[[MemoryFit], object] = lambda fit: None
) -> Iterator[Check]:
    """Yield the checks as they are made; the first that makes the rest impossible is the last.

    Args:
        target: The board. It is released by the caller.
        settings: How much is done.
        keep: Called with the memory that was found, where it explains the measurements.

    Raises:
        LinkError: The board cannot be opened although its checks were well.
    """
    well = True
    for finding in check_board(target):
        well = well and finding.well
        yield Check(finding.what, finding.well, finding.found if finding.well else f"{finding.found}; {finding.mend}")
    if not well:
        return
    yield from (Check(*figures) for figures in check_clocks(target))
    measurer = BoardMeasurer.open(target, lambda event: None)
    try:
        bench = _Bench(measurer)
        fit = None
        for check in (_buffers, _coherency, _hazards):
            yield check(bench)
        memory, fit = _memory(bench)
        if fit is not None and target.manifest.identity is None:
            memory, fit = _of_another_design(memory), None
        yield memory
        if fit is not None and memory.well:
            keep(fit)
        yield _clock_truth(bench)
        yield _drift(bench, settings.minutes * 60.0)
        for name in settings.layers:
            yield _layer(bench, choose_layer(name, bench.accelerator, fit))
    finally:
        measurer.close()


def _buffers(bench: _Bench) -> Check:
    """Use every element of every buffer."""
    makers = {
        "input": programs.input_depth,
        "weight": programs.weight_depth,
        "micro-op": programs.micro_op_depth,
        "accumulator": programs.accumulator_depth,
    }
    results = bench.run([make(bench.accelerator) for make in makers.values()])
    bad = _bad(dict(zip(makers, results, strict=True)))
    parameters = bench.accelerator.parameters
    depths = {
        "input": float(parameters.inp_depth),
        "weight": float(parameters.wgt_depth),
        "micro_op": float(bench.accelerator.uop_depth),
        "accumulator": float(parameters.acc_depth),
    }
    full = ", ".join(f"{name} {depth:,.0f}" for name, depth in depths.items())
    return Check("buffer depths", not bad, bad or f"every element holds its value: {full}", depths)


def _coherency(bench: _Bench) -> Check:
    """Send fresh tensors through the same buffers: a stale line of a cache shows as an old value."""
    results = bench.run([programs.input_depth(bench.accelerator, seed) for seed in range(_FRESH_TENSORS)])
    bad = _bad({f"tensor {seed}": result for seed, result in enumerate(results)})
    return Check("coherency", not bad, bad or f"{_FRESH_TENSORS} fresh tensors were read as they were written")


def _hazards(bench: _Bench) -> Check:
    """Find the shortest distance from which on sums are right; with the interlock it is 1."""
    distances = list(range(1, _LONGEST_DISTANCE + 1))
    results = bench.run([programs.chained_sums(bench.accelerator, distance) for distance in distances])
    wrong = [distance for distance, result in zip(distances, results, strict=True) if result.outcome is not Outcome.OK]
    shortest = max(wrong, default=0) + 1
    interlocked = bench.accelerator.hazards == "interlock"
    text = f"sums are right from a distance of {shortest} micro-op{'s' if shortest > 1 else ''} on"
    if interlocked and shortest > 1:
        text += "; the manifest says that the bitstream waits for hazards, but it does not"
    well = shortest <= _LONGEST_DISTANCE and (shortest == 1 or not interlocked)
    return Check("hazard distance", well, text, {"distance": float(shortest)})


def _memory(bench: _Bench) -> tuple[Check, MemoryFit | None]:
    """Load and store blocks of growing size, and find the memory that takes as long."""
    loads, stores = load_requests(bench.accelerator), store_requests(bench.accelerator)
    results = bench.run([*loads, *stores])
    bad = _bad({f"program {number}": result for number, result in enumerate(results)})
    if bad:
        return Check("memory", False, bad), None
    cycles = [bench.cycles(result) for result in results]
    fit = fit_memory(bench.accelerator, cycles[: len(loads)], cycles[len(loads) :])
    figures = {
        "read_latency": float(fit.read_latency),
        "write_latency": float(fit.write_latency),
        "bytes_per_cycle": fit.bytes_per_cycle,
        "error": fit.error,
    }
    rate = fit.bytes_per_cycle * bench.description.clock_hz / 1e6
    text = (
        f"read latency {fit.read_latency} cycles, write latency {fit.write_latency} cycles, "
        f"{fit.bytes_per_cycle:.2f} bytes a cycle ({rate:,.0f} MB/s); {100 * fit.error:.1f} % off at most"
    )
    return Check("memory", fit.error <= 5 * _TOLERANCE, text, figures), fit


def _of_another_design(memory: Check) -> Check:
    """Return the check without a verdict: the timing model whose latencies it names is that of hilt's own RTL."""
    return replace(memory, well=True, text=f"{memory.text}; no calibration: the bitstream is not hilt's own RTL")


def _clock_truth(bench: _Bench) -> Check:
    """Compare cycles with the wall clock between a short and a long run."""
    if bench.time_scale != 1.0:
        return Check("clock", True, "simulated: its cycles take no certain time on the wall")
    short, long = bench.run([programs.long_run(bench.accelerator, rounds) for rounds in _CLOCK_ROUNDS])
    bad = _bad({"short run": short, "long run": long})
    if bad:
        return Check("clock", False, bad)
    counted = (bench.cycles(long) - bench.cycles(short)) / bench.description.clock_hz
    wall = long.seconds["run"] - short.seconds["run"]
    off = wall / counted - 1.0
    text = f"{counted:.3f} s by its cycles took {wall:.3f} s on the wall ({100 * off:+.2f} %)"
    return Check("clock", abs(off) <= _TOLERANCE, text, {"off": off})


def _drift(bench: _Bench, seconds: float) -> Check:
    """Run the same program for so long, or a few times on a board that is the same every time."""
    request = programs.long_run(bench.accelerator, _DRIFT_ROUNDS)
    end = time.monotonic() + (0.0 if bench.description.deterministic else seconds)
    cycles: list[float] = []
    while len(cycles) < _FEWEST_DRIFT_RUNS or time.monotonic() < end:
        (result,) = bench.run([request])
        if result.outcome is not Outcome.OK:
            return Check("drift", False, f"run {len(cycles)}: {result.outcome} ({result.reason})")
        cycles.append(bench.cycles(result))
    off = (max(cycles) - min(cycles)) / median(cycles)
    text = f"{len(cycles)} runs of one program within {100 * off:.2f} % of each other"
    return Check("drift", off <= _TOLERANCE, text, {"off": off, "runs": float(len(cycles))})


def _layer(bench: _Bench, layer: SelftestLayer) -> Check:
    """Run one layer, compare every element, and its cycles with the timing model at the memory that was found."""
    (result,) = bench.run([layer.request])
    bad = _bad({layer.name: result})
    if bad:
        return Check(f"layer {layer.name}", False, bad)
    cycles = bench.cycles(result)
    text = f"every element is right, {cycles:,.0f} cycles"
    if layer.predicted is None:
        return Check(f"layer {layer.name}", True, text, {"cycles": cycles})
    off = layer.predicted / cycles - 1.0
    figures = {"cycles": cycles, "predicted": layer.predicted, "off": off}
    return Check(f"layer {layer.name}", True, f"{text}, predicted {layer.predicted:,.0f} ({100 * off:+.1f} %)", figures)


def _bad(results: Mapping[str, Result]) -> str:
    """Return which of the named results are not right, and why; empty where all are."""
    bad = {name: result for name, result in results.items() if result.outcome is not Outcome.OK}
    return "; ".join(f"{name}: {result.outcome} ({result.reason})" for name, result in bad.items())


def check_clocks(target: BoardTarget) -> Iterator[tuple[str, bool, str]]:
    """Run the canary at rising clocks, up to the bitstream's.

    Yields a name, whether all is well, and a line for people. Raises LinkError if the board cannot be opened.
    """
    manifest = target.manifest
    if target.virtual or manifest.fclk_hz:
        why = "a virtual board has one clock" if target.virtual else "the design makes its clock by a PLL of its own"
        yield "canary at rising clocks", True, f"well at {manifest.clock_hz / 1e6:g} MHz; {why}"
        return
    bitstream = target.bitstream()
    digest = hashlib.sha256(bitstream).hexdigest()
    canary = make_canary(target.description.accelerator, digest)
    deadline = Deadline(_CLOCK_SECONDS)
    results: list[str] = []
    well = True
    with AgentConnection.open(target.endpoint(), f"{who()}, hilt boards selftest"[:200], deadline) as agent:
        program_board(agent.client, target, bitstream, deadline)
        for share in CLOCK_SHARES:
            slower = replace(manifest, clock_hz=round(manifest.clock_hz * share))
            try:
                agent.client.program(digest, slower, deadline, canary.trial, canary.code)
                results.append(f"{slower.clock_hz / 1e6:g} MHz well")
            except RefusedError as error:
                well = well and (error.code == "bitstream_refused" and share < 1.0)
                results.append(f"{slower.clock_hz / 1e6:g} MHz: {error}")
    yield "canary at rising clocks", well, "; ".join(results)
