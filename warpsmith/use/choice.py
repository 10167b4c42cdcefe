"""Which version of an operator is the best for a target, by the records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpsmith import project as projects
from warpsmith.campaign.evidence import stored_evaluations
from warpsmith.campaign.history import final_race, store
from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.base import Model, Name, Sha256, Slug
from warpsmith.core.evaluation import REFERENCE, Aggregate, Evaluation
from warpsmith.core.hardware import Target
from warpsmith.errors import MissingInput
from warpsmith.lab.machine import hardware, identity
from warpsmith.lab.operator import definition_file
from warpsmith.project import SHIPPED, Project


class BestVersion(Model):
    """The best version of an operator for one target."""

    op: Name
    """The operator."""
    solution: str
    """As records name it: `triton/v7`."""
    language: Name
    """Its language."""
    target: Slug
    """The device kind that it was judged on."""
    device: str
    """The device's own name."""
    file: Path
    """Its source as it was judged: the copy beside the round's record."""
    sha256: Sha256
    """Hash of that file."""
    record: Path
    """The judgement that the figures are from: a final race, a round's record, or a rerun of one."""
    speedups: tuple[Aggregate, ...]
    """Over the reference and the peers that were raced there."""


def find_owning_project(op: str) -> Project:
    """The project whose operator it is: the one at hand where it defines it, else what ships with Warpsmith.

    Raises:
        MissingInput: neither does.
    """
    here = projects.find_project()
    layers = (here, Project(SHIPPED, SHIPPED / "kernels", SHIPPED / "devlog", SHIPPED / "docs" / "knowledge"))
    for layer in layers:
        if layer.definition_path(op).is_file():
            return layer
    known = sorted({path.parent.name for layer in layers for path in layer.kernels.glob("*/definition.py")})
    raise MissingInput(f"No operator `{op}`; there are: {', '.join(known) or 'none'}.")


def best_versions_by_target(project: Project, op: str) -> dict[str, BestVersion]:
    """The best version for each target that has one; raises as `ranked`."""
    return {target: versions[0] for target, versions in rank_versions(project, op).items()}


def versions_for_target(project: Project, op: str, target: Target | None) -> list[BestVersion]:
    """The versions for one target, the best first; none where the device has no page. Raises as `ranked`."""
    return rank_versions(project, op).get(target.id, []) if target else []


def rank_versions(project: Project, op: str) -> dict[str, list[BestVersion]]:
    """The best versions of all campaigns for each target that has any, the best of them first.

    The rule: of each campaign on the operator and the target, the lineage's head stands, with what its final
    race said, else what its round did, or what a rerun of either said since. A judgement of another definition
    than the present one says nothing. Where several campaigns or languages remain, the one with the largest
    geometric mean of speedups over the reference wins, over the workloads that all of them were timed at; the
    latest judgement, where they have none in common.

    Raises:
        CorruptRecord: a record of such a campaign is corrupt.
        Misuse: a campaign's manifest does not read.
    """
    digest = definition_file.definition_sha256(project.definition_path(op))
    found: dict[str, list[_JudgedHead]] = {}
    for folder in sorted(path.parent for path in (project.devlog / op).glob(f"*/{store.MANIFEST}")):
        campaign = store.read_campaign(project, folder)
        head = _judged_head(campaign, digest)
        if head is not None:
            found.setdefault(campaign.manifest.target, []).append(head)
    return {
        target: [head.chosen(op, target) for head in _rank_heads(heads)] for target, heads in sorted(found.items())
    }


def target_of_device(project: Project, device: str | None) -> Target | None:
    """The target that a GPU's name belongs to, the processor's where there is no name; None: no page has it."""
    if device is None:
        return hardware.read_hardware_page(project, "cpu").target
    pages = (hardware.read_hardware_page(project, name).target for name in hardware.list_targets(project))
    return next((page for page in pages if page.kind == "gpu" and identity.matches_target(page, device)), None)


@dataclass(frozen=True)
class _JudgedHead:
    """A campaign's best version with the judgement that it stands on."""

    kept: StoredRound
    evaluation: Evaluation
    record: Path

    @property
    def speedups(self) -> dict[str, float]:
        """Workload name to the speedup over the reference."""
        return {
            name: comparison.speedup
            for name, timing in self.evaluation.timed.items()
            if (comparison := timing.against(REFERENCE))
        }

    def chosen(self, op: str, target: str) -> BestVersion:
        record = self.kept.record
        return BestVersion(
            op=op,
            solution=record.solution,
            language=self.evaluation.language,
            target=target,
            device=self.evaluation.provenance.machine.device,
            file=self.kept.folder / record.snapshot,
            sha256=record.snapshot_sha256,
            record=self.record,
            speedups=self.evaluation.aggregates,
        )


def _judged_head(campaign: Campaign, digest: str) -> _JudgedHead | None:
    accepted = [kept for kept in campaign.closed_rounds() if kept.record.verdict.accepted]
    if not accepted:
        return None
    best = accepted[-1]
    for evaluation, record in _latest_judgements(campaign, best):
        if evaluation.provenance.definition_sha256 == digest and evaluation.timed:
            return _JudgedHead(best, evaluation, record) if evaluation.correct else None
    return None


def _latest_judgements(campaign: Campaign, best: StoredRound) -> Iterator[tuple[Evaluation, Path]]:
    """What was said of a campaign's best version, its race before its round; a rerun in place of either."""
    again = stored_evaluations.campaign_renewals(campaign)
    race, path = final_race.read_final_race(campaign, best.record), final_race.final_race_path(campaign)
    if race is not None:
        renewed = again.get(path.stem)
        yield (renewed.evaluation, campaign.folder / stored_evaluations.RERUNS) if renewed else (race, path)
    renewed = again.get(best.folder.name)
    own = (best.record.evaluation, best.path)
    yield (renewed.evaluation, campaign.folder / stored_evaluations.RERUNS) if renewed else own


def _rank_heads(heads: Sequence[_JudgedHead]) -> list[_JudgedHead]:
    """The best, then the best of those that are left, and so on: what they have in common may change."""
    order, left = [], list(heads)
    while left:
        first = _fastest_head(left)
        order.append(first)
        left = [head for head in left if head is not first]
    return order


def _fastest_head(heads: Sequence[_JudgedHead]) -> _JudgedHead:
    common = set.intersection(*(set(head.speedups) for head in heads))
    if not common:
        return max(heads, key=lambda head: head.evaluation.provenance.measured)
    return max(heads, key=lambda head: math.fsum(math.log(head.speedups[name]) for name in common))
