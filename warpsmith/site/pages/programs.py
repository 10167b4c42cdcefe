"""Pages of whole programs, of kernels in other repositories and of operators over ranks, from their records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from warpsmith import files
from warpsmith.campaign.rounds import rank_race, rank_rounds
from warpsmith.campaign.rounds.rank_rounds import RankCampaign
from warpsmith.core.repo import RepoManifest
from warpsmith.core.trial import RankedRecommendation
from warpsmith.errors import WarpsmithError
from warpsmith.program.analysis import analysis_store, analysis_text, record_names, region_file
from warpsmith.program.trials import next_action, trial_store, trials_total
from warpsmith.program.trials.trial_store import Trials
from warpsmith.repo import store as repo_store
from warpsmith.repo.store import RepoCampaign
from warpsmith.reporting import format, ranks, repo
from warpsmith.reporting.programs import fusion_ledger, program_trials
from warpsmith.reporting.programs.fusion_ledger import FusionLedger
from warpsmith.reporting.programs.program_trials import PageContext
from warpsmith.site import addresses
from warpsmith.site.contents import read_model
from warpsmith.site.context import SiteContext
from warpsmith.site.markdown import render_markdown
from warpsmith.site.markup import Html, escape_code
from warpsmith.site.page import SearchText, SitePage, build_page


@dataclass(frozen=True)
class ProgramLine:
    """A program, a kernel in its own repository, or an operator over ranks, in a list."""

    name: str
    """Its name."""
    kind: str
    """`program`, `repository` or, over ranks, `operator`."""
    address: str
    """Its page."""
    count: str
    """Number of its trials or rounds, in words."""


def program_pages(context: SiteContext) -> tuple[list[SitePage], list[ProgramLine]]:
    """Return the pages of all programs, repositories and operators over ranks, and their lines in the list of
    campaigns."""
    pages, lines = [], []
    for name in _program_names(context):
        page, count = _program_page(context, Trials(context.project, name))
        pages.append(page)
        lines.append(ProgramLine(name, "program", page.address, format.count_noun(count, "trial")))
    for campaign in _repositories(context):
        page, count = _repository_page(context, campaign)
        pages.append(page)
        lines.append(ProgramLine(campaign.name, "repository", page.address, format.count_noun(count, "round")))
    for ranked in rank_rounds.list_rank_campaigns(context.project):
        page, count = _rank_page(context, ranked)
        pages.append(page)
        lines.append(ProgramLine(ranked.name, "operator", page.address, format.count_noun(count, "round")))
    return pages, lines


def _program_names(context: SiteContext) -> list[str]:
    folders = (context.project.devlog / record_names.FOLDER).glob("*/")
    return sorted(path.name for path in folders if not path.name.startswith("."))


def _program_page(context: SiteContext, trials: Trials) -> tuple[SitePage, int]:
    contents, address = context.contents, addresses.program_address(trials.name)
    stored, faults = trials.ledger.read_sound()
    problems = [_sentence(context, error) for _, error in faults]
    records = {entry.number: entry.record for entry in stored}
    total, note = None, ""
    remaining: tuple[RankedRecommendation, ...] = ()
    ledger: FusionLedger | None = None
    try:
        total = trials.total()
        if total and (faults or total.files != tuple(trials_total.present_files(trials))):
            note = f"The total is of {total.measured} UTC; the program has changed since, or is not here."
        state = next_action.read_program_state(context.project, trials.name)
        remaining = next_action.rank_recommendations(state, state.analysis) if state.analysis else ()
        ledger = fusion_ledger.read_ledger(trials)
    except WarpsmithError as error:
        if not problems:
            problems.append(_sentence(context, error))
    contents.problems += problems
    text = program_trials.program_page(
        trials.name, records, total, total.files if total else (), remaining, PageContext(ledger=ledger)
    )
    folder = trials.folder.parent
    sources = (trials.folder / trial_store.TOTAL, folder / region_file.REGIONS_FILE)
    source = next((contents.archive.cite(path) for path in sources if path.is_file()), None)
    cited = {entry.number: contents.archive.cite(entry.path) for entry in stored}
    around = context.addresses.surroundings(address, folder, source, numbered=cited)
    page = build_page(
        "program",
        address,
        title=trials.name,
        section=addresses.CAMPAIGNS,
        found_by=(_text(trials.name, address, "program", " ".join(r.plan.entry for r in records.values())),),
        body=render_markdown(_without_notice(text), around),
        records=list(cited.items()),
        analyses=list(_analyses(context, folder)),
        others=list(_other_pages(context, folder, address)),
        problems=problems,
        note=note,
    )
    return page, len(records)


def _analyses(context: SiteContext, folder: Path) -> Iterator[tuple[str, str, object]]:
    """Yield the number, the text and the record of each analysis of a program, the latest first."""
    for path in sorted((folder / "analyses").glob("[0-9]*.json"), key=files.number_order, reverse=True):
        try:
            analysis = analysis_store.read_analysis(path)
        except WarpsmithError as error:
            context.contents.note(error)
            continue
        text = analysis_text.format_analysis(analysis)
        yield path.stem, escape_code(text), context.contents.archive.cite(path)


def _other_pages(context: SiteContext, folder: Path, address: str) -> Iterator[tuple[str, Html]]:
    """Yield the name and the text of every other page in a program's folder, such as a ledger of fusions."""
    for path in sorted(folder.glob("*.md")):
        if path.name != program_trials.PAGE_NAME:
            text = path.read_text(encoding="utf-8", errors="replace")
            yield (
                path.stem,
                render_markdown(text, context.addresses.surroundings(address, folder, raise_headings=2)),
            )


def _repositories(context: SiteContext) -> Iterator[RepoCampaign]:
    for path in sorted((context.project.devlog / "repo").glob(f"*/{repo_store.MANIFEST}")):
        if manifest := read_model(context.contents, path, RepoManifest):
            yield RepoCampaign(context.project, manifest)


def _repository_page(context: SiteContext, campaign: RepoCampaign) -> tuple[SitePage, int]:
    address, contents = addresses.repository_address(campaign.name), context.contents
    stored, faults = campaign.ledger.read_sound()
    problems = [_sentence(context, error) for _, error in faults]
    final = None
    try:
        final = campaign.final()
    except WarpsmithError as error:
        problems.append(_sentence(context, error))
    contents.problems += problems
    records = tuple(entry.record for entry in stored)
    text = repo.repo_page(repo.RepoContents(manifest=campaign.manifest, records=records, final=final))
    final_file = campaign.folder / repo_store.FINAL
    source = contents.archive.cite(final_file) if final and final_file.is_file() else None
    cited = {entry.number: contents.archive.cite(entry.path) for entry in stored}
    around = context.addresses.surroundings(address, campaign.folder, source, numbered=cited)
    page = build_page(
        "program",
        address,
        title=campaign.name,
        section=addresses.CAMPAIGNS,
        found_by=(_text(campaign.name, address, "repository", " ".join(r.plan.hypothesis for r in records)),),
        body=render_markdown(_without_notice(text), around),
        records=list(cited.items()),
        analyses=[],
        others=[],
        problems=problems,
        note="",
    )
    return page, len(records)


def _rank_page(context: SiteContext, campaign: RankCampaign) -> tuple[SitePage, int]:
    contents = context.contents
    address = addresses.rank_campaign_address(campaign.op, campaign.target, campaign.ranks)
    stored, faults = campaign.ledger.read_sound()
    problems = [_sentence(context, error) for _, error in faults]
    definition = stored[-1].record.evaluation.provenance.definition_sha256 if stored else ""
    best, race = rank_rounds.last_accepted_round(stored, definition), None
    try:
        race = rank_race.read_rank_race(campaign, best) if best else None
    except WarpsmithError as error:
        problems.append(_sentence(context, error))
    contents.problems += problems
    records = [entry.record for entry in stored]
    text = ranks.rank_page(campaign, records, best.record if best else None, race)
    source = contents.archive.cite(rank_race.rank_race_path(campaign)) if race else None
    cited = {entry.number: contents.archive.cite(entry.path) for entry in stored}
    around = context.addresses.surroundings(address, campaign.ledger.folder.parent, source, numbered=cited)
    summary = f"An operator over {campaign.ranks} ranks of {campaign.target}"
    hypotheses = " ".join(record.hypothesis for record in records)
    page = build_page(
        "program",
        address,
        title=campaign.name,
        section=addresses.CAMPAIGNS,
        found_by=(SearchText(campaign.name, address, "operator", summary, campaign.op, "", hypotheses),),
        body=render_markdown(text, around),
        records=list(cited.items()),
        analyses=[],
        others=[],
        problems=problems,
        note="",
    )
    return page, len(records)


def _text(name: str, address: str, kind: str, body: str) -> SearchText:
    return SearchText(
        name, address, kind, f"A whole {kind}" if kind == "program" else f"A kernel in its {kind}", kind, "", body
    )


def _sentence(context: SiteContext, error: Exception) -> str:
    return str(error).replace(f"{context.project.root}/", "")


def _without_notice(text: str) -> str:
    lines = text.splitlines()
    return "\n".join(lines[1:] if lines and lines[0].startswith("<!--") else lines)
