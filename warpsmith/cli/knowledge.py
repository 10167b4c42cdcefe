"""`warpsmith knowledge`: search, show, check and index the entries, and list the symptoms that lead to them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from warpsmith.cli.options import Json

if TYPE_CHECKING:
    from warpsmith.campaign.firewall import Firewall
    from warpsmith.core.knowledge import HitRate
    from warpsmith.knowledge.catalog import Catalog
    from warpsmith.project import Project

Kind = Literal["optimization", "anti-pattern"]

_HIDING = re.compile(rb"^(?:withheld:|earlier_work: hidden$)", re.MULTILINE)
"""Line of the manifest of a campaign that hides knowledge from its agents."""


def knowledge_search_command(
    words: Annotated[
        list[str] | None, typer.Argument(help="Words to search for; without any, all entries.")
    ] = None,
    kind: Annotated[Kind | None, typer.Option(help="Only entries of this kind.")] = None,
    language: Annotated[str | None, typer.Option(help="Only shared entries and entries of this language.")] = None,
    target: Annotated[
        str | None, typer.Option(help="Only entries that apply to this target: gpu, cpu, h200.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Only entries that change this metric.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries.")] = 6,
    as_json: Json = False,
) -> None:
    """Find entries by a question, by words or by a symptom such as `occupancy is low`; best first.

    Synonyms count, and refuted entries come last. Exit code 1: nothing fits.
    """
    from warpsmith.cli import console
    from warpsmith.errors import SolutionFailed
    from warpsmith.knowledge.catalog import NEAREST, Hits, fitting_hits
    from warpsmith.project import find_project

    catalog, wall = _visible_catalog(find_project())
    ranked = catalog.search(words or (), kind=kind, language=language, target=target, metric=metric)
    hits = fitting_hits(ranked, searched=bool(words))
    nearest = () if hits else tuple(hit.id for hit in ranked[:NEAREST])
    for problem in catalog.skipped:
        console.tell(f"Left out: {problem}")
    if wall:
        hits = [hit.model_copy(update={"hit_rate": wall.visible_rate(hit.hit_rate)}) for hit in hits]
    if as_json:
        console.out_json(Hits(hits=tuple(hits[:limit]), nearest=nearest))
    for hit in () if as_json else hits[:limit]:
        mark = "" if hit.status == "active" else f" [{hit.status}]"
        symptom = f"    symptom: {hit.symptom}\n" if hit.symptom else ""
        rate = f"    {_rate_text(hit.hit_rate)}\n" if hit.hit_rate else ""
        console.out(f"{hit.id}{mark}: {hit.title}\n{symptom}    when: {hit.when}\n{rate}    {hit.path}")
    if len(hits) > limit:
        console.tell(f"{len(hits) - limit} more; narrow the search or raise --limit.")
    if not hits:
        hint = f"nearest: {', '.join(nearest)}" if nearest else "use other words, or the name of a metric"
        console.tell(f"Nothing fits: none of {len(catalog.entries)} entries is about this; {hint}.")
        raise typer.Exit(SolutionFailed.exit_code)


def knowledge_show_command(
    id: Annotated[str, typer.Argument(help="Id of the entry.")],
    as_json: Json = False,
) -> None:
    """Print one entry, and the rounds and trials of this project that applied it."""
    from warpsmith.cli import console
    from warpsmith.project import find_project

    project = find_project()
    catalog, wall = _visible_catalog(project)
    entry = catalog.get(id)
    if wall:
        entry = wall.visible_entry(entry)
    if as_json:
        console.out_json(entry)
        return
    page = (project.root / entry.path).read_text(encoding="utf-8")
    console.out(wall.visible_text(page) if wall else page)
    if rate := entry.hit_rate:
        console.out(f"\n## In this project\n\n{_rate_text(rate)}\n\n")
        for attempt in rate.tries:
            gain = "not measured" if attempt.gain is None else f"{100 * attempt.gain:+.1f} %"
            console.out(
                f"- {attempt.operator} on {attempt.target}, {attempt.solution}: {attempt.verdict}, {gain}"
                f" ({attempt.record})"
            )


def _visible_catalog(project: Project) -> tuple[Catalog, Firewall | None]:
    """Return the entries that the current campaign's agents may see, and its firewall if it has one.

    Where no campaign hides anything, which one is current does not matter, and finding out would take a while.
    """
    manifests = project.devlog.glob("*/*/manifest.yaml")
    if any(_HIDING.search(path.read_bytes()) for path in manifests):
        from warpsmith.campaign import experiment, firewall
        from warpsmith.campaign.history import store

        campaign = store.find_current_campaign(project)
        return experiment.load_catalog(project, campaign), firewall.campaign_firewall(campaign)
    from warpsmith.knowledge.catalog import Catalog

    return Catalog.load(project), None


def _rate_text(rate: HitRate) -> str:
    return rate.text + (f"; demoted: {rate.demoted}" if rate.demoted else "")


def knowledge_symptoms_command(as_json: Json = False) -> None:
    """List the symptoms that lead to entries, with the metrics that show them."""
    from warpsmith.campaign.history import store
    from warpsmith.cli import console
    from warpsmith.core.knowledge import SymptomTable
    from warpsmith.knowledge.search import symptoms
    from warpsmith.project import find_project

    project = find_project()
    campaign = store.find_current_campaign(project)
    withheld = (campaign.manifest.withheld if campaign else None) or ()
    table = symptoms.merge_symptom_tables(project, without=withheld)
    if as_json:
        console.out_json(SymptomTable(symptoms=table))
        return
    for symptom in table:
        readings = ", ".join(f"{metric} {reading}" for metric, reading in symptom.shows.items())
        parts = {
            "shown by": readings,
            "try": ", ".join(symptom.optimizations),
            "rule out": ", ".join(symptom.anti_patterns),
        }
        console.out("\n    ".join([symptom.title, *(f"{part}: {text}" for part, text in parts.items() if text)]))


def knowledge_prior_art_command(
    op: Annotated[str | None, typer.Argument(help="Operator; without one, all families.")] = None,
    as_json: Json = False,
) -> None:
    """Print the fastest known public approaches to an operator, each with its file at a pinned commit."""
    from warpsmith.cli import console
    from warpsmith.core.knowledge import PriorArtTable
    from warpsmith.errors import SolutionFailed
    from warpsmith.knowledge import prior_art
    from warpsmith.lab.operator import definition_file
    from warpsmith.project import find_project

    project = find_project()
    if op is None:
        rows = list(prior_art.merge_prior_art(project))
    else:
        definition = definition_file.load_definition(project.definition_path(op)).definition
        rows = prior_art.find_prior_art(project, definition)
    if as_json:
        console.out_json(PriorArtTable(prior_art=tuple(rows)))
    for row in () if as_json else rows:
        approaches = [f"    {approach.text}\n        {approach.url}" for approach in row.approaches]
        console.out("\n".join([f"{row.family}: {row.title} (read {row.checked})", *approaches]))
    if not rows:
        console.tell("No family fits; `warpsmith knowledge prior-art` lists all.")
        raise typer.Exit(SolutionFailed.exit_code)


def knowledge_check_command(as_json: Json = False) -> None:
    """Check the project's knowledge: format, evidence, hardware pages, symptoms, links and generated pages."""
    from warpsmith.cli import console
    from warpsmith.errors import BadEntry
    from warpsmith.knowledge.check import KnowledgeProblems
    from warpsmith.knowledge.check import check_knowledge as find_problems
    from warpsmith.project import find_project

    project = find_project()
    problems = find_problems(project)
    if as_json:
        console.out_json(KnowledgeProblems(problems=tuple(problems)))
    else:
        for problem in problems:
            console.out(problem.message)
    if problems:
        many = "problem" if len(problems) == 1 else "problems"
        raise BadEntry(
            f"{project.relative(project.knowledge)} has {len(problems)} {many}; correct the listed ones."
        )


def knowledge_index_command(
    check: Annotated[bool, typer.Option("--check", help="Only check that the pages are up to date.")] = False,
) -> None:
    """Render the front page and the index of the project's knowledge."""
    from warpsmith.cli import console
    from warpsmith.errors import BadEntry
    from warpsmith.knowledge import index
    from warpsmith.project import find_project

    project = find_project()
    if check and (stale := index.stale_pages(project)):
        raise BadEntry(f"{project.relative(stale[0])} is out of date; run `warpsmith knowledge index`.")
    pages = index.render_pages(project) if check else index.write_pages(project)
    console.out("\n".join(project.relative(page) for page in pages))


def register(app: typer.Typer) -> None:
    """Add the group to the command."""
    group = typer.Typer(
        help="Search, show and check the knowledge.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("search")(knowledge_search_command)
    group.command("show")(knowledge_show_command)
    group.command("symptoms")(knowledge_symptoms_command)
    group.command("prior-art")(knowledge_prior_art_command)
    group.command("check")(knowledge_check_command)
    group.command("index")(knowledge_index_command)
    app.add_typer(group, name="knowledge")
