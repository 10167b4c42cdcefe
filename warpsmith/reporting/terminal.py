"""Terminal tables of a report, a verdict and a tuning; short, for people and agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from warpsmith.campaign.calibration import calibrate
from warpsmith.campaign.history import stopping
from warpsmith.core import trust
from warpsmith.core.campaign import Manifest, RoundRecord
from warpsmith.core.evaluation import BEST, REFERENCE, Energy, Evaluation, Status, WorkloadResult
from warpsmith.lab.tuning.models import Tuning
from warpsmith.reporting import facts, format

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

MAX_WORKLOADS = 12
"""Largest number of workloads in a verdict; failed ones come first, then the slowest against the best."""

_LONG_STEP = 0.05
"""Share of a judgement's time from which a step is named."""

_PIPE_WIDTH = 200
"""Width of a table if stdout is not a terminal, so that nothing is truncated."""


def verdict_table(evaluation: Evaluation, path: str | None = None) -> RenderableType:
    """Return one row for each workload, then the decision and the path of the whole verdict."""
    sides = facts.timed_sides(evaluation)
    joules = ("joules", "vs best in joules") if evaluation.energy else ()
    table = _table(
        "workload", "status", "time", *(f"vs {side}" for side in sides), "ceiling", "error/bound", *joules
    )
    results = sorted(evaluation.results, key=_urgency)[:MAX_WORKLOADS]
    for result in results:
        table.add_row(*map(_cell, (*_workload(result, sides), *_joules(result, evaluation.energy))))
    if evaluation.aggregates:
        means = (format.speedup(evaluation.aggregate(side)) for side in sides)
        share = format.percent(facts.mean_ceiling_share(evaluation))
        saved = ("", format.speedup(evaluation.energy.aggregate)) if evaluation.energy else ()
        table.add_row(*map(_cell, (facts.mean_name(evaluation.aggregates), "", "", *means, share, "", *saved)))
    return Group(Wide(table), *(Text(line) for line in _below(evaluation, len(results), path)))


def tuning_table(tuning: Tuning, path: str) -> RenderableType:
    """Return one row for each tried configuration, then the result and the path of the record."""
    table = _table("for", "configuration", "step", "time", "vs hand-picked", "note")
    for attempt in tuning.tried:
        config = ", ".join(f"{name} {value}" for name, value in attempt.config.items())
        speedup = format.factor(attempt.speedup) + (
            f" {format.interval(attempt.interval)}" if attempt.interval else ""
        )
        cells = (attempt.condition, config, attempt.step, format.seconds(attempt.seconds), speedup, attempt.note)
        table.add_row(*map(_cell, cells))
    footer = (
        f"{len(tuning.tried)} tried in {format.seconds(tuning.seconds)} on {tuning.device}, "
        f"{tuning.pruned} pruned by the conditions, {tuning.left} not reached",
        f"written: {tuning.written}; the gate decides: `warpsmith judge {tuning.written}`"
        if tuning.written
        else "nothing beats the hand-picked table beyond the noise: no version was written",
        path,
    )
    return Group(Wide(table), *(Text(format.plain(line, 300)) for line in footer))


def print_report(
    console: Console, manifest: Manifest, rounds: Sequence[RoundRecord], final: Evaluation | None = None
) -> None:
    """Print the report's headline and its table of versions; `final` is the best version's final race."""
    for line in _headline(manifest, rounds, final):
        console.print(Text(format.plain(line)))
    if not rounds:
        return
    table = _table("round", "version", "verdict", "change", "predicted", "measured", "vs reference", "ceiling")
    for record in rounds:
        table.add_row(*map(_cell, _version(record)))
    console.print(Wide(table))
    for line in _lessons(rounds):
        console.print(Text(format.plain(line)))
    for sentence in facts.not_measured(manifest, rounds, final):
        console.print(Text(format.plain(f"not measured: {sentence}")))


def _headline(manifest: Manifest, rounds: Sequence[RoundRecord], final: Evaluation | None) -> Iterator[str]:
    best, evaluation = facts.best_round(rounds), facts.reported_evaluation(rounds, final)
    counts = f"{format.count_noun(len(rounds), 'round')}, {len(facts.rolled_back_rounds(rounds))} rolled back"
    counts += f", {len(struck)} struck" if (struck := facts.struck_rounds(rounds)) else ""
    by = ", by energy" if manifest.objective == "energy" else ""
    yield f"{manifest.target_op} on {manifest.target}{by}: {manifest.campaign}, {counts}"
    if manifest.port:
        yield "a port campaign: versions were interpreted and compiled, and no version is accepted by it"
        if best is not None:
            yield f"passed last: {best.solution} (round {best.round}): {best.evaluation.decision.reason}"
            yield f"trust {trust.full_text(best.evaluation.trust)}"
        return
    if best is None or evaluation is None:
        yield "No version was accepted."
        return
    share = facts.mean_ceiling_share(evaluation)
    device = evaluation.provenance.machine.device
    yield f"best: {best.solution} (round {best.round}), {format.percent(share)} of the roofline on {device}"
    if trust.missing(evaluation.trust):
        yield f"trust {trust.full_text(evaluation.trust)}"
    for side in facts.headline_sides(manifest):
        mean = evaluation.aggregate(side)
        yield f"over {facts.side_name(side)}: {format.speedup(mean) if mean else 'not measured for this version'}"
    if stop := stopping.recorded_stop(manifest, rounds):
        yield f"done: {stop}"
    calibration = calibrate(rounds)
    if calibration.median_error is not None:
        error, within = format.percent(calibration.median_error), format.percent(calibration.within_2x)
        yield f"predictions: off by {error} in the median, {within} within a factor of two"
    if total := facts.total_spent(rounds):
        each = facts.usd_per_percent(rounds)
        yield f"cost: {total.text}" + (f"; {format.dollars(each)} a percent of accepted gain" if each else "")


def _lessons(rounds: Sequence[RoundRecord]) -> Iterator[str]:
    """Yield what was rolled back or struck with the reasons, and what was learned."""
    for record in facts.rolled_back_rounds(rounds):
        yield f"rolled back: round {record.round}, {record.solution}: {record.evaluation.decision.reason}"
    for record in rounds:
        if record.struck:
            yield f"struck: round {record.round}, {record.solution}: {record.struck.reason}"
    for record in rounds:
        lesson = record.lesson
        if lesson.action != "nothing":
            yield f"learned: round {record.round}, {lesson.action} {lesson.entry}: {lesson.reason}"


def _version(record: RoundRecord) -> tuple[str, ...]:
    evaluation = record.evaluation
    return (
        str(record.round),
        record.solution,
        facts.verdict_text(record),
        record.plan.category,
        format.gain(record.plan.predicted_gain),
        format.gain(record.outcome.gain),
        format.speedup(evaluation.aggregate(REFERENCE)),
        format.percent(facts.mean_ceiling_share(evaluation)),
    )


def _workload(result: WorkloadResult, sides: Sequence[str]) -> tuple[str, ...]:
    timing = result.timing
    return (
        result.workload,
        result.status,
        format.seconds(timing.seconds if timing else None),
        *(format.speedup(timing.against(side) if timing else None) for side in sides),
        format.percent(timing.ceiling_share if timing else None),
        format.share_of_bound(result.correctness.worst if result.correctness else None),
    )


def _joules(result: WorkloadResult, energy: Energy | None) -> tuple[str, ...]:
    """Return joules of a call and the saving; empty if energy is not the objective."""
    if energy is None:
        return ()
    read = energy.workloads.get(result.workload)
    if read is None:
        return (format.ABSENT, format.ABSENT)
    saved = f"{format.factor(read.saving)} {format.interval(read.interval)}" if read.interval else format.ABSENT
    return (format.joules(read.joules), saved)


def _below(evaluation: Evaluation, shown_count: int, path: str | None) -> Iterator[str]:
    if hidden := len(evaluation.results) - shown_count:
        yield f"and {format.count_noun(hidden, 'more workload')}"
    failed = next((r for r in evaluation.results if r.status is not Status.PASSED), None)
    if failed:
        yield format.plain(f"{failed.workload}: {failed.message}")
    for step in evaluation.steps:
        if step.state in ("noted", "skipped"):
            yield format.plain(f"{step.name} {step.state}: {'; '.join(step.notes)}", 200)
    for side, reason in evaluation.absent.items():
        yield format.plain(f"{side} was not timed: {reason}", 200)
    if evaluation.unseen:
        yield f"unseen shapes: {facts.unseen_text(evaluation)}"
    if trust.missing(evaluation.trust):
        yield format.plain(f"trust {trust.full_text(evaluation.trust)}", 300)
    origin = evaluation.provenance
    if origin.context:
        job = f", node {origin.node}, Slurm job {origin.slurm_job}" if origin.slurm_job else ""
        yield format.plain(f"judged on {origin.context}: {origin.machine.device}{job}")
    if spent := _spent(evaluation):
        yield spent
    yield format.plain(f"{evaluation.decision.verdict}: {evaluation.decision.reason}")
    if path:
        yield format.plain(path)


def _spent(evaluation: Evaluation) -> str:
    """Return where the time of a judgement went: its longest steps, each with its stages; empty without stages."""
    total = fsum(step.seconds for step in evaluation.steps)
    long = [step for step in evaluation.steps if step.seconds >= _LONG_STEP * total]
    if not any(step.stages for step in long):
        return ""
    texts = []
    for step in sorted(long, key=lambda step: -step.seconds):
        stages = sorted(step.stages.items(), key=lambda pair: -pair[1])
        within = ", ".join(f"{name} {seconds:.1f}" for name, seconds in stages)
        texts.append(f"{step.name} {step.seconds:.1f}" + (f" ({within})" if within else ""))
    return f"seconds: {total:.1f}, of which {', '.join(texts)}"


def _urgency(result: WorkloadResult) -> tuple[int, float]:
    if result.status is not Status.PASSED:
        return (0, 0.0)
    if result.timing is None:
        return (2, 0.0)
    other = result.timing.against(BEST) or result.timing.against(REFERENCE)
    return (1, other.speedup if other else result.timing.ceiling_share)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column)
    return table


def _cell(text: str) -> Text:
    # Never a bare string: rich would interpret markup in it.
    return Text(format.plain(text, 80))


class Wide:
    """A renderable that is not squeezed into 80 columns if stdout is a pipe."""

    def __init__(self, inner: RenderableType) -> None:
        self.inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options if console.is_terminal else options.update(max_width=_PIPE_WIDTH)
        yield from console.render(self.inner, wide)
