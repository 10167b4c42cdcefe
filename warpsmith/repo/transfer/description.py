"""Description of a transfer in sentences, for the terminal, pages and commits."""

from __future__ import annotations

from warpsmith.core.evaluation import Verdict
from warpsmith.core.repo import ProgramReach, RepoEvaluation


def transfer_lines(evaluation: RepoEvaluation) -> list[str]:
    """Return the sentences on buckets, calls, re-attribution and missing parts; at least one."""
    transfer = evaluation.transfer
    if transfer is None:
        rejected = not evaluation.decision.verdict.accepted
        invalid = evaluation.decision.verdict is Verdict.INVALID
        reason = "the judgement is invalid" if invalid else "nothing was accepted" if rejected else None
        return [f"Not measured: {reason or 'the judgement did not compare two versions, or is older'}."]
    lines = [_bucket_line(transfer), _call_line(transfer), _gain_line(evaluation, transfer)]
    return [line for line in lines if line] + [f"Missing: {sentence}." for sentence in transfer.missing]


def _bucket_line(transfer: ProgramReach) -> str | None:
    if not transfer.buckets:
        return None
    parts = ", ".join(f"{bucket.name} {bucket.share:.1%}" for bucket in transfer.buckets if bucket.share >= 0.0005)
    return f"Time of the {transfer.traced}: {parts}."


def _call_line(transfer: ProgramReach) -> str | None:
    if transfer.calls is None:
        return None
    if not transfer.calls:
        return f"Calls of the kernel: none was seen in the {transfer.traced}, so its gain does not reach it."
    names = ", ".join(f"{name} {count}" for name, count in transfer.functions.items())
    same = transfer.candidate_calls == transfer.calls
    candidate = "as many" if same else f"{transfer.candidate_calls}, another number,"
    seconds = ""
    if transfer.kernel_seconds:
        seconds = (
            f"; {transfer.kernel_seconds[0]:.3g} s inside of it before, {transfer.kernel_seconds[1]:.3g} s after"
        )
    return f"Calls of the kernel: {transfer.calls} ({names}), {candidate} in the candidate{seconds}."


def _gain_line(evaluation: RepoEvaluation, transfer: ProgramReach) -> str | None:
    if transfer.measured is None or transfer.interval is None or transfer.seconds is None:
        return None
    low, high = transfer.interval.low, transfer.interval.high
    line = (
        f"The whole program: {transfer.seconds[0]:.3g} s -> {transfer.seconds[1]:.3g} s,"
        f" {transfer.measured:.3f}x [{low:.3f}, {high:.3f}]"
    )
    if transfer.predicted is None or evaluation.aggregate is None or transfer.kernel_share is None:
        return f"{line}; a share of the kernel is missing, so nothing predicts it."
    cause = f"{evaluation.aggregate.speedup:.2f}x at {transfer.kernel_share:.1%} of the time"
    return f"{line}; {cause} predicts {transfer.predicted:.3f}x: {_agreement(transfer.predicted, low, high)}."


def _agreement(predicted: float, low: float, high: float) -> str:
    """Compare a predicted speedup with the measured interval."""
    if low <= 1 <= high and low <= predicted <= high:
        return "too small a gain to be seen in these runs"
    if predicted < low:
        return "more than predicted, so something else changed too, or the benchmark's rows gain less"
    if predicted > high:
        return "less than predicted, so the benchmark's rows gain more than the program's calls"
    return "as predicted"
