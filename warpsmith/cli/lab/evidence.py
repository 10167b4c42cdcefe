"""`warpsmith evidence`: check that records still match their files, and judge the version of a record again."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from warpsmith.cli.options import Json, Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.campaign.drift import Drift
    from warpsmith.core.evaluation import Evaluation
    from warpsmith.core.evidence import Older, Standing
    from warpsmith.ledger.store import Ledger


def evidence_check_command(as_json: Json = False) -> None:
    """Find records whose version or definition has changed, records of rounds and trials that are not whole or not
    signed as they are, and pages that no record supports.

    Exit code 1: something is stale, or a text by an agent states a figure that no record supports. A record of
    an older gate is listed and is not an error.
    """
    from warpsmith.campaign.evidence import evidence_check
    from warpsmith.campaign.evidence.contents import hash_contents
    from warpsmith.campaign.rounds import rank_rounds
    from warpsmith.cli import console
    from warpsmith.errors import LeftOut, SolutionFailed
    from warpsmith.program.trials import trial_store
    from warpsmith.project import find_project
    from warpsmith.repo import store as repo_store
    from warpsmith.reporting import pages

    project = find_project()
    ledgers: list[Ledger[Any]] = [
        *(trials.ledger for trials in trial_store.list_trials(project)),
        *repo_store.list_repo_ledgers(project),
        *rank_rounds.list_rank_ledgers(project),
    ]
    contents = hash_contents(project)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOut)  # a finding names it
        standing = evidence_check.check_evidence(
            project, pages.expected_pages(project, contents), ledgers, contents
        )
    if as_json:
        console.out_json(standing)
    else:
        console.out("\n".join(_standing_lines(standing)))
    if standing.stale:
        raise typer.Exit(SolutionFailed.exit_code)


def evidence_rerun_command(
    record: Annotated[
        Path, typer.Argument(help="Folder of a round or its record.json, a final.json, or a verdict.")
    ],
    target: Annotated[str | None, typer.Option(help="Device kind; by default that of the record.")] = None,
    context: Annotated[
        str | None, typer.Option(help="Machine that judges, or `local`; by default that of the campaign.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge a record's version again with the same settings: HOLDS, WEAKER, REFUTED or UNKNOWN.

    The record does not change. Exit code 1: the claim is weaker or refuted; 4: the version could not be judged.
    """
    from warpsmith.campaign import rerun
    from warpsmith.cli import console
    from warpsmith.core.evidence import Claim
    from warpsmith.errors import MachineFailed, SolutionFailed
    from warpsmith.project import find_project
    from warpsmith.reporting import pages

    project = find_project()
    with console.progress() as tell:
        original, rerun_record, path = rerun.rerun_record(project, record, target, tell, context)
    if original.campaign:
        pages.render_campaign(original.campaign)
    if as_json:
        console.out_json(rerun_record)
    else:
        console.out("\n".join(_comparison_table(original.evaluation, rerun_record.evaluation)))
        console.out(f"{rerun_record.claim}: {rerun_record.reason}\n{project.relative(path)}")
    if rerun_record.claim is Claim.UNKNOWN:
        raise typer.Exit(MachineFailed.exit_code)
    if rerun_record.claim is not Claim.HOLDS:
        raise typer.Exit(SolutionFailed.exit_code)


def evidence_drift_command(
    target: Target = None,
    compiled: Annotated[
        Path | None,
        typer.Option(
            help="Judge nothing: compile with the compiler in this folder of `pip install --target`, and with the"
            " one that is installed, and show whose machine code differs."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge the best versions of a target again that were judged under other libraries, and show what changed.

    Each result is kept as `rerun` keeps it. A claim that no longer holds names the libraries that differ. Exit
    code 1: a claim is weaker or refuted; 4: a version could not be judged.
    """
    if compiled is not None:
        _compare_compiled(compiled, target, as_json)
        return
    from warpsmith.campaign import drift
    from warpsmith.cli import console
    from warpsmith.core.evidence import Claim
    from warpsmith.errors import MachineFailed, SolutionFailed
    from warpsmith.lab.machine import hardware
    from warpsmith.project import find_project
    from warpsmith.reporting import pages

    project = find_project()
    chosen = target or hardware.require_local_target(project).id
    drifts, lines = [], set()
    with console.progress() as tell:
        for result in drift.measure_drift(project, chosen, tell):
            drifts.append(result)
            if as_json:
                console.out_line_json(result)
            elif (line := _drift_line(result)) not in lines:  # several campaigns may have one best version
                lines.add(line)
                console.out(line)
    claims = {result.claim for result in drifts}
    if drifts:
        pages.render_all(project)
    if not as_json and not drifts:
        console.out(f"no best version on {chosen} was judged under other libraries")
    if not as_json and Claim.UNKNOWN in claims:
        for reason in dict.fromkeys(result.reason for result in drifts if result.claim is Claim.UNKNOWN):
            console.out(f"UNKNOWN: {reason}")
        console.out("Without a device, --compiled FOLDER compares what two releases of a compiler make of them.")
    if claims & {Claim.WEAKER, Claim.REFUTED}:
        raise typer.Exit(SolutionFailed.exit_code)
    if Claim.UNKNOWN in claims:
        raise typer.Exit(MachineFailed.exit_code)


def _drift_line(result: Drift) -> str:
    """Return the line of one version; why one is UNKNOWN stands once below all."""
    from warpsmith.core.evidence import Claim

    reason = "" if result.claim is Claim.UNKNOWN else f": {result.reason}"
    return f"{result.solution}: {result.claim} under {result.differences}{reason}"


def _compare_compiled(folder: Path, target: str | None, as_json: bool) -> None:
    """Print what two releases of a compiler make of the best versions; exit code 4: one of them fails."""
    from warpsmith.campaign.evidence import compiled_drift
    from warpsmith.cli import console
    from warpsmith.errors import MachineFailed
    from warpsmith.project import find_project

    changed, drifts = 0, []
    with console.progress() as tell:
        for result in compiled_drift.compile_drift(find_project(), folder, target, tell):
            drifts.append(result)
            changed += bool(result.changes)
            if as_json:
                console.out_line_json(result)
                continue
            outcome = result.failure or "; ".join(result.changes) or "no figure changed"
            console.out(f"{result.solution} for {result.arch}: {outcome}")
    if not as_json:
        releases = {f"{name} {old} -> {new}" for each in drifts for name, (old, new) in each.packages.items()}
        console.out(
            f"{changed} of {len(drifts)} best versions changed: {', '.join(sorted(releases)) or 'none here'}"
        )
    if any(result.failure for result in drifts):
        raise typer.Exit(MachineFailed.exit_code)


def register(app: typer.Typer) -> None:
    """Add the group to the command."""
    group = typer.Typer(
        help="Check and renew the claims of records.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("check")(evidence_check_command)
    group.command("rerun")(evidence_rerun_command)
    group.command("drift")(evidence_drift_command)
    app.add_typer(group, name="evidence")


def _standing_lines(standing: Standing) -> Iterator[str]:
    from warpsmith.reporting.format import count_noun

    counts = [count_noun(standing.rounds, "round"), count_noun(standing.citations, "citation")]
    counts += [count_noun(standing.maps, "map")] if standing.maps else []
    yield f"evidence: {', '.join(counts)}, {len(standing.stale)} stale"
    yield from (finding.message for finding in standing.stale)
    important = [older for older in standing.older if older.best or older.renewed]
    yield from map(_older_line, important)
    if others := len(standing.older) - len(important):
        yield f"{count_noun(others, 'more record')} of older gates: `warpsmith evidence check --json` lists them"
    for other in standing.toolchains:
        versions = count_noun(len(other.records), "best version")
        yield f"{versions} judged under {other.differences}: `warpsmith evidence drift` judges them again"
    if count := len(standing.unsupported):
        where = "in texts from before they were checked: `warpsmith evidence check --json` lists them"
        yield f"{count_noun(count, 'figure')} without a record {where}"


def _older_line(older: Older) -> str:
    from warpsmith.core.evaluation import GATE_VERSION
    from warpsmith.reporting import facts

    if older.renewed:
        return f"{older.solution} was judged by gate {older.gate_version}, {facts.rerun_text(older.renewed)}"
    return (
        f"{older.solution} was judged by gate {older.gate_version}; this is gate {GATE_VERSION}:"
        f" `warpsmith evidence rerun {older.record}` renews it"
    )


def _comparison_table(before: Evaluation, after: Evaluation) -> Iterator[str]:
    """Yield both evaluations side by side, one line a row."""
    from warpsmith.reporting import facts, format

    rows = [("", *(f"gate {e.provenance.gate_version}, {e.provenance.measured}" for e in (before, after)))]
    rows.append(("verdict", before.decision.verdict, after.decision.verdict))
    for side in dict.fromkeys((*facts.timed_sides(before), *facts.timed_sides(after))):
        means = (format.speedup(e.aggregate(side)) for e in (before, after))
        rows.append((f"vs {side}", *means))
    if before.energy or after.energy:
        means = (format.speedup(e.energy.aggregate if e.energy else None) for e in (before, after))
        rows.append(("joules vs best", *means))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
