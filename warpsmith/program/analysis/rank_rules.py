"""Rules for programs of many ranks: communication, work that differs from rank to rank, and needless work."""

from __future__ import annotations

from collections.abc import Iterator

from warpsmith.profiling.trace.rank_models import RanksReport
from warpsmith.profiling.trace.text import format_bytes, format_duration
from warpsmith.program.analysis.models import Recommendation
from warpsmith.program.analysis.ranks import AnalyzedRanks, describe_replica
from warpsmith.program.analysis.recommendation import recommend_if_worthwhile
from warpsmith.program.analysis.step_profile import StepProfile

_GATHERS = ("all_gather", "reduce_scatter")
"""Collectives of sharded parameters and gradients."""

_SEVERAL = 1.5
"""Reductions of all gradients per step, above which they are reduced more than once. Chosen."""

_LOADER_PART = 0.5
"""Part of the slowest rank's excess in its DataLoader, from which on its data are the reason. Chosen."""


def recommend_bucketing(profile: StepProfile) -> Iterator[Recommendation]:
    """Recommend buckets of gradients that are reduced behind the backward pass."""
    communication = profile.trace.communication
    if profile.ranks is None:
        if communication is not None:
            count = communication.count / profile.trace.repetitions
            share = profile.share_of(profile.parts.communication_seconds)
            evidence = (
                f"{count:.0f} collectives per step on {profile.facts.world} ranks, {share:.0%} of the step exposed"
            )
            yield from _bucketing(share, evidence, "")
        return
    if profile.facts.sharded_modules and not profile.facts.replicas:
        return
    report = profile.ranks.report
    kinds = [item.kind for item in report.collectives if item.kind not in _GATHERS]
    share = min(report.exposed_transfer, report.exposed_share(*kinds))
    replicas = "; ".join(map(describe_replica, profile.facts.replicas))
    settings = f"; {replicas}" if replicas else "; without DistributedDataParallel"
    yield from _bucketing(
        share, f"{_describe(report, kinds)}, {share:.0%} of the step exposed{settings}", replicas
    )


def _bucketing(share: float, evidence: str, replicas: str) -> Iterator[Recommendation]:
    task = (
        "Measure bucket_cap_mb at 10, 25, 50 and 100, so that few buckets are reduced behind the backward pass."
        if replicas
        else "Bucket gradients, start collectives as soon as they are ready, send fewer bytes."
    )
    yield from recommend_if_worthwhile(
        "Gradient bucketing and overlap", "gradient-bucketing-overlap", share, "Medium", "Low", evidence, task
    )


def recommend_single_reduction(profile: StepProfile) -> Iterator[Recommendation]:
    """Recommend to reduce gradients once per optimizer step, if each backward pass does."""
    observed, reduced = profile.observed, profile.ranks and profile.ranks.report.find("all_reduce")
    gradients = sum(sum(replica.buckets) for replica in profile.facts.replicas)
    if profile.ranks is None or not observed.accumulates or not reduced or not reduced.bytes or not gradients:
        return
    times = reduced.bytes / gradients
    if times < _SEVERAL:
        return
    share = profile.ranks.report.exposed_transfer * (1 - 1 / times)
    yield from recommend_if_worthwhile(
        "One reduction per optimizer step", "one-reduction-per-step", share, "Low", "Low",
        f"{observed.backwards} backward passes for {observed.optimizer_steps} optimizer steps, and "
        f"{format_bytes(gradients)} of gradients are reduced {times:.3g} times a step; all but one: {share:.0%}",
        "Run forward and backward of all micro-batches but the last one under `model.no_sync()`.",
    )  # fmt: skip


def recommend_replica_switches(profile: StepProfile) -> Iterator[Recommendation]:
    """Recommend to switch off what DistributedDataParallel does for nothing."""
    if profile.ranks is None:
        return
    report = profile.ranks.report
    needless = [item for item in profile.facts.replicas if item.find_unused and item.unused_bytes == 0]
    copying = [item for item in profile.facts.replicas if not item.bucket_views]
    search = report.share_of(report.search_seconds) if needless else 0.0
    copies = report.share_of(report.copy_seconds) if copying else 0.0
    reasons, tasks = [], []
    if search:
        reasons.append(
            f"find_unused_parameters=True searches the graph and tells every rank what it found, {search:.0%}; "
            "every parameter was used"
        )
        tasks.append("Leave find_unused_parameters out")
    if copies:
        reasons.append(f"buckets are copied to gradients, {copies:.0%}")
        tasks.append("set gradient_as_bucket_view=True" if tasks else "Set gradient_as_bucket_view=True")
    yield from recommend_if_worthwhile(
        "Switches of DistributedDataParallel", "data-parallel-switches", min(1.0, search + copies), "Low", "Low",
        "; ".join(reasons), f"{'; '.join(tasks)}. static_graph=True, if every step uses the same parameters.",
    )  # fmt: skip


def recommend_prefetch(profile: StepProfile) -> Iterator[Recommendation]:
    """Recommend to gather sharded parameters earlier."""
    if profile.ranks is None or not profile.facts.sharded_modules:
        return
    report = profile.ranks.report
    # Gloo scatters sums by all_reduce; beside replicas that is a reduction of gradients.
    kinds = [item.kind for item in report.collectives if item.kind in _GATHERS or not profile.facts.replicas]
    share = min(report.exposed_transfer, report.exposed_share(*kinds))
    yield from recommend_if_worthwhile(
        "Prefetch of sharded parameters", "sharded-prefetch", share, "Low", "Low",
        f"{profile.facts.sharded_modules} sharded modules; {_describe(report, kinds)}, "
        f"{share:.0%} of the step exposed",
        "Gather the next units while one computes: set_modules_to_forward_prefetch and "
        "set_modules_to_backward_prefetch; keep small units gathered with reshard_after_forward=False.",
    )  # fmt: skip


def recommend_balance(profile: StepProfile) -> Iterator[Recommendation]:
    """Recommend to give ranks equal work, if one takes longer than the others."""
    if profile.ranks is None:
        return
    report = profile.ranks.report
    slowest, fastest = report.slowest, report.fastest
    loading = _loader_excess(profile.ranks, slowest.rank, fastest.rank)
    data = loading >= _LOADER_PART * (slowest.own_seconds - fastest.own_seconds)
    reason = f", {format_duration(loading)} of them for its data" if data else ""
    yield from recommend_if_worthwhile(
        "Equal work for all ranks", "balanced-ranks", report.excess, "Medium", "Low",
        f"rank {slowest.rank} takes {format_duration(slowest.own_seconds)} of its own a step, rank {fastest.rank} "
        f"{format_duration(fastest.own_seconds)}{reason}; ranks wait {report.imbalance:.0%} of a step"
        " for later ones",
        f"Make the data of rank {slowest.rank} arrive as fast as those of the others."
        if data
        else f"Find what rank {slowest.rank} does more than rank {fastest.rank}: longer samples, logging, "
        "evaluation, a slower device or fewer cores.",
    )  # fmt: skip


def _loader_excess(ranks: AnalyzedRanks, slowest: int, fastest: int) -> float:
    """Return the seconds that the slowest rank waits for its data beyond the fastest one."""
    by_rank = {item.rank: seconds for item, seconds in zip(ranks.report.ranks, ranks.loader_seconds, strict=True)}
    return by_rank[slowest] - by_rank[fastest]


def _describe(report: RanksReport, kinds: list[str]) -> str:
    """Return calls, bytes and overlap of some kinds of collectives in words."""
    parts = []
    for kind in kinds:
        item = report.find(kind)
        if item is not None:
            size = "" if item.bytes is None else f" with {format_bytes(item.bytes)}"
            parts.append(f"{item.calls:.3g} {kind}{size}")
    return f"{' and '.join(parts) or 'no collectives'} per step on {report.world} ranks"
