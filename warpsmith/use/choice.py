"""Choice of the best version of an operator for a target, from the records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from warpsmith import project as projects
from warpsmith.campaign.evidence import stored_evaluations, toolchain
from warpsmith.campaign.history import final_race, records, store
from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.base import Model, Name, Sha256, Slug
from warpsmith.core.evaluation import REFERENCE, Aggregate, Evaluation
from warpsmith.core.evidence import Claim
from warpsmith.core.hardware import Target
from warpsmith.errors import CorruptRecord, MissingInput
from warpsmith.lab.machine import hardware, identity
from warpsmith.lab.operator import definition_file
from warpsmith.project import Project


class BestVersion(Model):
    """Best version of an operator for one target."""

    op: Name
    """Name of the operator."""
    solution: str
    """Version as records name it: `triton/v7`."""
    language: Name
    """Language of the version."""
    target: Slug
    """Target that it was judged on."""
    device: str
    """Name of the device."""
    file: Path
    """Source as it was judged: the copy next to the record of the round."""
    sha256: Sha256
    """Hash of the source."""
    record: Path
    """Judgement that gave the figures: a final race, the record of a round, or a rerun of one."""
    speedups: tuple[Aggregate, ...]
    """Speedups over the reference and the peers of that judgement."""
    other_toolchain: str = ""
    """Libraries of that judgement that differ from those that are here; empty if none do."""


def find_owning_project(op: str) -> Project:
    """Find the project that owns an operator: the current one if it defines the operator, else the shipped one.

    Raises:
        MissingInput: neither defines it.
    """
    current = projects.find_project()
    layers = (current, projects.shipped_project())
    for layer in layers:
        if layer.definition_path(op).is_file():
            return layer
    operators = sorted({path.parent.name for layer in layers for path in layer.kernels.glob("*/definition.py")})
    raise MissingInput(f"No operator `{op}`; there are: {', '.join(operators) or 'none'}.")


def best_versions_by_target(project: Project, op: str) -> dict[str, BestVersion]:
    """Return the best version for each target that has one; raises as `rank_versions`."""
    return {target: versions[0] for target, versions in rank_versions(project, op).items() if versions}


def versions_for_target(project: Project, op: str, target: Target | None) -> list[BestVersion]:
    """Return the versions for one target, best first; none if the device has no page. Raises as
    `rank_versions`."""
    return rank_versions(project, op).get(target.id, []) if target else []


def rank_versions(project: Project, op: str) -> dict[str, list[BestVersion]]:
    """Return the best versions of all campaigns for each target, best first.

    Each campaign on the operator and the target enters with the head of its lineage. The head is rated by the
    campaign's final race, else by its round, and by a rerun of either if there is one. A judgement of an earlier
    definition does not count. Of several campaigns or languages, the one with the largest geometric mean of
    speedups over the reference wins, over the workloads that all of them were timed on; without common workloads,
    the latest judgement wins.

    A campaign with a file that does not read is left out, with a warning of the class LeftOut.
    """
    heads_by_target = _heads_by_target(project, op)
    versions = project.kernels / op
    return {
        target: [version for head in _rank_heads(heads) for version in head.best_versions(op, target, versions)]
        for target, heads in sorted(heads_by_target.items())
    }


def read_judgement(project: Project, version: BestVersion) -> Evaluation:
    """Read the judgement that rates a version of `rank_versions`, from the record that it names."""
    heads = _heads_by_target(project, version.op)[version.target]
    judged = {(head.record, head.stored_round.record.solution): head.evaluation for head in heads}
    return judged[version.record, version.solution]


def _heads_by_target(project: Project, op: str) -> dict[str, list[_JudgedVersion]]:
    digest = definition_file.definition_sha256(project.definition_path(op))
    heads_by_target: dict[str, list[_JudgedVersion]] = {}
    campaigns = store.list_campaigns(project, op)
    for campaign, numbers in zip(campaigns, _accepted_numbers(project, campaigns), strict=True):
        head = _read_head(campaign, numbers, digest)
        if head is not None:
            heads_by_target.setdefault(campaign.manifest.target, []).append(head)
    return heads_by_target


def accepted_versions(project: Project, op: str, target: str) -> list[BestVersion]:
    """Return every accepted version for a target that still stands: the best ones of all campaigns in their order,
    then earlier ones of each lineage, the latest judgement first. None is in it twice.

    Raises as `rank_versions`.
    """
    digest, versions = definition_file.definition_sha256(project.definition_path(op)), project.kernels / op
    campaigns = [campaign for campaign in store.list_campaigns(project, op) if campaign.manifest.target == target]
    earlier = [
        judged
        for campaign, numbers in zip(campaigns, _accepted_numbers(project, campaigns), strict=True)
        for number in numbers[:-1]
        if (judged := _read_judged(campaign, number, digest)) is not None and judged.evaluation.correct
    ]
    earlier.sort(key=lambda judged: judged.evaluation.provenance.measured, reverse=True)
    listed = rank_versions(project, op).get(target, [])
    listed += [version for judged in earlier for version in judged.best_versions(op, target, versions)]
    by_name: dict[str, BestVersion] = {}
    for version in listed:
        if version.sha256 not in {other.sha256 for other in by_name.values()}:
            by_name.setdefault(version.solution, version)
    return list(by_name.values())


def target_of_device(project: Project, device: str | None) -> Target | None:
    """Return the target of a GPU's name, or the processor's if there is no name; None if no page has the name."""
    if device is None:
        return hardware.read_target_page(project, "cpu").target
    pages = (hardware.read_target_page(project, name).target for name in hardware.list_targets(project))
    return next((page for page in pages if page.kind == "gpu" and identity.matches_target(page, device)), None)


@dataclass(frozen=True)
class _JudgedVersion:
    """Accepted version of a campaign, with the judgement that rates it."""

    stored_round: StoredRound
    evaluation: Evaluation
    record: Path

    @cached_property
    def speedups(self) -> dict[str, float]:
        """Speedups over the reference by workload name."""
        return {
            name: comparison.speedup
            for name, timing in self.evaluation.timed.items()
            if (comparison := timing.against(REFERENCE))
        }

    def best_versions(self, op: str, target: str, versions: Path) -> list[BestVersion]:
        """Return the version of the round, or nothing if the file that it judged is gone."""
        record = self.stored_round.record
        try:
            judged = records.judged_file(self.stored_round, versions)
        except MissingInput:
            return []
        version = BestVersion(
            op=op,
            solution=record.solution,
            language=self.evaluation.language,
            target=target,
            device=self.evaluation.provenance.machine.device,
            file=judged,
            sha256=record.snapshot_sha256,
            record=self.record,
            speedups=self.evaluation.aggregates,
            other_toolchain=toolchain.describe_differences(toolchain.differing_libraries(self.evaluation)),
        )
        return [version]


def _accepted_numbers(project: Project, campaigns: Sequence[Campaign]) -> list[list[int]]:
    """Return the numbers of each campaign's accepted rounds that no rerun refuted.

    A refuted version leaves its place to its parent. A campaign with a file that does not read has none, and a
    warning of the class LeftOut says so.
    """
    accepted: list[list[int]] = []
    every = store.read_progress(project, [campaign.folder for campaign in campaigns])
    for campaign, progress in zip(campaigns, every, strict=True):
        try:
            numbers = (progress or store.measure_progress(campaign)).accepted
            reruns = stored_evaluations.campaign_renewals(campaign)
        except CorruptRecord as error:
            store.warn_left_out(error)
            accepted.append([])
            continue
        refuted = {name for name, rerun in reruns.items() if rerun.claim is Claim.REFUTED}
        accepted.append([number for number in numbers if campaign.ledger.folder_of(number).name not in refuted])
    return accepted


def _read_head(campaign: Campaign, numbers: Sequence[int], digest: str) -> _JudgedVersion | None:
    """Return the last accepted version that its latest judgement did not find wrong."""
    for number in reversed(numbers):
        judged = _read_judged(campaign, number, digest)
        if judged is None or judged.evaluation.correct:
            return judged
    return None


def _read_judged(campaign: Campaign, number: int, digest: str) -> _JudgedVersion | None:
    """Return the version of a round; None, with a warning of the class LeftOut, if its record does not read."""
    try:
        return _judged_version(campaign, campaign.ledger.read(number), digest)
    except CorruptRecord as error:
        store.warn_left_out(error)
        return None


def _judged_version(campaign: Campaign, stored: StoredRound, digest: str) -> _JudgedVersion | None:
    """Return a round's version with its latest judgement under this definition that timed it or found it wrong."""
    for evaluation, record in _latest_judgements(campaign, stored):
        if evaluation.provenance.definition_sha256 == digest and (evaluation.timed or evaluation.is_wrong):
            return _JudgedVersion(stored, evaluation, record)
    return None


def _latest_judgements(campaign: Campaign, best: StoredRound) -> Iterator[tuple[Evaluation, Path]]:
    """Yield the judgements of an accepted version, its race before its round; a rerun replaces either."""
    reruns = stored_evaluations.campaign_renewals(campaign)
    race, path = final_race.read_final_race(campaign, best.record), final_race.final_race_path(campaign)
    if race is not None:
        renewed = reruns.get(path.stem)
        yield (renewed.evaluation, campaign.folder / stored_evaluations.RERUNS) if renewed else (race, path)
    renewed = reruns.get(best.folder.name)
    own = (best.record.evaluation, best.path)
    yield (renewed.evaluation, campaign.folder / stored_evaluations.RERUNS) if renewed else own


def _rank_heads(heads: Sequence[_JudgedVersion]) -> list[_JudgedVersion]:
    """Rank the heads: choose the best, then the best of the rest, since their common workloads may change."""
    order, remaining = [], list(heads)
    while remaining:
        first = _fastest_head(remaining)
        order.append(first)
        remaining = [head for head in remaining if head is not first]
    return order


def _fastest_head(heads: Sequence[_JudgedVersion]) -> _JudgedVersion:
    common = set.intersection(*(set(head.speedups) for head in heads))
    if not common:
        return max(heads, key=lambda head: head.evaluation.provenance.measured)
    return max(heads, key=lambda head: math.fsum(math.log(head.speedups[name]) for name in common))
