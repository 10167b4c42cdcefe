"""Evidence check: find records whose files have changed, and pages that their records no longer support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpsmith.campaign.evidence import agent_texts, citations, map_check, stored_evaluations, toolchain
from warpsmith.campaign.evidence.stored_evaluations import StoredEvaluation
from warpsmith.campaign.history import journal, store
from warpsmith.core.evaluation import GATE_VERSION
from warpsmith.core.evidence import Older, OtherToolchain, Stale, Standing, UnsupportedText
from warpsmith.errors import CorruptRecord
from warpsmith.ledger.store import Ledger
from warpsmith.project import Project


def check_evidence(
    project: Project, rendered: Mapping[Path, str], ledgers: Sequence[Ledger[Any]] = ()
) -> Standing:
    """Check the project's evidence; nothing is written.

    Args:
        project: the project to check.
        rendered: text of every page that is rendered from records, as rendering gives it now; a page that is
            not on disk is no finding.
        ledgers: ledgers of other features, whose records are to be whole and signed too.
    """
    judged, stale = stored_evaluations.list_evaluations(project)
    # A record that does not read is stale as well, and so is a page that cites it.
    damaged = [project.root / finding.path for finding in stale]
    doubtful = {path: project.relative(path) for path in damaged if path.name != store.MANIFEST}
    older = []
    best = best_rounds(judged)
    for stored in judged:
        findings = [
            Stale(path=project.relative(stored.path), message=message)
            for message in stored_evaluations.list_changes(project, stored)
        ]
        if findings:
            doubtful[stored.path] = findings[0].path
        stale += findings
        try:
            older.append(_older(project, stored, stored in best))
        except CorruptRecord as error:
            stale.append(stored_evaluations.corrupt_finding(project, stored.reruns, error))
    faults = list(agent_texts.check_texts(project, judged))
    stale += [fault for fault in faults if isinstance(fault, Stale)]
    maps, stale_maps = map_check.check_maps(project)
    stale += stale_maps
    stale += _vanished_parts(project)
    stale += _ledger_faults(project, ledgers)
    stale += _outdated_pages(project, rendered)
    pages = citations.citing_pages(project)
    cited = {page: citations.cited_files(project, page) for page in pages}
    for page, targets in cited.items():
        stale += citations.find_stale_citations(project, page, targets, doubtful)
        if not page.rendered:
            stale += citations.find_misquotes(project, page, rendered)
        if page.path.is_relative_to(project.knowledge):
            stale += citations.check_entry_evidence(project, page)
    return Standing(
        rounds=sum(stored.stored_round is not None for stored in judged),
        races=sum(stored.campaign is not None and stored.stored_round is None for stored in judged),
        verdicts=sum(stored.campaign is None for stored in judged),
        maps=maps,
        citations=sum(map(len, cited.values())),
        stale=tuple(sorted(stale, key=lambda finding: (finding.path, finding.message))),
        older=tuple(sorted(filter(None, older), key=lambda item: item.record)),
        unsupported=tuple(fault for fault in faults if isinstance(fault, UnsupportedText)),
        toolchains=_other_toolchains(project, best),
    )


def _older(project: Project, stored: StoredEvaluation, best: bool) -> Older | None:
    """Describe an evaluation of an older gate; None if it is of the current gate. Raises CorruptRecord."""
    rerun, version = stored_evaluations.last_renewal(stored), stored.evaluation.provenance.gate_version
    if version >= GATE_VERSION:
        return None
    if rerun and rerun.evaluation.provenance.gate_version < GATE_VERSION:
        rerun = None
    return Older(
        record=project.relative(stored.stored_round.folder if stored.stored_round else stored.path),
        solution=stored.evaluation.provenance.solution,
        gate_version=version,
        best=best,
        renewed=rerun,
    )


def _other_toolchains(project: Project, best: Sequence[StoredEvaluation]) -> tuple[OtherToolchain, ...]:
    """Group the best versions that were judged under other libraries, by the difference."""
    records: dict[str, list[str]] = {}
    for stored in best:
        if differences := toolchain.differing_libraries(stored.evaluation):
            text = toolchain.describe_differences(differences)
            records.setdefault(text, []).append(project.relative(stored.path.parent))
    return tuple(
        OtherToolchain(differences=text, records=tuple(sorted(paths))) for text, paths in sorted(records.items())
    )


def best_rounds(judged: Sequence[StoredEvaluation]) -> list[StoredEvaluation]:
    """List the round of each campaign's best version."""
    accepted = [stored for stored in judged if stored.stored_round and stored.stored_round.record.verdict.accepted]
    return list({stored.campaign.folder: stored for stored in accepted if stored.campaign}.values())


def _vanished_parts(project: Project) -> list[Stale]:
    """List the parts of open rounds that were written and are gone or were edited."""
    stale = []
    for campaign in store.read_campaigns(project)[0]:
        try:
            lines = campaign.journal()
        except CorruptRecord as error:
            stale.append(stored_evaluations.corrupt_finding(project, campaign.folder / journal.JOURNAL, error))
            continue
        for line in journal.vanished_parts(lines, campaign.ledger.next_number(), campaign.open):
            shown_path = project.relative(campaign.open / f"{line.part}.json")
            judged = f"; {line.solution} counts as judged" if line.solution else ""
            stale.append(
                Stale(
                    path=shown_path,
                    message=f"{shown_path} is gone or was edited since it was written{judged}; run"
                    f" `warpsmith resume --campaign {campaign.name}`.",
                )
            )
    return stale


def _ledger_faults(project: Project, others: Sequence[Ledger[Any]]) -> list[Stale]:
    """List the records that are not what their signatures sign, or not the ones that were judged here.

    Records of other features that do not read are listed too; those of campaigns are found with their evaluations.
    """
    faults = []
    for ledger in others:
        faults += [
            stored_evaluations.corrupt_finding(project, path, error) for path, error in ledger.read_sound()[1]
        ]
    for ledger in (*(campaign.ledger for campaign in store.read_campaigns(project)[0]), *others):
        for path, fault in ledger.signature_faults():
            shown_path = project.relative(path)
            faults.append(Stale(path=shown_path, message=f"{shown_path} {fault}; restore it from git."))
    return faults


def _outdated_pages(project: Project, rendered: Mapping[Path, str]) -> list[Stale]:
    """List the pages on disk that differ from the text that their records give."""
    stale = []
    for path, text in rendered.items():
        if path.is_file() and path.read_text(errors="replace") != text:
            shown_path, (_, *inside) = project.relative(path), path.relative_to(project.devlog).parts
            command = f"warpsmith report --campaign {inside[0]}" if len(inside) > 1 else "warpsmith report --all"
            stale.append(
                Stale(path=shown_path, message=f"{shown_path} is not what its records give; run `{command}`.")
            )
    return stale
