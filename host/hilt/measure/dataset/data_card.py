"""The data card of an exported dataset: its origin, its fields, and its limits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hilt.measure.dataset.dataset import Dataset
from hilt.measure.dataset.recorded_space import is_imported, values_of

_FORMS = {
    "csv": "CSV with a header: a column for each knob, then `outcome`, `reason` (a word, or empty) and `microseconds`, "
    "which is empty unless the outcome is ok.",
    "kerneltuner": "Kernel Tuner's cache, schema 1.0.0: `time` is in milliseconds, or CompilationFailedConfig "
    "(rejected by the compiler) or RuntimeFailedConfig (failed on the board).",
}
_OWN_LIMITS = """- Latencies are cycles of hilt's timing model at the nominal clock. No board measured them.
- They have no noise.
- Whether an answer is right follows from rules that a sample on the RTL and the golden model checked (above).
- One workload and one memory: an optimum here says little about another layer.
- Licence: Apache 2.0, as hilt."""
_IMPORTED_LIMITS = (
    "- hilt took the records over as they were. Their origin and licence are those of the file that was imported."
)


def data_card(dataset: Dataset, form: str) -> str:
    """Return the card as Markdown."""
    knobs = values_of(dataset)
    valid = int(dataset.valid.sum())
    best = f"{dataset.optimum:,.3f} µs, {_near(dataset)} configurations within 1 %" if valid else "none"
    rows = "\n".join(f"| {name} | {', '.join(map(str, values))} |" for name, values in knobs.items())
    counts = "\n".join(f"- {outcome}: {count:,}" for outcome, count in dataset.counts().items())
    limits = _IMPORTED_LIMITS if is_imported(dataset) else _OWN_LIMITS
    return f"""# {dataset.name}

{_origin(dataset)}

**Form.** {_FORMS[form]}

**Space.** {len(dataset):,} configurations, {valid:,} valid; best {best}.

| knob | values |
|---|---|
{rows}

**Outcomes.**
{counts}

**Limits.**
{limits}

**Use.** `hilt dataset import FILE` reads it back, and `hilt dataset replay` runs tuners on it.
"""


def _origin(dataset: Dataset) -> str:
    made: dict[str, Any] = dataset.metadata["made"]
    when = datetime.fromtimestamp(made["at"], UTC).date()
    identity = dataset.identity
    if is_imported(dataset):
        told = identity["imported"]
        return f"Imported on {when}: device {told['device'] or 'not named'}, kernel {told['kernel'] or 'not named'}."
    subject = dataset.metadata["subject"]
    board = subject.get("board_model", "of hilt 0.1")
    memory = identity["memory"]
    check = dataset.metadata.get("check", {})
    checked = "; ".join(
        f"{model}: {check[model]['outcome']} of {check[model]['run']} outcomes differ"
        for model in ("rtl", "golden")
        if model in check
    )
    return (
        f"Every configuration of {subject['workload'].get('name', 'a workload')} at checks {subject['checks']} "
        f"on board model {board}: VTA {identity['parameters']}, ISA {identity['isa']}, "
        f"{identity['clock_hz'] / 1e6:g} MHz, "
        f"bus of {identity['bus_bits']} bits, read latency {memory['read_latency']} cycles. Made on {when} by hilt "
        f"{made['hilt']} {made['commit']}. Sample: {checked or 'none'}."
    )


def _near(dataset: Dataset) -> int:
    return int((dataset.microseconds <= 1.01 * dataset.optimum).sum())
