"""`warpsmith evidence`: whether the records still stand for what they judged, and judging one of them again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.core.evaluation import Evaluation
    from warpsmith.core.evidence import Older, Standing

Json = Annotated[bool, typer.Option("--json", help="Print the model as JSON.")]


def check(json: Json = False) -> None:
    """Find records whose version or definition has changed, and pages that no record backs any more.

    Exit code 1: something is stale. A record of an older gate is shown and is no error.
    """
    from warpsmith import project
    from warpsmith.campaign.evidence import evidence
    from warpsmith.cli import console
    from warpsmith.errors import SolutionFailed
    from warpsmith.reporting import pages

    here = project.find()
    standing = evidence.check(here, pages.every(here))
    if json:
        console.out_json(standing)
    else:
        console.out("\n".join(_told(standing)))
    if standing.stale:
        raise typer.Exit(SolutionFailed.exit_code)


def rerun(
    record: Annotated[Path, typer.Argument(help="A round's folder or record.json, a final.json, or a verdict.")],
    target: Annotated[str | None, typer.Option(help="The device kind; by default the record's.")] = None,
    json: Json = False,
) -> None:
    """Judge a record's version again as it was judged then: HOLDS, WEAKER, REFUTED or UNKNOWN.

    The record does not change. Exit code 1: the claim is weaker or refuted; 4: it could not be judged here.
    """
    from warpsmith import project
    from warpsmith.campaign import rerun
    from warpsmith.cli import console
    from warpsmith.core.evidence import Claim
    from warpsmith.errors import MachineFailed, SolutionFailed
    from warpsmith.reporting import pages

    here = project.find()
    with console.progress() as tell:
        judged, made, path = rerun.rerun(here, record, target, tell)
    if judged.campaign:
        pages.render(judged.campaign)
    if json:
        console.out_json(made)
    else:
        console.out("\n".join(_beside(judged.evaluation, made.evaluation)))
        console.out(f"{made.claim}: {made.reason}\n{here.relative(path)}")
    if made.claim is Claim.UNKNOWN:
        raise typer.Exit(MachineFailed.exit_code)
    if made.claim is not Claim.HOLDS:
        raise typer.Exit(SolutionFailed.exit_code)


def register(app: typer.Typer) -> None:
    """Add the group to the command."""
    group = typer.Typer(
        name="evidence", help="Check and renew what records claim.", no_args_is_help=True, rich_markup_mode=None
    )
    for command in (check, rerun):
        group.command()(command)
    app.add_typer(group)


def _told(standing: Standing) -> Iterator[str]:
    from warpsmith.reporting.format import counted

    counts = (counted(standing.rounds, "round"), counted(standing.citations, "citation"))
    yield f"evidence: {', '.join(counts)}, {len(standing.stale)} stale"
    yield from (finding.message for finding in standing.stale)
    shown = [older for older in standing.older if older.best or older.renewed]
    yield from map(_older, shown)
    if others := len(standing.older) - len(shown):
        yield f"{counted(others, 'more record')} of older gates: `warpsmith evidence check --json` lists them"


def _older(older: Older) -> str:
    from warpsmith.core.evaluation import GATE_VERSION
    from warpsmith.reporting import facts

    if older.renewed:
        return f"{older.solution} was judged by gate {older.gate_version}, {facts.renewed(older.renewed)}"
    return (
        f"{older.solution} is judged by gate {older.gate_version}; this is gate {GATE_VERSION}:"
        f" `warpsmith evidence rerun {older.record}` renews it"
    )


def _beside(before: Evaluation, after: Evaluation) -> Iterator[str]:
    """Both judgements, side by side."""
    from warpsmith.reporting import facts, format

    rows = [("", *(f"gate {e.provenance.gate_version}, {e.provenance.measured}" for e in (before, after)))]
    rows.append(("verdict", before.decision.verdict, after.decision.verdict))
    for side in dict.fromkeys((*facts.sides(before), *facts.sides(after))):
        means = (format.speedup(e.aggregate(side)) for e in (before, after))
        rows.append((f"vs {side}", *means))
    if before.energy or after.energy:
        means = (format.speedup(e.energy.aggregate if e.energy else None) for e in (before, after))
        rows.append(("joules vs best", *means))
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True)).rstrip()
