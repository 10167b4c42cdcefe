"""Evidence: whether records still stand for what they judged, and pages for what records say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from warpsmith.campaign.evidence import citations, judgements
from warpsmith.campaign.evidence.judgements import Judged
from warpsmith.core.evaluation import GATE_VERSION
from warpsmith.core.evidence import Older, Stale, Standing
from warpsmith.errors import CorruptRecord
from warpsmith.project import Project


def check(project: Project, rendered: Mapping[Path, str]) -> Standing:
    """How the project's evidence stands; reads, and changes nothing.

    Args:
        project: whose.
        rendered: every page that is rendered from records, as rendering gives it now; one that is not on disk
            is no finding.

    Raises:
        Misuse: a campaign's manifest does not read.
    """
    judged, stale = judgements.every(project)
    # One that does not read is stale as well, and what cites it does not stand.
    doubtful = {project.root / finding.path: finding.path for finding in stale}
    older = []
    best = _best(judged)
    for one in judged:
        found = [
            Stale(path=project.relative(one.path), message=message) for message in judgements.changes(project, one)
        ]
        if found:
            doubtful[one.path] = found[0].path
        stale += found
        try:
            older.append(_older(project, one, one in best))
        except CorruptRecord as error:
            stale.append(judgements.broken(project, one.reruns, error))
    stale += _unlike(project, rendered)
    pages = citations.pages(project)
    cited = {page: citations.cited(project, page) for page in pages}
    for page, targets in cited.items():
        stale += citations.stale(project, page, targets, doubtful)
        stale += [] if page.rendered else citations.misquoted(project, page, rendered)
        stale += citations.of_entry(project, page) if page.path.is_relative_to(project.knowledge) else []
    return Standing(
        rounds=sum(one.kept is not None for one in judged),
        races=sum(one.campaign is not None and one.kept is None for one in judged),
        verdicts=sum(one.campaign is None for one in judged),
        citations=sum(map(len, cited.values())),
        stale=tuple(sorted(stale, key=lambda finding: (finding.path, finding.message))),
        older=tuple(sorted(filter(None, older), key=lambda one: one.record)),
    )


def _older(project: Project, judged: Judged, best: bool) -> Older | None:
    """How a judgement of an older gate is shown; None where it is of this one; raises CorruptRecord."""
    again, version = judgements.renewal(judged), judged.evaluation.provenance.gate_version
    if version >= GATE_VERSION:
        return None
    if again and again.evaluation.provenance.gate_version < GATE_VERSION:
        again = None
    return Older(
        record=project.relative(judged.kept.folder if judged.kept else judged.path),
        solution=judged.evaluation.provenance.solution,
        gate_version=version,
        best=best,
        renewed=again,
    )


def _best(judged: Sequence[Judged]) -> list[Judged]:
    """The round of each campaign's best version."""
    rounds = [one for one in judged if one.kept and one.kept.record.verdict.accepted]
    return list({one.campaign.folder: one for one in rounds if one.campaign}.values())


def _unlike(project: Project, rendered: Mapping[Path, str]) -> list[Stale]:
    """Pages on disk that differ from what their records give."""
    found = []
    for path, text in rendered.items():
        if path.is_file() and path.read_text(errors="replace") != text:
            shown, (_, *inside) = project.relative(path), path.relative_to(project.devlog).parts
            command = f"warpsmith report --campaign {inside[0]}" if len(inside) > 1 else "warpsmith report --all"
            found.append(Stale(path=shown, message=f"{shown} is not what its records give; run `{command}`."))
    return found
