"""`warpsmith knowledge`: search, show, check and index what is known; list the symptoms that lead to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from warpsmith.core.knowledge import HitRate

Json = Annotated[bool, typer.Option("--json", help="Print the models as JSON.")]
Kind = Literal["optimization", "anti-pattern"]


def search(
    words: Annotated[list[str] | None, typer.Argument(help="What to look for; none: all entries.")] = None,
    kind: Annotated[Kind | None, typer.Option(help="Only entries of this kind.")] = None,
    language: Annotated[str | None, typer.Option(help="Shared entries and those of this language.")] = None,
    target: Annotated[str | None, typer.Option(help="Entries that hold on this target: gpu, cpu, h200.")] = None,
    metric: Annotated[str | None, typer.Option(help="Entries that move this metric.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 10,
    json: Json = False,
) -> None:
    """Find entries, best first: by words, or by a symptom such as `occupancy is low`; refuted ones last."""
    from warpsmith import project
    from warpsmith.cli import console
    from warpsmith.knowledge.catalog import Catalog, Hits

    catalog = Catalog.load(project.find())
    found = catalog.search(words or (), kind=kind, language=language, target=target, metric=metric)
    if json:
        console.out_json(Hits(hits=tuple(found[:limit])))
        return
    for hit in found[:limit]:
        mark = "" if hit.status == "active" else f" [{hit.status}]"
        symptom = f"    symptom: {hit.symptom}\n" if hit.symptom else ""
        rate = f"    {_rate(hit.hit_rate)}\n" if hit.hit_rate else ""
        console.out(f"{hit.id}{mark}: {hit.title}\n{symptom}    when: {hit.when}\n{rate}    {hit.path}")
    if len(found) > limit:
        console.tell(f"{len(found) - limit} more; narrow the search or raise --limit.")
    if not found:
        console.tell(f"No entry of {len(catalog.entries)} matches; use fewer or other words.")


def show(
    id: Annotated[str, typer.Argument(help="The entry's id.")],
    json: Json = False,
) -> None:
    """Print one entry, and the rounds and trials of this project that applied it."""
    from warpsmith import project
    from warpsmith.cli import console
    from warpsmith.knowledge.catalog import Catalog

    at_hand = project.find()
    entry = Catalog.load(at_hand).get(id)
    if json:
        console.out_json(entry)
        return
    console.out((at_hand.root / entry.path).read_text(encoding="utf-8"))
    if rate := entry.hit_rate:
        console.out(f"\n## In this project\n\n{_rate(rate)}\n\n")
        for one in rate.tries:
            gain = "not measured" if one.gain is None else f"{100 * one.gain:+.1f} %"
            console.out(f"- {one.operator} on {one.target}, {one.solution}: {one.verdict}, {gain} ({one.record})")


def _rate(rate: HitRate) -> str:
    return rate.text + (f"; demoted: {rate.demoted}" if rate.demoted else "")


def symptoms(json: Json = False) -> None:
    """List the symptoms that lead to entries, with the metrics that show them."""
    from warpsmith import project
    from warpsmith.cli import console
    from warpsmith.core.knowledge import SymptomTable
    from warpsmith.knowledge import symptoms

    known = symptoms.known(project.find())
    if json:
        console.out_json(SymptomTable(symptoms=known))
        return
    for symptom in known:
        shown = ", ".join(f"{metric} {reading}" for metric, reading in symptom.shows.items())
        parts = {
            "shown by": shown,
            "try": ", ".join(symptom.optimizations),
            "rule out": ", ".join(symptom.anti_patterns),
        }
        console.out("\n    ".join([symptom.title, *(f"{part}: {text}" for part, text in parts.items() if text)]))


def check(json: Json = False) -> None:
    """Check the project's knowledge: form, evidence, hardware pages, symptoms, links, generated pages."""
    from warpsmith import project
    from warpsmith.cli import console
    from warpsmith.errors import BadEntry
    from warpsmith.knowledge.check import Problems
    from warpsmith.knowledge.check import check as find_problems

    at_hand = project.find()
    problems = find_problems(at_hand)
    if json:
        console.out_json(Problems(problems=tuple(problems)))
    else:
        for problem in problems:
            console.out(problem.message)
    if problems:
        many = "problem" if len(problems) == 1 else "problems"
        raise BadEntry(f"{at_hand.relative(at_hand.knowledge)} has {len(problems)} {many}; mend what is named.")


def index(
    check: Annotated[bool, typer.Option("--check", help="Only say whether it is up to date.")] = False,
) -> None:
    """Render the front page and the index of the project's knowledge."""
    from warpsmith import project
    from warpsmith.cli import console
    from warpsmith.errors import BadEntry
    from warpsmith.knowledge import index

    at_hand = project.find()
    if check and (stale := index.stale(at_hand)):
        raise BadEntry(f"{at_hand.relative(stale[0])} is out of date; run `warpsmith knowledge index`.")
    pages = index.render(at_hand) if check else index.refresh(at_hand)
    console.out("\n".join(at_hand.relative(page) for page in pages))


def register(app: typer.Typer) -> None:
    """Add the group to the command."""
    group = typer.Typer(
        name="knowledge", help="Search, show and check what is known.", no_args_is_help=True, rich_markup_mode=None
    )
    for command in (search, show, symptoms, check, index):
        group.command()(command)
    app.add_typer(group)
