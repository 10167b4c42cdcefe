"""`warpsmith ranks`: judge a version of an operator that several processes compute together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.options import Json
from warpsmith.errors import Ambiguous, MachineFailed, MissingInput, Misuse, SolutionFailed

if TYPE_CHECKING:
    from warpsmith.lab.operator.definition_file import DefinitionFile
    from warpsmith.lab.ranks.models import RankEvaluation


def ranks_command(
    op: Annotated[str, typer.Argument(help="Operator, or the path of its definition.py.")],
    source: Annotated[Path, typer.Argument(help="Python file of the version, with `run` for one rank.")],
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
    as_json: Json = False,
) -> None:
    """Judge a version over ranks: correctness on all ranks, time of the slowest, decision.

    The definition has `ranks`, and a `shard_axis` for each tensor that the ranks share out. The version runs
    without the sandbox, since ranks must reach each other: judge only code that you trust.

    Exit code 1: the version is wrong or slower; 4: the machine lacks something, or it failed; 6: the gain is
    within the noise.
    """
    from warpsmith import files
    from warpsmith.lab.machine import hardware
    from warpsmith.lab.operator import definition_file
    from warpsmith.lab.ranks.judge import RankRequest, judge_ranks
    from warpsmith.lab.ranks.rank_host import open_rank_host
    from warpsmith.lab.workers.side import Limits
    from warpsmith.project import find_project

    project = find_project()
    if check and (against or out):
        raise Misuse("--check times and records nothing; omit --against and --out, or --check.")
    for path in (source, against):
        if path is not None and not path.is_file():
            raise MissingInput(f"{path} does not exist; name the Python file of a version.")
    path = Path(op) if op.endswith(".py") else project.definition_path(op)
    file = definition_file.load_definition(path, over_ranks=True)
    file = _choose(file, ranks, workload or [])
    device = hardware.read_target_page(project, target).target
    with (
        console.progress() as tell,
        open_rank_host(device, file.definition.ranks, tell) as host,
    ):
        request = RankRequest(
            project, file, source, against, target, timed=not check, limits=Limits(seconds=timeout), tell=tell
        )
        evaluation = judge_ranks(request, host)
    record = None
    if not check:
        digits = evaluation.provenance.solution_sha256[:8]
        name = f"{file.definition.name}-{source.stem}-{digits}-{target}-{evaluation.ranks}.json"
        scratch = project.root / ".warpsmith" / "ranks"
        record = out or scratch / name
        if out is None:
            files.hide_from_git(scratch)
        files.write_file(record, evaluation.model_dump_json(indent=2) + "\n")
    console.out_json(evaluation) if as_json else _print_evaluation(evaluation, record)
    _exit_with_verdict(evaluation)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ranks")(ranks_command)


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


def _print_evaluation(evaluation: RankEvaluation, record: Path | None) -> None:
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
    if record is not None:
        console.out(f"recorded in {console.path_from_here(record)}")


def _exit_with_verdict(evaluation: RankEvaluation) -> None:
    decision = evaluation.decision
    if decision is None or decision.verdict.accepted:
        return
    if decision.verdict == "INVALID":
        raise typer.Exit(MachineFailed.exit_code)
    raise typer.Exit(Ambiguous.exit_code if decision.ambiguous else SolutionFailed.exit_code)
