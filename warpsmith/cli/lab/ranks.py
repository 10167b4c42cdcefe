"""`warpsmith ranks`: judge a version of an operator that several processes compute together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.options import Json
from warpsmith.errors import Ambiguous, MachineFailed, MissingInput, Misuse, SolutionFailed

if TYPE_CHECKING:
    from warpsmith.campaign.rounds.rank_rounds import RankCampaign
    from warpsmith.lab.operator.definition_file import DefinitionFile
    from warpsmith.lab.ranks.judge import RankRequest
    from warpsmith.lab.ranks.models import RankEvaluation
    from warpsmith.project import Project


def ranks_command(
    op: Annotated[str, typer.Argument(help="Operator, or the path of its definition.py.")],
    source: Annotated[
        Path | None,
        typer.Argument(help="Python file of the version, with `run` for one rank; without it, show the rounds."),
    ] = None,
    hypothesis: Annotated[
        str | None,
        typer.Option(
            "--round",
            metavar="HYPOTHESIS",
            help="Judge against the best version so far, and record a round: why should this version be faster?",
        ),
    ] = None,
    against: Annotated[Path | None, typer.Option(help="Another version, which this one must beat.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Run correctness only; record nothing.")] = False,
    target: Annotated[
        str, typer.Option(help="Device kind: `cpu`, with gloo, or a GPU for each rank, with NCCL.")
    ] = "cpu",
    ranks: Annotated[
        int, typer.Option(min=0, help="Number of ranks; 0 is the definition's.", show_default=False)
    ] = 0,
    workload: Annotated[
        list[str] | None, typer.Option(help="Time at this workload alone; may be repeated.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds for a block of calls, after which all ranks are ended.")
    ] = 30,
    out: Annotated[Path | None, typer.Option(help="File of the record; by default under .warpsmith.")] = None,
    final: Annotated[
        bool,
        typer.Option("--final", help="Race the best version against the first one and each --peer; record it."),
    ] = False,
    peer: Annotated[
        list[Path] | None, typer.Option(help="Further version for the final race; may be repeated.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Move records of rounds that are corrupt to a quarantine.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Judge a version over ranks: correctness on all ranks, time of the slowest, decision.

    The definition has `ranks`, and a `shard_axis` for each tensor that the ranks share out. The version runs
    without the sandbox, since ranks must reach each other: judge only code that you trust.

    With --round the verdict is a round, in the devlog: the version must beat the best one of the rounds before it
    on the same target and number of ranks. The first version is the baseline. --final races the best one.

    Exit code 1: the version is wrong or slower; 4: the machine lacks something, or it failed; 6: the gain is
    within the noise.
    """
    from warpsmith.lab.machine import hardware
    from warpsmith.lab.operator import definition_file
    from warpsmith.lab.ranks.judge import RankRequest
    from warpsmith.lab.workers.side import Limits
    from warpsmith.project import find_project

    _refuse_combinations(source, hypothesis, against, check=check, out=out, workload=workload)
    project = find_project()
    path = Path(op) if op.endswith(".py") else project.definition_path(op)
    file = definition_file.load_definition(path, over_ranks=True)
    file = _choose(file, ranks, workload or [])
    hardware.read_target_page(project, target)
    if final:
        if source or hypothesis is not None or against or check or repair or out or workload:
            raise Misuse("--final races the best version of the rounds; name the operator alone, and --peer FILE.")
        for rival in peer or []:
            if not rival.is_file():
                raise MissingInput(f"{rival} does not exist; name the Python file of a version.")
        _race(RankRequest(project, file, path, target=target, limits=Limits(seconds=timeout)), peer or [], as_json)
        return
    if peer:
        raise Misuse("--peer takes part in a final race; add --final, or use --against.")
    if repair or source is None:
        _show_rounds(project, file, target, as_json=as_json, repair=repair)
        return
    request = RankRequest(project, file, source, against, target, timed=not check, limits=Limits(seconds=timeout))
    if hypothesis is not None:
        evaluation, outcome = _judge_round(request, hypothesis)
    else:
        evaluation = _judge(request)
        outcome = "" if check else _record_alone(request, evaluation, out)
    console.out_json(evaluation) if as_json else _print_evaluation(evaluation, outcome)
    _exit_with_verdict(evaluation)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ranks")(ranks_command)


def _refuse_combinations(
    source: Path | None,
    hypothesis: str | None,
    against: Path | None,
    *,
    check: bool,
    out: Path | None,
    workload: list[str] | None,
) -> None:
    if check and (against or out):
        raise Misuse("--check times and records nothing; omit --against and --out, or --check.")
    if hypothesis is not None and (check or against or out or workload):
        raise Misuse(
            "--round judges at all workloads against the best version and records it; omit --check, --against,"
            " --out and --workload, or --round."
        )
    if source is None and (hypothesis is not None or check or against or out):
        raise Misuse("Name the Python file of the version after the operator.")
    for path in (source, against):
        if path is not None and not path.is_file():
            raise MissingInput(f"{path} does not exist; name the Python file of a version.")


def _race(request: RankRequest, peers: list[Path], as_json: bool) -> None:
    """Race the best version, print the gain over each rival, and exit with 1 if the version is wrong."""
    from warpsmith.campaign.rounds import rank_race, rank_rounds

    definition = request.file.definition
    campaign = rank_rounds.RankCampaign(request.project, definition.name, request.target, definition.ranks)
    with rank_rounds.hold_rank_campaign(campaign):
        race = rank_race.race_best_version(campaign, request, peers, _judge)
    if as_json:
        console.out_json(race)
    else:
        rows = [(name, *_race_row(each)) for name, each in race.judgements.items()]
        console.out_table(("against", "gain", "worst workload", "result"), rows)
        console.out(f"round {race.round}: {console.path_from_here(rank_race.rank_race_path(campaign))}")
    if not race.correct:
        raise typer.Exit(SolutionFailed.exit_code)


def _race_row(evaluation: RankEvaluation) -> tuple[str, str, str]:
    mean, decision = evaluation.aggregate, evaluation.decision
    gain = f"{mean.speedup:.2f}x [{mean.interval.low:.2f}, {mean.interval.high:.2f}]" if mean else ""
    worst = f"{mean.worst_workload} {mean.worst:.2f}x" if mean else ""
    if not evaluation.correct:
        return gain, worst, decision.reason if decision else "wrong"
    return gain, worst, "right"


def _judge(request: RankRequest) -> RankEvaluation:
    from dataclasses import replace

    from warpsmith.lab.machine import hardware
    from warpsmith.lab.ranks.judge import judge_ranks
    from warpsmith.lab.ranks.rank_host import open_rank_host

    device = hardware.read_target_page(request.project, request.target).target
    with (
        console.progress() as tell,
        open_rank_host(device, request.file.definition.ranks, tell) as host,
    ):
        return judge_ranks(replace(request, tell=tell), host)


def _judge_round(request: RankRequest, hypothesis: str) -> tuple[RankEvaluation, str]:
    """Judge a version against the best one and record the round; return the judgement and what became of it."""
    from dataclasses import replace

    from warpsmith.campaign.rounds import rank_rounds

    definition, sha256 = request.file.definition, request.file.sha256
    campaign = rank_rounds.RankCampaign(request.project, definition.name, request.target, definition.ranks)
    with rank_rounds.hold_rank_campaign(campaign):
        rank_rounds.refuse_rank_round(campaign, hypothesis, request.source, sha256)
        best = campaign.best(sha256)
        evaluation = _judge(
            replace(
                request,
                against=best.folder / rank_rounds.VERSION if best else None,
                judgement=campaign.count_comparisons() if best else 1,
            )
        )
        if evaluation.decision is None or evaluation.decision.verdict == "INVALID":
            return evaluation, "no round: the machine failed, or the best version did; judge it again"
        stored = rank_rounds.close_rank_round(campaign, hypothesis, request.source, best, evaluation)
    rival = f"against round {best.number}" if best else "the baseline"
    path = console.path_from_here(stored.folder)
    return evaluation, f"round {stored.number}, {rival}: {path}"


def _record_alone(request: RankRequest, evaluation: RankEvaluation, out: Path | None) -> str:
    """Write the record of a judgement that is no round; return what became of it."""
    from warpsmith import files

    digits = evaluation.provenance.solution_sha256[:8]
    name = f"{evaluation.definition}-{request.source.stem}-{digits}-{request.target}-{evaluation.ranks}.json"
    scratch = request.project.scratch / "ranks"
    if out is None:
        files.hide_from_git(scratch)
    record = out or scratch / name
    files.write_file(record, evaluation.model_dump_json(indent=2) + "\n")
    return f"recorded in {console.path_from_here(record)}"


def _show_rounds(project: Project, file: DefinitionFile, target: str, *, as_json: bool, repair: bool) -> None:
    """Print the rounds of an operator, one line each, and the version that stands."""
    from warpsmith.campaign.rounds import rank_rounds

    definition = file.definition
    campaign = rank_rounds.RankCampaign(project, definition.name, target, definition.ranks)
    if repair:
        with rank_rounds.hold_rank_campaign(campaign):
            changes = rank_rounds.repair_rank_rounds(campaign)
        console.out("\n".join(changes) if changes else "Nothing to repair.")
        return
    standing = campaign.standing(file.sha256)
    if as_json:
        console.out_json(standing)
        return
    if not standing.rounds:
        raise MissingInput(
            f'{campaign.name} has no round yet; `warpsmith ranks {definition.name} FILE --round "HYPOTHESIS"`'
            " records one."
        )
    rows = []
    for each in standing.rounds:
        mean = each.evaluation.aggregate
        gain = f"{mean.speedup:.2f}x [{mean.interval.low:.2f}, {mean.interval.high:.2f}]" if mean else ""
        rival = f"round {each.best_round}" if each.best_round else "baseline"
        version = each.evaluation.provenance.solution
        rows.append((str(each.round), each.verdict.value, rival, gain, version, each.hypothesis))
    console.out_table(("round", "verdict", "against", "gain", "version", "hypothesis"), rows)
    if standing.best_round is None:
        console.out("no version stands: none was accepted with the present definition")
    else:
        path = campaign.ledger.folder_of(standing.best_round) / rank_rounds.VERSION
        console.out(f"best: round {standing.best_round}, {console.path_from_here(path)}")
        _tell_final_race(campaign, file.sha256)


def _tell_final_race(campaign: RankCampaign, definition_sha256: str) -> None:
    from warpsmith.campaign.rounds import rank_race

    best = campaign.accepted(definition_sha256)[-1]
    race = rank_race.read_rank_race(campaign, best)
    if race is None:
        console.out("final race: none yet; --final runs it")
        return
    for name, each in race.judgements.items():
        gain, _, result = _race_row(each)
        console.out(f"final race: {gain} over {name}, {result}" if gain else f"final race: {name}, {result}")


def _choose(file: DefinitionFile, ranks: int, names: list[str]) -> DefinitionFile:
    """Return the definition for so many ranks, and of its timed workloads those that are named.

    Raises:
        Misuse: there is no such workload, or that many ranks cannot share out an axis.
    """
    from dataclasses import replace

    from warpsmith.lab.ranks.shards import change_ranks

    definition = file.definition
    if ranks not in (0, definition.ranks):
        definition = change_ranks(definition, ranks)
    timed = [workload.name for workload in definition.select("representative")]
    if unknown := [name for name in names if name not in timed]:
        raise Misuse(f"{definition.name} has no timed workload `{unknown[0]}`; it has {', '.join(timed)}.")
    chosen = tuple(
        each for each in definition.workloads if each.name not in timed or each.name in (names or timed)
    )
    return replace(file, definition=definition.model_copy(update={"workloads": chosen}))


def _print_evaluation(evaluation: RankEvaluation, outcome: str) -> None:
    from warpsmith.core.trust import missing

    rows = []
    for result in evaluation.results:
        time, graded = evaluation.times.get(result.workload), result.correctness
        comparison = time.comparison if time else None
        rows.append((
            result.workload,
            result.status.value,
            f"{graded.worst:.3g}" if graded else "",
            f"{time.seconds * 1e6:.1f}" if time else "",
            f"{comparison.speedup:.2f}x [{comparison.interval.low:.2f}, {comparison.interval.high:.2f}]"
            if comparison
            else "",
        ))  # fmt: skip
    console.out_table(("workload", "status", "error/bound", "us, slowest rank", "vs other"), rows)
    if evaluation.decision is None:
        console.out(f"PASS: correct on {evaluation.ranks} ranks; not timed, nothing kept")
    else:
        console.out(f"{evaluation.decision.verdict}: {evaluation.decision.reason}")
    if evaluation.devices:
        link = f", linked by {evaluation.link}" if evaluation.link else ""
        console.out(f"ranks on {', '.join(evaluation.devices)}{link}; NCCL {evaluation.nccl}")
    late = [name for name, time in evaluation.times.items() if time.issued_ahead is False]
    if late:
        console.out(f"time of the host is in: {', '.join(late)}")
    for check in missing(evaluation.trust):
        console.out(f"not in force: {check.name}: {check.how}")
    if outcome:
        console.out(outcome)


def _exit_with_verdict(evaluation: RankEvaluation) -> None:
    decision = evaluation.decision
    if decision is None or decision.verdict.accepted:
        return
    if decision.verdict == "INVALID":
        raise typer.Exit(MachineFailed.exit_code)
    raise typer.Exit(Ambiguous.exit_code if decision.ambiguous else SolutionFailed.exit_code)
