"""Context of the pages: the contents of the site, the knowledge, and the address of each thing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from warpsmith.campaign.history.store import MANIFEST
from warpsmith.core.hardware import Target
from warpsmith.core.knowledge import SymptomRow
from warpsmith.errors import BadEntry, MachineLacks
from warpsmith.knowledge import hardware, symptom_page
from warpsmith.knowledge.catalog import Catalog
from warpsmith.knowledge.search import symptoms, synonyms
from warpsmith.knowledge.symptom_page import SymptomPage
from warpsmith.program.trials import trial_store
from warpsmith.project import Project
from warpsmith.repo import store as repo_store
from warpsmith.reporting import pages, repo
from warpsmith.reporting.programs import program_trials
from warpsmith.site import addresses
from warpsmith.site.addresses import SiteMap
from warpsmith.site.contents import Contents, read_contents


@dataclass(frozen=True)
class ChipPage:
    """The hardware page of a device kind."""

    target: Target
    """Its front matter."""
    path: Path
    """Its file."""


@dataclass(frozen=True)
class SiteContext:
    """Everything that pages are made from."""

    contents: Contents
    """Campaigns, races and best versions."""
    addresses: SiteMap
    """Place of each file that has a page."""
    catalog: Catalog
    """Knowledge entries of all layers."""
    symptoms: tuple[SymptomRow, ...]
    """Complaints in plain words with the entries that deal with them."""
    symptom_pages: dict[str, SymptomPage]
    """Pages of the symptoms that the classifier detects, by id."""
    chips: dict[str, ChipPage]
    """Hardware pages by id."""
    synonyms: tuple[tuple[str, ...], ...]
    """Groups of phrases of one meaning, for the search."""
    languages: tuple[str, ...]
    """Languages of all judged versions; the place of one decides its colour."""

    @property
    def project(self) -> Project:
        """The project of the site."""
        return self.contents.project


def read_context(project: Project) -> SiteContext:
    """Read everything that the pages of a project show; one bad file never stops the rest."""
    contents = read_contents(project)
    where = SiteMap(project, contents.archive)
    catalog = Catalog.load(project)
    contents.problems += catalog.skipped
    for entry in catalog.entries.values():
        where.add_knowledge(project.root / entry.path, addresses.entry_address(entry.id))
    languages = sorted({r.evaluation.language for history in contents.campaigns for r in history.rounds})
    context = SiteContext(
        contents,
        where,
        catalog,
        _read_symptoms(contents),
        _read_symptom_pages(contents, where),
        _read_chips(contents, where),
        _read_synonyms(contents),
        tuple(languages),
    )
    _add_files(context)
    return context


def _read_symptoms(contents: Contents) -> tuple[SymptomRow, ...]:
    try:
        return symptoms.merge_symptom_tables(contents.project)
    except BadEntry as error:
        contents.note(error)
        return ()


def _read_synonyms(contents: Contents) -> tuple[tuple[str, ...], ...]:
    try:
        return synonyms.merge_synonyms(contents.project)
    except BadEntry as error:
        contents.note(error)
        return ()


def _read_symptom_pages(contents: Contents, where: SiteMap) -> dict[str, SymptomPage]:
    pages_by_id: dict[str, SymptomPage] = {}
    for layer in contents.project.knowledge_layers:
        for path in symptom_page.symptom_paths(layer):
            try:
                pages_by_id.setdefault(path.stem, symptom_page.read_symptom_page(contents.project, path))
            except BadEntry as error:
                contents.note(error)
                continue
            where.add_knowledge(path, addresses.symptom_address(path.stem))
    return dict(sorted(pages_by_id.items()))


def _read_chips(contents: Contents, where: SiteMap) -> dict[str, ChipPage]:
    pages_by_id: dict[str, ChipPage] = {}
    for layer in contents.project.knowledge_layers:
        for path in hardware.hardware_paths(layer):
            try:
                target = hardware.read_hardware_page(contents.project, path)
            except (BadEntry, MachineLacks) as error:
                contents.note(error)
                continue
            pages_by_id.setdefault(target.id, ChipPage(target, path))
            where.add_knowledge(path, addresses.chip_address(target.id))
    used = Counter(history.campaign.manifest.target for history in contents.campaigns)

    def rank(item: tuple[str, ChipPage]) -> tuple[int, bool, str, str]:
        id, chip = item
        return -used[id], chip.target.kind != "gpu", chip.target.vendor, id

    return dict(sorted(pages_by_id.items(), key=rank))  # those that the project works on come first


def _add_files(context: SiteContext) -> None:
    """Add the files of the project whose content a page shows."""
    project, where = context.project, context.addresses
    for name, address in (
        ("index.md", addresses.KNOWLEDGE),
        ("README.md", addresses.KNOWLEDGE),
        ("symptoms.yaml", addresses.SYMPTOMS),
    ):
        where.knowledge[name] = address
    where.files |= {
        (project.devlog / "README.md").resolve(): addresses.FRONT,
        (project.devlog / "calibration.md").resolve(): addresses.TRUST,
    }
    for op in context.contents.operators:
        address = addresses.operator_address(op)
        where.files[(project.devlog / op / f"{op}.md").resolve()] = address
        where.files[project.definition_path(op).resolve()] = f"{address}#definition"
    for history in context.contents.campaigns:
        folder, address = history.campaign.folder, addresses.campaign_address(history.name)
        where.files |= {
            (folder / name).resolve(): address for name in (pages.REPORT, MANIFEST, "performance_trend.md")
        }
        for stored in history.stored:
            version = project.root / stored.record.evaluation.provenance.solution
            where.files[version.resolve()] = addresses.version_address(history.operator, stored.record.solution)
    for races in context.contents.races.values():
        for race in races:
            page = project.root / race.citation.path
            anchor = f"race-{race.number}"
            where.files[page.with_name("race.md").resolve()] = (
                f"{addresses.operator_address(race.record.definition)}#{anchor}"
            )
    for trials in trial_store.list_trials(project):
        where.files[(trials.folder.parent / program_trials.PAGE_NAME).resolve()] = addresses.program_address(
            trials.name
        )
    for path in sorted((project.devlog / "repo").glob(f"*/{repo_store.MANIFEST}")):
        where.files[path.with_name(repo.REPORT).resolve()] = addresses.repository_address(path.parent.name)
