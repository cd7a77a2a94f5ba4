"""The end of a run in plain words."""

from __future__ import annotations

from hilt.cli.formatting import knobs_text, latency_text, outcomes_text, short, state_text
from hilt.engine.campaign_results import RunNames
from hilt.measure import DATASET_PREFIX
from hilt.store import DRIFT_TOLERANCE, Run, RunState, Store, Trial, certainty, largest_drift
from hilt.trial import Outcome


def summary_text(store: Store, run: Run, *, running: bool = False) -> str:
    """Return the best configuration, the outcomes of the trials, and the next step.

    `running` is whether an engine still runs it.
    """
    name = short(run.uuid)
    lines = ["", *_trial_lines(store, run), *_best_lines(store, run)]
    if run.state is RunState.FINISHED and run.detail:
        lines.append(f"the tuner's assessment: {run.detail}")
    onward = "" if run.state is RunState.FINISHED else f"; `hilt resume {name}` goes on"
    lines.append(f"run {name}, {state_text(run, running)}: `hilt show {name}` shows it{onward}")
    return "\n".join(lines)


def _trial_lines(store: Store, run: Run) -> list[str]:
    """Return how many trials there are, and their outcomes."""
    summary, recorded = store.summary(run.uuid), _is_recorded(run)
    valid = store.counts(run.uuid).get(Outcome.OK, 0) if recorded else summary.valid
    counted = f"{summary.trials} of {run.budget} trials, {valid} valid{' on record' if recorded else ''}"
    ended_early = run.state is RunState.FINISHED and summary.trials < run.budget
    ending = "; the tuner asked for no more" if ended_early else ""
    lines = [f"{RunNames(store)(run)} on {run.board}: {counted}{ending}"]
    if summary.valid:
        lines.append(
            f"every valid trial's output was compared in full with the reference "
            f"({run.output_elements:,} elements each) and is right"
        )
    for outcome, count, reasons in outcomes_text(store, run):
        if outcome != Outcome.OK:
            lines.append(f"  {count} {outcome}{f': {reasons}' if reasons else ''}")
        elif count > summary.valid and not recorded:
            lines.append(f"  {count - summary.valid} ran but were not compared in full, so they do not count")
    return lines


def _best_lines(store: Store, run: Run) -> list[str]:
    """Return the best configuration, or why there is none."""
    summary = store.summary(run.uuid)
    if _is_recorded(run):
        return _recorded(store, run)
    if not summary.trials:
        return ["no trial was made"]
    best = summary.best
    if best is None or best.microseconds is None:
        return ["no verified configuration was found; more trials or another seed may find one"]
    return [
        f"best: configuration {best.index}: {knobs_text(best.knobs)}",
        f"  {latency_text(run, best.cycles, best.microseconds)}",
        *_measured_again(store, run, best),
    ]


def _is_recorded(run: Run) -> bool:
    """Return whether a dataset, not a board, answered the trials."""
    return run.board.startswith(DATASET_PREFIX)


def _measured_again(store: Store, run: Run, best: Trial) -> list[str]:
    """Return the repeated measurements of the best trial and the board's drift, where latencies vary."""
    confirmed = store.confirmations(run.uuid)
    lines = []
    if best.ordinal in confirmed:
        own = confirmed[best.ordinal]
        times = f"{len(own.latencies)} times in turn with {len(confirmed) - 1} others"
        sure = f"{100 * certainty(confirmed):.1f}% sure that it is within 1% of theirs"
        lines.append(f"  the median, measured again {times} (± {100 * own.spread:.1f}%): {sure}")
    if (drift := largest_drift(store.remeasurements(run.uuid))) > DRIFT_TOLERANCE:
        share = f"{100 * drift:.1f}%"
        lines.append(f"  the board drifted by up to {share} during this run: differences below that say nothing")
    return lines


def _recorded(store: Store, run: Run) -> list[str]:
    """Return the fastest configuration of a run on a dataset: nothing ran, so nothing was compared."""
    lines = ["a dataset answers from records: nothing of this run was verified"]
    fastest = min((trial for trial in store.trials(run.uuid) if trial.microseconds), key=_latency, default=None)
    if fastest is not None and fastest.microseconds is not None:
        lines.append(f"fastest on record: configuration {fastest.index}: {knobs_text(fastest.knobs)}")
        lines.append(f"  {latency_text(run, fastest.cycles, fastest.microseconds)}")
    return lines


def _latency(trial: Trial) -> float:
    return trial.microseconds or float("inf")
