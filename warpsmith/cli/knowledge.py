"""`warpsmith knowledge`: search, show, check and index what is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

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
    """Find entries, best first; refuted ones come last and say so."""
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
        console.out(f"{hit.id}{mark}: {hit.title}\n    when: {hit.when}\n    {hit.path}")
    if len(found) > limit:
        console.stderr().print(f"{len(found) - limit} more; narrow the search or raise --limit.")
    if not found:
        console.stderr().print(f"No entry of {len(catalog.entries)} matches; use fewer or other words.")


def show(
    id: Annotated[str, typer.Argument(help="The entry's id.")],
    json: Json = False,
) -> None:
    """Print one entry."""
    from warpsmith import project
    from warpsmith.cli import console
    from warpsmith.knowledge.catalog import Catalog

    at_hand = project.find()
    entry = Catalog.load(at_hand).get(id)
    if json:
        console.out_json(entry)
    else:
        console.out((at_hand.root / entry.path).read_text(encoding="utf-8"))


def check(json: Json = False) -> None:
    """Check the project's knowledge: form, links, evidence, hardware pages, index."""
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
    """Render the index of the project's knowledge."""
    from warpsmith import project
    from warpsmith.cli import console
    from warpsmith.errors import BadEntry
    from warpsmith.knowledge import index

    at_hand = project.find()
    path: Path = index.path(at_hand)
    if not check:
        path = index.refresh(at_hand)
    elif index.stale(at_hand):
        raise BadEntry(f"{at_hand.relative(path)} is out of date; run `warpsmith knowledge index`.")
    console.out(at_hand.relative(path))


def register(app: typer.Typer) -> None:
    """Add the group to the command."""
    group = typer.Typer(
        name="knowledge", help="Search, show and check what is known.", no_args_is_help=True, rich_markup_mode=None
    )
    for command in (search, show, check, index):
        group.command()(command)
    app.add_typer(group)
