"""The pictures of a report."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hilt.report.facts import Facts, RunFacts
from hilt.report.figures import BEST, FAILED, FALLBACK, QUIET, new_figure
from hilt.run_choices import CheckLevel, SpaceName
from hilt.schedule import Reason, space_for
from hilt.schedule.bounds import least_bytes
from hilt.schedule.operator import convolution, workload_of
from hilt.schedule.space import Knob, Space, orders_of
from hilt.schedule.validity_summary import summarize_validity
from hilt.store import Trial
from hilt.trial import Outcome
from hilt.vta.accelerator import Accelerator, IsaRevision, VTAParameters

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LARGEST_PICTURE = 1 << 20
"""Configurations of the largest space that is drawn."""
_COMPILES, _REJECTED = np.array([[205, 219, 232], [244, 244, 246]], dtype=np.uint8)
_MANY = 1500
"""Points from which on a scatter is drawn as an image."""


def pictures(facts: Facts) -> Iterator[tuple[str, str, Figure]]:
    """Yield (name, description, figure) of each picture: the network's first, then each run's.

    Names serve as file names.
    """
    if len(facts.runs) > 1:
        if facts.total_curve:
            yield "network", "The network's latency over the trials of all its layers", network_curve(facts)
        yield "allocation", "Trials that each layer was given", allocation(facts)
    if any(run.best for run in facts.runs):
        yield "roofline", "Roofline: every layer's fallback and best schedule", roofline(facts)
    for place, run in enumerate(facts.runs):
        if run.trials:
            yield f"curve-{place}", f"Latency of each trial of {run.name}", curve(run)
            if run.run.space_size <= LARGEST_PICTURE:
                yield f"space-{place}", f"The space of {run.name}", space_picture(run)


def accelerator_of(facts: RunFacts) -> Accelerator:
    """Return the accelerator of the run's record."""
    run = facts.run
    parameters = VTAParameters.from_name(run.parameters)
    return Accelerator.for_parameters(parameters, IsaRevision(run.isa), clock_hz=run.clock_hz)


def space_of(facts: RunFacts) -> Space:
    """Return the run's space."""
    kind = SpaceName(facts.run.space_kind)
    orders = orders_of(kind, facts.run.orders)
    return space_for(workload_of(facts.run.workload_spec), accelerator_of(facts), orders=orders, kind=kind)


def curve(facts: RunFacts) -> Figure:
    """Draw each trial that counts, the best so far, the fallback and the bound; failures on the axis."""
    figure, axes = new_figure(2.5)
    bound = facts.run.bound_microseconds
    if points := _places(facts.counting):
        ordinals, latencies = zip(*points, strict=True)
        label = "recorded" if facts.recorded else "verified"
        axes.scatter(ordinals, latencies, s=9, color=QUIET, label=label, rasterized=len(points) > _MANY)
        best = _places(facts.best_so_far)
        steps = [*best, (facts.trials[-1].ordinal, best[-1][1])]
        axes.step(*zip(*steps, strict=True), where="post", color=BEST, label="best so far")
        if max(latencies) > 3 * min(latencies):
            _log(axes, "y")
    axes.axhline(bound, color=QUIET, linewidth=1, linestyle="--", label="roofline bound")
    if facts.fallback is not None and facts.fallback.microseconds is not None:
        axes.scatter([facts.fallback.ordinal], [facts.fallback.microseconds], s=36, facecolors="none",
                     edgecolors=FALLBACK, label="fallback")  # fmt: skip
    if failed := [trial.ordinal for trial in facts.failed]:
        axes.plot(failed, [0.02] * len(failed), "|", color=FAILED, label="failed",
                  transform=axes.get_xaxis_transform(), rasterized=len(failed) > _MANY)  # fmt: skip
    axes.set_xlabel("trial")
    _whole_numbers(axes)
    axes.set_ylabel("µs")
    _legend_above(axes)
    return figure


def _places(trials: Sequence[Trial]) -> list[tuple[int, float]]:
    """Return the number and the microseconds of each trial."""
    return [(trial.ordinal, trial.microseconds or 0.0) for trial in trials]


def network_curve(facts: Facts) -> Figure:
    """Draw the milliseconds of the network with the best schedules so far."""
    figure, axes = new_figure(2.4)
    places, totals = zip(*facts.total_curve, strict=True)
    axes.step(places, [total / 1e3 for total in totals], where="post", color=BEST)
    axes.set_xlabel("trials of all layers, in order")
    axes.set_ylabel("ms, all layers")
    if totals[0] > 3 * totals[-1]:
        _log(axes, "y")
    else:
        axes.set_ylim(bottom=0)
    return figure


def allocation(facts: Facts) -> Figure:
    """Draw the trials by layer, verified and not."""
    figure, axes = new_figure(0.9 + 0.24 * len(facts.runs))
    names = [_short_name(run) for run in facts.runs]
    valid = np.array([run.valid for run in facts.runs])
    others = np.array([len(run.trials) for run in facts.runs]) - valid
    rows = np.arange(len(names))
    axes.barh(rows, valid, color=BEST, label="verified")
    axes.barh(rows, others, left=valid, color=FAILED, label="not")
    axes.set_yticks(rows, names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("trials")
    _whole_numbers(axes)
    _legend_above(axes)
    return figure


def roofline(facts: Facts) -> Figure:
    """Draw GOP/s over operations per byte that a layer must move at least.

    The accelerator's peak and its bus are the limits.
    """
    figure, axes = new_figure(3.4)
    shown = [run for run in facts.runs if run.best is not None and run.best.microseconds]
    accelerator = accelerator_of(shown[0])
    parameters = accelerator.parameters
    peak = 2 * parameters.batch * parameters.block**2 * accelerator.clock_hz / 1e9
    bandwidth = accelerator.bytes_per_cycle * accelerator.clock_hz / 1e9
    intensities = [_intensity(run, accelerator) for run in shown]
    reach = np.geomspace(min(*intensities, peak / bandwidth) / 3, max(*intensities, peak / bandwidth) * 3, 60)
    axes.plot(reach, np.minimum(peak, bandwidth * reach), color="black", linewidth=1.2)
    for place, (run, intensity) in enumerate(zip(shown, intensities, strict=True)):
        assert run.best is not None and run.best.microseconds is not None
        top = run.run.gops(run.best.microseconds)
        fallback = run.fallback
        if fallback is not None and fallback.microseconds is not None:
            low = run.run.gops(fallback.microseconds)
            axes.plot([intensity] * 2, [low, top], color=QUIET, linewidth=0.8)
            axes.plot(intensity, low, "o", markersize=4.5, markerfacecolor="white", color=FALLBACK,
                      label=None if place else "fallback")  # fmt: skip
        axes.plot(intensity, top, "o", markersize=4.5, color=BEST, label=None if place else "best")
    _log(axes, "x")
    _log(axes, "y")
    places = 10 ** _spread(np.log10(intensities), np.log10(reach))
    for run, intensity, place in zip(shown, intensities, places, strict=True):
        # A word that stands beside its point has a line to it, and stands above the roof where it is.
        roof, above = (min(peak, bandwidth * x) for x in (intensity, max(intensity, place)))
        axes.annotate(_short_name(run), (intensity, roof), (place, 1.25 * above), rotation=90, ha="center",
                      va="bottom", fontsize=min(7.5, 250 / len(shown)),
                      arrowprops={"arrowstyle": "-", "color": QUIET, "linewidth": 0.5, "relpos": (0.5, 0),
                                  "shrinkA": 0, "shrinkB": 1})  # fmt: skip
    axes.set_ylim(top=1.6 * peak)
    axes.set_xlabel(f"operations per byte to be moved (bus: {bandwidth:g} GB/s, peak: {peak:g} GOP/s)")
    axes.set_ylabel("GOP/s")
    figure.legend(loc="outside upper left", ncols=2)  # above the words, which are as long as layers are called
    return figure


def space_picture(facts: RunFacts) -> Figure:
    """Return the space as a grid: accepted configurations are tinted, measured ones have their latency's colour."""
    figure, axes = new_figure(3.0)
    space = space_of(facts)
    across = _across(space)
    checks = CheckLevel(facts.run.checks)
    found = summarize_validity(workload_of(facts.run.workload_spec), accelerator_of(facts), space, checks)
    width = int(np.prod(space.sizes[:across]))
    grid = (found.verdicts == Reason.OK).reshape(-1, width)
    colours = np.where(grid[..., None], _COMPILES, _REJECTED)
    axes.imshow(colours, aspect="auto", interpolation="nearest", origin="lower",
                extent=(-0.5, width - 0.5, -0.5, len(grid) - 0.5))  # fmt: skip
    axes.grid(visible=False)
    failed = [trial.index for trial in facts.trials if trial.outcome is not Outcome.OK]
    if failed:
        axes.scatter(*_cells(failed, width), s=14, marker="x", linewidths=0.9, color=FAILED, label="failed",
                     rasterized=len(failed) > _MANY)  # fmt: skip
    verified = [trial for trial in facts.trials if trial.verified and trial.microseconds]
    if verified:
        latencies = np.array([trial.microseconds for trial in verified], dtype=np.float64)
        drawn = axes.scatter(*_cells([trial.index for trial in verified], width), s=16, c=np.log10(latencies),
                             cmap="viridis", edgecolors="black", linewidths=0.3,
                             rasterized=len(verified) > _MANY)  # fmt: skip
        bar = figure.colorbar(drawn, ax=axes, pad=0.02, aspect=28)
        ticks = np.linspace(np.log10(latencies.min()), np.log10(latencies.max()), 4).tolist()
        bar.set_ticks(ticks, labels=_tick_labels([10**tick for tick in ticks]))
        bar.set_label("µs")
    if facts.best is not None:
        axes.scatter(*_cells([facts.best.index], width), s=90, marker="*", color="white", edgecolors="black",
                     label="best")  # fmt: skip
    axes.set_xlabel(_knob_names(space.knobs[:across]))
    axes.set_ylabel(_knob_names(space.knobs[across:]))
    axes.set_xticks([])
    axes.set_yticks([])
    _legend_above(axes)
    return figure


def _tick_labels(values: Sequence[float]) -> list[str]:
    """Return labels with as many decimals, at most three, as make different values read differently."""
    for decimals in range(4):
        labels = [f"{value:,.{decimals}f}" for value in values]
        if len(set(labels)) == len(set(values)):
            break
    return labels


def _knob_names(knobs: Sequence[Knob]) -> str:
    """Return the names of the knobs with several values, in lines that fit a small picture."""
    return textwrap.fill(", ".join(knob.name for knob in knobs if len(knob.values) > 1), 34)


def _across(space: Space) -> int:
    """Return the number of first knobs that go across, so that the picture is about as wide as high."""
    widths = np.cumprod(space.sizes.astype(np.float64))
    return int(np.argmin(np.abs(np.log(widths**2 / len(space))))) + 1


def _cells(configurations: list[int], width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the column and row: the first knobs, which turn fastest, go across."""
    indices = np.array(configurations, dtype=np.int64)
    return indices % width, indices // width


def _intensity(facts: RunFacts, accelerator: Accelerator) -> float:
    return 2 * facts.run.macs / least_bytes(convolution(workload_of(facts.run.workload_spec)), accelerator)


def _spread(places: NDArray[np.float64], reach: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places for upright words at these along an axis of this reach.

    Moved apart as far as they need, and no farther than the axis goes.
    """
    gap = float(np.ptp(reach)) * min(0.028, 1 / len(places))
    order = np.argsort(places, kind="stable")
    rightward, leftward = places.copy(), places.copy()
    for before, after in itertools.pairwise(order):
        rightward[after] = max(rightward[after], rightward[before] + gap)
    for after, before in itertools.pairwise(order[::-1]):
        leftward[before] = min(leftward[before], leftward[after] - gap)
    rank = np.argsort(order)
    first, last = reach[0] + gap * rank, reach[-1] - gap * (len(places) - 1 - rank)
    return np.clip((rightward + leftward) / 2, first, last)


def _short_name(facts: RunFacts) -> str:
    """Return `C5` of `resnet18.C5`; for an operator that is spelled out, the name of its first node in the model."""
    short = facts.layer.nodes[0] if ":" in facts.name and facts.layer.nodes else facts.name.rpartition(".")[2]
    return short if len(short) <= 14 else f"…{short[-13:]}"


def _log(axes: Axes, which: str) -> None:
    """Make axis `x` or `y` logarithmic, with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def _whole_numbers(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _legend_above(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[1]:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderaxespad=0.2, handletextpad=0.4,
                    columnspacing=1.2)  # fmt: skip
