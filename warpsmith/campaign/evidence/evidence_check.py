"""Evidence check: find records whose files have changed, and pages that their records no longer support."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from warpsmith.campaign.evidence import (
    agent_texts,
    campaign_check,
    citations,
    map_check,
    stored_evaluations,
    toolchain,
)
from warpsmith.campaign.evidence.campaign_check import BestJudged, CampaignCheck
from warpsmith.campaign.evidence.contents import ContentHashes, hash_contents, recall, remember
from warpsmith.campaign.evidence.stored_evaluations import StoredEvaluation
from warpsmith.campaign.history import manifests, store
from warpsmith.campaign.history.manifests import MANIFEST
from warpsmith.core.evidence import OtherToolchain, Stale, Standing, UnsupportedText
from warpsmith.errors import CorruptRecord
from warpsmith.ledger import signing
from warpsmith.ledger.store import Ledger
from warpsmith.project import Project


def check_evidence(
    project: Project,
    rendered: Mapping[Path, str],
    ledgers: Sequence[Ledger[Any]] = (),
    contents: ContentHashes | None = None,
) -> Standing:
    """Check the project's evidence; nothing of it is written.

    What was found in a campaign whose files have the same contents as at an earlier check is found again without
    reading its records; every file is read and hashed in any case.

    Args:
        project: the project to check.
        rendered: text of every page that is rendered from records, as rendering gives it now; a page that is
            not on disk is no finding.
        ledgers: ledgers of other features, whose records are to be whole and signed too.
        contents: hashes of the project's files as they are now; read here by default.
    """
    checks, damaged = _check_campaigns(project, contents or hash_contents(project))
    verdicts, stale = stored_evaluations.list_verdicts(project)
    findings, changed, older = campaign_check.check_evaluations(project, verdicts)
    stale += findings
    doubtful = {project.root / finding.path: finding.path for finding in stale if finding not in findings}
    doubtful |= {Path(path): name for check in checks for path, name in check.doubtful.items()}
    doubtful |= {Path(path): name for path, name in changed.items()}
    faults = list(agent_texts.check_repo_texts(project))
    unsupported = [fault for check in checks for fault in check.unsupported]
    unsupported += [fault for fault in faults if isinstance(fault, UnsupportedText)]
    stale += [*damaged, *(finding for check in checks for finding in check.stale)]
    stale += [fault for fault in faults if isinstance(fault, Stale)]
    maps, stale_maps = map_check.check_maps(project)
    stale += stale_maps
    stale += _ledger_faults(project, checks, ledgers)
    stale += _outdated_pages(project, rendered)
    count = 0
    for page in citations.citing_pages(project):
        targets = citations.cited_files(project, page)
        count += len(targets)
        stale += citations.find_stale_citations(project, page, targets, doubtful)
        if not page.rendered:
            stale += citations.find_misquotes(project, page, rendered)
        if page.path.is_relative_to(project.knowledge):
            stale += citations.check_entry_evidence(project, page)
    older += [item for check in checks for item in check.older]
    return Standing(
        rounds=sum(check.rounds for check in checks),
        races=sum(check.races for check in checks),
        verdicts=len(verdicts),
        maps=maps,
        citations=count,
        stale=tuple(sorted(stale, key=lambda finding: (finding.path, finding.message))),
        older=tuple(sorted(older, key=lambda item: item.record)),
        unsupported=tuple(unsupported),
        toolchains=_other_toolchains(check.best for check in checks if check.best),
    )


def _check_campaigns(project: Project, contents: ContentHashes) -> tuple[list[CampaignCheck], list[Stale]]:
    """Check each campaign, one at a time, unless its files are those of an earlier check; return also a finding
    for each manifest that does not read."""
    folders, damaged = manifests.campaign_folders(project), []
    states = {folder: contents.state_of(folder) for folder in folders}
    recalled = recall(project, "check", states, CampaignCheck)
    checks = {folder: check for folder, check in recalled.items() if check.holds(project)}
    for folder in folders:
        if folder in checks:
            continue
        try:
            campaign = store.read_campaign(project, folder)
        except CorruptRecord as error:
            damaged.append(stored_evaluations.corrupt_finding(project, folder / MANIFEST, error))
            continue
        checks[folder] = campaign_check.check_campaign(campaign)
        remember(project, "check", states, {folder: checks[folder]})
    return [checks[folder] for folder in folders if folder in checks], damaged


def _other_toolchains(best: Iterable[BestJudged]) -> tuple[OtherToolchain, ...]:
    """Group the best versions that were judged under other libraries, by the difference."""
    records: dict[str, list[str]] = {}
    for judged in best:
        if differences := toolchain.differing_packages(judged.libraries, [judged.language]):
            records.setdefault(toolchain.describe_differences(differences), []).append(judged.record)
    return tuple(
        OtherToolchain(differences=text, records=tuple(sorted(paths))) for text, paths in sorted(records.items())
    )


def best_rounds(judged: Sequence[StoredEvaluation]) -> list[StoredEvaluation]:
    """List the round of each campaign's best version."""
    accepted = [stored for stored in judged if stored.stored_round and stored.stored_round.record.verdict.accepted]
    return list({stored.campaign.folder: stored for stored in accepted if stored.campaign}.values())


def _ledger_faults(
    project: Project, checks: Sequence[CampaignCheck], others: Sequence[Ledger[Any]]
) -> list[Stale]:
    """List the records that are not what their signatures sign, or not the ones that were judged here.

    Records of other features that do not read are listed too; those of campaigns are found with their evaluations.
    """
    stale = []
    hashes = {Path(path): sha256 for check in checks for path, sha256 in check.records.items()}
    for ledger in others:
        records, errors = ledger.read_sound()
        hashes |= {record.path: record.sha256 for record in records}
        stale += [stored_evaluations.corrupt_finding(project, path, error) for path, error in errors]
        faults = ledger.signature_faults(records)
        stale += [campaign_check.signature_finding(project, path, fault) for path, fault in faults]
    replaced = signing.replaced_records(hashes)
    return stale + [campaign_check.signature_finding(project, path, fault) for path, fault in replaced]


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
