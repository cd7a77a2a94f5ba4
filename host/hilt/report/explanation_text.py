"""An explanation as text for people, and as plain values for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hilt.report.explanation import Explanation, LoopLine, Prediction, ProgramFacts
from hilt.schedule import giga_operations_per_second
from hilt.simulator.twin import TwinStatus
from hilt.vta.isa import disassemble

_BAR = 32
_SHADES = " ░▒▓█"


def explanation_text(explained: Explanation, *, assembly: bool = False) -> str:
    """Return sections with a heading each, at most 100 columns wide but for the assembly."""
    knobs = " ".join(f"{name}={value}" for name, value in explained.knobs.items())
    sections = [
        [f"{explained.workload.name}, configuration {explained.index}: {knobs}"],
        ["checks", *_verdict_lines(explained)],
        ["loops, outermost first; elements that a loop touches with all inside it", *_loop_lines(explained.loops)],
        ["buffers, in elements", *_occupancy_lines(explained)],
    ]
    if explained.program is not None:
        sections.append(["program", *_program_lines(explained, explained.program)])
    if explained.prediction is not None:
        sections.append(["the twin's prediction", *_prediction_lines(explained, explained.prediction)])
    if assembly and explained.code is not None:
        sections.append(["instructions", *disassemble(explained.code.instructions, explained.accelerator)])
    return "\n\n".join("\n".join([section[0], *(f"  {line}" for line in section[1:])]) for section in sections)


def _verdict_lines(explained: Explanation) -> list[str]:
    return [
        f"{level:9} " + ("accepted" if verdict is None else f"rejected, {verdict[0]}: {verdict[1]}")
        for level, verdict in explained.verdicts.items()
    ]


_KIND_WORDS = {"tile": "for", "thread": "thread", "counted": "GEMM for", "micro_op": "micro-ops"}


def _loop_lines(loops: tuple[LoopLine, ...]) -> list[str]:
    lines = [f"{'':36} {'inp':>10} {'wgt':>10} {'out':>10}"]
    depth = 0
    for loop in loops:
        if loop.extent == 1:
            continue
        words = f"{'  ' * depth}{_KIND_WORDS[loop.kind]} {loop.axis} {loop.extent}"
        ordinals = " ".join(f"{count:>10,}" for count in loop.touched.values())
        lines.append(f"{words:36} {ordinals}")
        depth += 1
    return lines if depth else ["one micro-op"]


def _occupancy_lines(explained: Explanation) -> list[str]:
    lines = []
    for name, (need, limit) in explained.occupancy.items():
        share = need / limit
        over = "  does not fit" if need > limit else ""
        lines.append(f"{name:4} {_bar(share)} {need:>7,} of {limit:,} ({100 * share:.0f}%){over}")
    if explained.weights_resident:
        lines.append("all weights stay on chip and are loaded once")
    if explained.hazard_distance is not None:
        lines.append(f"an accumulator element is updated again after {explained.hazard_distance} micro-ops at least")
    return lines


def _bar(share: float) -> str:
    """Return a bar of _BAR columns; one that is more than full ends in an arrow."""
    full = min(max(round(_BAR * share), 1 if share > 0 else 0), _BAR)
    return f"[{'█' * full}{'·' * (_BAR - full)}{'>' if share > 1 else ']'}"


def _program_lines(explained: Explanation, program: ProgramFacts) -> list[str]:
    lines = [
        f"{program.instructions:,} instructions ({program.instruction_bytes:,} bytes), {program.uops:,} micro-ops",
        *(f"  {name:12} {count:>10,}" for name, count in program.mix.items()),
        "bytes moved",
        *(f"  {name:12} {count:>10,}" for name, count in program.bytes.items()),
    ]
    operations = 2 * explained.accelerator.macs_per_cycle
    balance = operations / explained.accelerator.bytes_per_cycle
    side = "the memory" if program.intensity < balance else "the multipliers"
    words = f"{program.intensity:.1f} operations a byte; this VTA is in balance at {balance:.1f}"
    lines.append(f"{words}, so {side} can be the limit")
    return lines


def _prediction_lines(explained: Explanation, predicted: Prediction) -> list[str]:
    if predicted.status is TwinStatus.NEVER:
        return ["the program never ends: a dependence token is missing"]
    if predicted.status is TwinStatus.FAULT:
        return ["the program faults"]
    gops = giga_operations_per_second(explained.workload, predicted.microseconds)
    lines = [
        f"{predicted.cycles:,} cycles = {predicted.microseconds:,.1f} µs, {gops:.1f} GOP/s, "
        f"{100 * explained.bound_cycles / predicted.cycles:.1f}% of the roofline bound",
        f"{'':8} {'busy':>7} {'starved':>8} {'stalled':>8} {'bytes':>12} {'instructions':>13}",
    ]
    for name, stage in predicted.stages.items():
        busy, starved, stalled = (
            f"{100 * cycles / predicted.cycles:.1f}%" for cycles in (stage.busy, stage.starved, stage.stalled)
        )
        lines.append(f"{name:8} {busy:>7} {starved:>8} {stalled:>8} {stage.bytes:>12,} {stage.instructions:>13,}")
    lines.append("busy over time, from the start of fetch to FINISH:")
    for name, shares in zip(predicted.stages, predicted.occupation, strict=True):
        lines.append(f"{name:8} {''.join(_shade(float(share)) for share in shares)}")
    return lines


def _shade(share: float) -> str:
    """Return the shade of a share of work; any work at all is visible."""
    step = min(round(share * (len(_SHADES) - 1)), len(_SHADES) - 1)
    return _SHADES[max(step, 1) if share > 0 else 0]


def explanation_values(explained: Explanation, *, assembly: bool = False) -> dict[str, Any]:
    """Return the explanation as plain values for JSON."""
    program, predicted = explained.program, explained.prediction
    values: dict[str, Any] = {
        "workload": explained.workload.name,
        "index": explained.index,
        "knobs": dict(explained.knobs),
        "verdicts": {
            level: {"accepted": verdict is None, "reason": verdict[0] if verdict else "", "detail": _detail(verdict)}
            for level, verdict in explained.verdicts.items()
        },
        "loops": [
            {"kind": loop.kind, "axis": loop.axis, "extent": loop.extent, "touched": dict(loop.touched)}
            for loop in explained.loops
        ],
        "occupancy": {name: {"need": need, "limit": limit} for name, (need, limit) in explained.occupancy.items()},
        "hazard_distance": explained.hazard_distance,
        "weights_resident": explained.weights_resident,
        "bound_cycles": explained.bound_cycles,
        "program": program and _program_values(program),
        "prediction": predicted and _prediction_values(predicted),
    }
    if assembly and explained.code is not None:
        values["instructions"] = disassemble(explained.code.instructions, explained.accelerator)
    return values


def _detail(verdict: tuple[str, str] | None) -> str:
    return verdict[1] if verdict else ""


def _program_values(program: ProgramFacts) -> Mapping[str, Any]:
    return {
        "instructions": program.instructions,
        "mix": dict(program.mix),
        "bytes": dict(program.bytes),
        "uops": program.uops,
        "instruction_bytes": program.instruction_bytes,
        "operations_per_byte": program.intensity,
    }


def _prediction_values(predicted: Prediction) -> Mapping[str, Any]:
    return {
        "status": predicted.status.name.lower(),
        "cycles": predicted.cycles,
        "microseconds": predicted.microseconds,
        "stages": {name: vars(stage) for name, stage in predicted.stages.items()},
    }
