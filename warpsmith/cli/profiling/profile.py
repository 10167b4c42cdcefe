"""`warpsmith profile`: what limits a version, an existing report or a whole script, and which metrics moved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.campaign import rounds, version
from warpsmith.cli.campaign.version import VersionCampaign
from warpsmith.cli.options import Json, Target
from warpsmith.errors import Misuse

if TYPE_CHECKING:
    from warpsmith.campaign.diff import ProfileDiff
    from warpsmith.project import Project


def profile_command(
    solution: Annotated[
        Path | None,
        typer.Argument(
            help="Version: kernels/<op>/<language>/v<N>.<ending>, by default the one that is due; or the script of"
            " a trace."
        ),
    ] = None,
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments of the script, after `--`.")] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            help="Workload whose counters are read; by default the one with the most time above its floor."
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Collect everything that ncu can, for its graphical interface.")
    ] = False,
    kind: Annotated[
        str, typer.Option(help="kernel; or trace, for a whole script under torch.profiler.")
    ] = "kernel",
    report: Annotated[
        Path | None,
        typer.Option(help="Explain this .ncu-rep, or a folder or file of rocprofv3 or rocprof-compute."),
    ] = None,
    kernel: Annotated[
        str | None, typer.Option(help="With --report: only launches whose kernel name contains this.")
    ] = (None),
    diff: Annotated[
        tuple[str, str] | None, typer.Option(help="Compare the metrics of two profiled versions of a campaign.")
    ] = None,
    campaign: VersionCampaign = None,
    target: Target = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="With a trace: end after the first marked step and this many more."),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Most seconds that a traced script may take.")] = 600.0,
    as_json: Json = False,
) -> None:
    """Profile a version: what limits it, why, and what to try. In a campaign the profile is recorded.

    A GPU is profiled with hardware counters. Without permission to read them, the profile is based on timings and
    says so.
    """
    from warpsmith.project import find_project

    project = find_project()
    modes = [name for name, value in (("--report", report), ("--diff", diff)) if value]
    if kind not in ("kernel", "trace"):
        raise Misuse(f"Unknown kind `{kind}`; known: kernel, trace.")
    if len(modes) > 1 or (modes and solution) or (kind == "trace" and solution is None):
        raise Misuse("Give one of a version, a script with --kind trace, --report FILE and --diff V1 V2.")
    if report:
        _explain_report(project, report, kernel, as_json)
    elif diff:
        _print_diff(project, campaign, diff, as_json)
    elif solution and kind == "trace":
        _trace_script(project, solution, arguments or [], steps, timeout, as_json)
    else:
        _profile_version(project, solution, workload, campaign, target, full, as_json)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("profile")(profile_command)


def _profile_version(
    project: Project,
    path: Path | None,
    workload: str | None,
    campaign: str | None,
    target: str | None,
    full: bool,
    as_json: bool,
) -> None:
    from warpsmith.campaign import explain, lab_requests
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import open_round, state
    from warpsmith.driver.answers.profile import describe_profile

    version.refuse_with_campaign(campaign, {"--target": target})
    due = None
    if path is None:
        version.require_no_options({"--target": target})
        due = store.find_campaign(project, campaign)
        op, candidate = due.manifest.target_op, open_round.version_to_profile(due)[1]
        version.tell_version(due, candidate)
    else:
        op, candidate = version.find_version(project, path)
        if campaign or target is None:
            due = version.find_campaign_of(project, op, candidate, campaign)
    manifest = due.manifest if due is not None else version.standalone_manifest(project, op, candidate, target)
    with console.progress() as tell:
        if due is not None:
            with store.hold_campaign(due, f"profile {project.relative(candidate.path)}"):
                version.require_due_version(due, candidate, open_round.version_to_profile(due)[1])
                summary = lab_requests.profile_due_version(due, tell, workload, full=full)
        else:
            folder = project.scratch / store.PROFILES / op
            with lab_requests.lease_target(project, manifest.target, tell):
                request = lab_requests.lab_request(project, manifest, candidate, tell)
                summary = explain.explain_version(request, folder, workload, full=full)
    if as_json:
        console.out_json(summary)
    else:
        current = state.read_state(due) if due is not None else None
        console.out(describe_profile(summary, op, manifest.target, current))
    if due is not None and not as_json:
        rounds.tell_next(due)


def _explain_report(project: Project, path: Path, kernel: str | None, as_json: bool) -> None:
    from warpsmith.campaign import explain
    from warpsmith.driver.answers.profile import describe_profile
    from warpsmith.profiling.ncu import report as ncu_report
    from warpsmith.profiling.report_file import select_launches

    if path.suffix != ".ncu-rep":
        _explain_amd_report(project, path, kernel, as_json)
        return
    counted = ncu_report.read_ncu_report(path, project.root)
    counted = select_launches(counted, kernel) if kernel else counted
    summary = explain.explain_report(counted)
    if as_json:
        console.out_json(summary)
    else:
        architecture = counted.hottest.architecture or "unknown"
        console.out(describe_profile(summary, "report", architecture.replace("_", "-"), None))


def _explain_amd_report(project: Project, path: Path, kernel: str | None, as_json: bool) -> None:
    from warpsmith.cli.profiling.rocprof_text import describe_amd_summary
    from warpsmith.profiling.report_file import select_launches
    from warpsmith.profiling.rocprof.report import read_rocprof_report
    from warpsmith.profiling.rocprof.summary import summarize_report

    counted = read_rocprof_report(path, project.root)
    counted = select_launches(counted, kernel) if kernel else counted
    summary = summarize_report(counted, _peak_bandwidth(project, counted.hottest.device))
    console.out_json(summary) if as_json else console.out(describe_amd_summary(summary))


def _peak_bandwidth(project: Project, device: str) -> float | None:
    """Return the bandwidth of a device's memory in GB/s from its hardware page, or None if no page gives it."""
    from warpsmith.knowledge.hardware import read_targets

    pages = [page for page in read_targets(project).values() if device in (page.name, *page.aliases)]
    figure = pages[0].figures.get("memory_bandwidth") if pages else None
    if figure is None or isinstance(figure.value, str) or figure.unit != "TB/s":
        return None
    return 1000 * figure.value


def _print_diff(project: Project, campaign: str | None, names: tuple[str, str], as_json: bool) -> None:
    from warpsmith.campaign import diff
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import state

    result = diff.compare_profiles(state.read_state(store.find_campaign(project, campaign)), *names)
    console.out_json(result) if as_json else console.out(_diff_text(result))


def _format_value(value: float, sign: str = "") -> str:
    """Format a value with at least four digits, never as a power of ten."""
    return f"{value:{sign}.4g}" if abs(value) < 1e4 else f"{value:{sign}.0f}"


def _diff_text(result: ProfileDiff) -> str:
    lines = [f"{result.before} -> {result.after} (by {' and '.join(dict.fromkeys(result.evidence))})"]
    lines += [
        f"  {m.metric:<26}{_format_value(m.before):>12} -> {_format_value(m.after):<12}"
        f"{_format_value(m.change, '+')}"
        for m in result.moved
    ]
    movement = result.movement
    if movement:
        wording = {True: "as predicted", False: "not as predicted", None: "not measured on both"}[
            movement.as_predicted
        ]
        lines.append(f"hypothesis: {movement.metric} by {movement.predicted:+g}: {wording}")
    return "\n".join(lines)


def _trace_script(
    project: Project, script: Path, arguments: list[str], steps: int | None, timeout: float, as_json: bool
) -> None:
    from warpsmith.profiling.trace import script as trace
    from warpsmith.profiling.trace import text as trace_text

    folder = project.scratch / "traces" / script.stem
    with console.progress() as tell:
        tell(f"{script.name} under torch.profiler")
        result = trace.trace_script(script, arguments, folder, steps=steps, timeout=timeout)
    if as_json:
        console.out_json(result)
    else:
        console.out(trace_text.render_trace(result))
        console.tell(f"Trace: {project.relative(folder / trace.FILE)}")
