"""`warpsmith profile`: what limits a version, a report from elsewhere or a whole script, and what moved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.campaign import version
from warpsmith.errors import Misuse

if TYPE_CHECKING:
    from warpsmith.campaign.diff import ProfileDiff
    from warpsmith.project import Project


def profile_command(
    solution: Annotated[
        Path | None, typer.Argument(help="A version: kernels/<op>/<language>/v<N>.<ending>; a script for a trace.")
    ] = None,
    arguments: Annotated[list[str] | None, typer.Argument(help="Of the script, after `--`.")] = None,
    workload: Annotated[str | None, typer.Option(help="Whose counters are read; by default the largest.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Collect all that ncu can, for its own window.")] = False,
    kind: Annotated[str, typer.Option(help="kernel, or trace: a whole script under torch.profiler.")] = "kernel",
    report: Annotated[
        Path | None, typer.Option(help="Explain this .ncu-rep or rocprofv3 output instead, made anywhere.")
    ] = None,
    kernel: Annotated[
        str | None, typer.Option(help="With --report: launches whose kernel has this in its name.")
    ] = (None),
    diff: Annotated[
        tuple[str, str] | None, typer.Option(help="Two profiled versions of a campaign: which metrics moved.")
    ] = None,
    campaign: Annotated[
        str | None, typer.Option(help="The campaign; by default the one this version is due in.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="The device kind; by default the machine at hand's.")] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Of a traced script: end it after its first marked step and so many more."),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that a traced script may take.")] = 600.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the model as it stands on disk.")] = False,
) -> None:
    """Say what limits a version, why, and what to try; on a GPU with hardware counters. In a campaign it is kept.

    Without permission to read counters it rests on timings, and says so.
    """
    from warpsmith.project import find_project

    project = find_project()
    given = [name for name, value in (("--report", report), ("--diff", diff)) if value]
    if len(given) > 1 or (given and solution) or (not given and solution is None):
        raise Misuse("Give one of a version, a script with --kind trace, --report FILE and --diff V1 V2.")
    if kind not in ("kernel", "trace"):
        raise Misuse(f"Unknown kind `{kind}`; there are: kernel, trace.")
    if report:
        _explain_report(project, report, kernel, as_json)
    elif diff:
        _print_diff(project, campaign, diff, as_json)
    elif solution and kind == "trace":
        _trace_script(project, solution, arguments or [], steps, timeout, as_json)
    elif solution:
        _profile_version(project, solution, workload, campaign, target, full, as_json)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(profile_command)


def _profile_version(
    project: Project,
    path: Path,
    workload: str | None,
    campaign: str | None,
    target: str | None,
    full: bool,
    as_json: bool,
) -> None:
    from warpsmith.campaign import explain, lab_requests
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import open_round, state
    from warpsmith.driver.contracts import kept as contract_kept

    version.refuse_with_campaign(campaign, {"--target": target})
    op, found = lab_requests.locate_version(project, path)
    due = version.find_campaign_of(project, op, found, campaign) if campaign or target is None else None
    about = due.manifest if due is not None else version.standalone_manifest(project, op, found, target)
    with console.progress() as tell:
        if due is not None:
            with store.hold_campaign(due, f"profile {path}"):
                version.require_due_version(due, found, open_round.version_to_profile(due)[1])
                summary = lab_requests.profile_due_version(due, tell, workload, full=full)
        else:
            place = project.root / ".warpsmith" / lab_requests.PROFILES / op
            summary = explain.explain_version(
                lab_requests.lab_request(project, about, found, tell), place, workload, full=full
            )
    if as_json:
        console.out_json(summary)
    else:
        now = state.read_state(due) if due is not None else None
        console.out(contract_kept.printed(summary, op, about.target, now))


def _explain_report(project: Project, path: Path, kernel: str | None, as_json: bool) -> None:
    from warpsmith.campaign import explain
    from warpsmith.driver.contracts import kept as contract_kept
    from warpsmith.profiling.ncu import report as ncu_report
    from warpsmith.profiling.rocprof import report as rocprof

    ncu = path.suffix == ".ncu-rep"
    counted = (ncu_report.read if ncu else rocprof.read)(path, project.root)
    counted = ncu_report.select_launches(counted, kernel) if kernel else counted
    summary = explain.explain_report(counted)
    if as_json:
        console.out_json(summary)
    else:
        architecture = counted.hottest.architecture or "unknown"
        console.out(contract_kept.printed(summary, "report", architecture.replace("_", "-"), None))


def _print_diff(project: Project, campaign: str | None, names: tuple[str, str], as_json: bool) -> None:
    from warpsmith.campaign import diff
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import state

    found = diff.compare_profiles(state.read_state(store.find_campaign(project, campaign)), *names)
    console.out_json(found) if as_json else console.out(_diff_text(found))


def _format_value(value: float, sign: str = "") -> str:
    """At least four digits, never as a power of ten."""
    return f"{value:{sign}.4g}" if abs(value) < 1e4 else f"{value:{sign}.0f}"


def _diff_text(found: ProfileDiff) -> str:
    lines = [f"{found.before} -> {found.after} (by {' and '.join(dict.fromkeys(found.evidence))})"]
    lines += [
        f"  {m.metric:<26}{_format_value(m.before):>12} -> {_format_value(m.after):<12}{_format_value(m.change, '+')}"
        for m in found.moved
    ]
    moved = found.movement
    if moved:
        said = {True: "as predicted", False: "not as predicted", None: "not measured on both"}[moved.as_predicted]
        lines.append(f"hypothesis: {moved.metric} by {moved.predicted:+g}: {said}")
    return "\n".join(lines)


def _trace_script(
    project: Project, script: Path, arguments: list[str], steps: int | None, timeout: float, as_json: bool
) -> None:
    from warpsmith.profiling.trace import script as trace
    from warpsmith.profiling.trace import text as trace_text

    place = project.root / ".warpsmith" / "traces" / script.stem
    with console.progress() as tell:
        tell(f"{script.name} under torch.profiler")
        found = trace.run(script, arguments, place, steps=steps, timeout=timeout)
    if as_json:
        console.out_json(found)
    else:
        console.out(trace_text.text(found))
        console.tell(f"Trace: {project.relative(place / trace.FILE)}")
