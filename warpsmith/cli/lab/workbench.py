"""`warpsmith try`: run many variants of a kernel side by side, outside of any campaign."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from warpsmith.cli.options import Json, Target
from warpsmith.temporary import TemporaryFolder

if TYPE_CHECKING:
    from warpsmith.core.definition import Definition, Workload
    from warpsmith.core.profile import Profile
    from warpsmith.lab.gate.request import Candidate
    from warpsmith.lab.machine.hardware import HardwarePage
    from warpsmith.lab.tuning.workbench import VariantResult, Workbench
    from warpsmith.lab.workers.worker_host import WorkerHost
    from warpsmith.project import Project


def try_command(
    op: Annotated[
        str, typer.Argument(help="Operator, as in `kernels/<op>/definition.py`; with --reference, a kernel file.")
    ],
    kernels: Annotated[
        list[Path] | None, typer.Argument(help="Kernel files with `run(...)`, anywhere.", show_default=False)
    ] = None,
    reference: Annotated[
        str,
        typer.Option(metavar="FILE[:OBJECT]", help="PyTorch code to compare with, where no definition exists."),
    ] = "",
    inputs: Annotated[
        str,
        typer.Option(metavar="FILE[:OBJECT]", help="Function with example inputs; by default `get_inputs`."),
    ] = "",
    examples: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=VALUE", help="Example input: x=8,1024:float32; repeatable."),
    ] = None,
    sweep: Annotated[str, typer.Option(help='Constants to sweep in the files: "TILE=64,128 STAGES=2..6".')] = "",
    seconds: Annotated[float, typer.Option(min=1, help="Wall time; a batch that runs is finished.")] = 60,
    target: Target = None,
    workload: Annotated[
        list[str] | None, typer.Option(help="Workload to time, by name; by default those of --shapes.")
    ] = None,
    shapes: Annotated[
        Literal["representative", "full"], typer.Option(help="Workloads to time.")
    ] = "representative",
    sizes: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            metavar="AXIS=N[,AXIS=N...][:DTYPE]",
            help="Time at this size too, which no workload has; repeatable.",
        ),
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="Write the text of the fastest variant to this new file.")
    ] = None,
    baselines: Annotated[
        bool,
        typer.Option(help="Time the fastest variant beside the reference and torch.compile at the end."),
    ] = False,
    profile: Annotated[
        int, typer.Option(min=0, max=5, help="Profile this many of the fastest variants afterwards.")
    ] = 0,
    stalls: Annotated[
        bool,
        typer.Option("--why", help="Print what the fastest variant waits for, and its hottest line."),
    ] = False,
    phases: Annotated[
        bool, typer.Option(help="Print the times of the fastest variant's phases, from its stamps.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Try kernels and settings of their constants: check all, time all, print each result at once.

    Every variant is checked at awkward sizes and at the timed workloads, then timed interleaved with the best
    version, or with the reference if there is none. The faster half is timed again with more samples, and so on
    until the fastest is apart from the others or the time is spent. Nothing is recorded but a log in
    `.warpsmith/tries/`, and nothing is a verdict.
    """

    from warpsmith.cli import console
    from warpsmith.errors import MachineLacks, Misuse
    from warpsmith.interchange.reference_import import import_reference
    from warpsmith.lab.machine import device_lease, hardware
    from warpsmith.lab.operator import definition_file
    from warpsmith.lab.tuning import variants
    from warpsmith.lab.tuning.phases import check_stamps
    from warpsmith.lab.tuning.workbench import Bench, Workbench, start_host
    from warpsmith.profiling.ncu import collect
    from warpsmith.project import find_project

    project = find_project()
    page = hardware.read_target_page(project, target or hardware.require_local_target(project).id)
    if write and write.exists():
        raise Misuse(f"{write} exists; name a new file for the fastest variant.")
    if stalls:
        lacks = collect.unavailable_reason() if page.target.kind == "gpu" else f"The target is {page.target.id}."
        if lacks:
            raise MachineLacks(f"--why reads counters of an NVIDIA GPU. {lacks}")
    if not reference and (inputs or examples):
        raise Misuse("--inputs and --input require --reference; a definition draws its own inputs.")
    if not reference and not kernels:
        raise Misuse(f"Name the kernel files, as in `warpsmith try {op} a.cpp`.")
    files = [Path(op), *(kernels or [])] if reference else kernels or []
    tried, hidden = variants.list_variants(files, variants.parse_sweep(sweep)), (project.devlog,)
    with (
        device_lease.lease_device(page.target, console.tell),
        start_host(
            page.target.kind, tried, hidden, project.scratch / "compiled"
        ) as host,  # it imports PyTorch while this process does too
        TemporaryFolder("reference") as folder,
    ):
        if reference:
            file, draft = import_reference(Path(folder), reference, inputs, examples or ())
            console.tell("\n".join(["Assumed of the reference:", *(f"- {note}" for note in draft.notes)]))
            best = None
        else:
            file = definition_file.load_definition(project.definition_path(op))
            best = _best_version(project, op, page)
        timed = _timed_workloads(file.definition, workload, shapes, sizes or ())
        workbench = Workbench(Bench(file, page.target.kind, tried, timed, hidden, best, seconds, baselines))
        if phases:
            check_stamps(tried)
        _print_results(
            project,
            page,
            workbench,
            host,
            as_json=as_json,
            write=write,
            profile=profile,
            stalls=stalls,
            phases=phases,
        )


def _print_results(
    project: Project,
    page: HardwarePage,
    workbench: Workbench,
    host: WorkerHost,
    *,
    as_json: bool,
    write: Path | None,
    profile: int,
    stalls: bool,
    phases: bool,
) -> None:
    """Run the workbench and print each result as soon as it is known."""
    import json

    from warpsmith import files
    from warpsmith.campaign import tries
    from warpsmith.cli import console
    from warpsmith.lab.machine.floors import floor_seconds_by_workload
    from warpsmith.reporting import facts
    from warpsmith.reporting.variants import VariantLines

    bench = workbench.bench
    log = tries.make_log_path(project, bench.file.definition.name, page.target.id)
    anchor = f"{bench.best.language}/{bench.best.version}" if bench.best else "the reference"
    lines = VariantLines(
        [v.name for v in bench.variants],
        floor_seconds_by_workload(project, page, bench.file.definition, bench.workloads),
        anchor,
    )
    show = (lambda _: None) if as_json else console.out
    count = len(bench.variants)
    show(f"{count} variant{'s' * (count > 1)} on {page.target.id}, each first checked at "
         f"{', '.join(w.name for w in (*workbench.awkward, *bench.workloads))}\n{lines.header()}")  # fmt: skip

    def show_fastest() -> None:
        show(lines.anchor_line(workbench.anchor_seconds) if workbench.anchor_seconds else "nothing was timed")
        if fastest := workbench.ranked()[:1]:
            show(f"fastest: {lines.line(fastest[0])}")
            if doubt := lines.below_floor_line(fastest[0]):
                show(doubt)

    with log.open("a", encoding="utf-8", buffering=1) as stream:
        for result in workbench.run(host, show_fastest):
            stream.write(result.model_dump_json() + "\n")
            if workbench.null_seconds and not lines.launch_seconds:
                lines.launch_seconds = workbench.null_seconds
                show(lines.null_line())
            console.out_line_json(result) if as_json else show(lines.line(result))
        stream.write(json.dumps({"steps": workbench.stopwatch.seconds}) + "\n")
    ranked = workbench.ranked()
    if ranked:
        for mean in workbench.baselines:
            seconds = workbench.baseline_seconds[mean.against]
            show(lines.baseline_line(facts.side_name(mean.against), seconds, mean))
        if write:
            files.write_file(write, workbench.variant(ranked[0].variant).text_to_submit)
            show(f"written: {console.path_from_here(write.resolve())}")
    if phases and ranked:
        show(_phases_text(workbench, host, ranked[0]))
    for rank, result in enumerate(ranked[: max(profile, stalls)]):
        show(_profile_text(project, page, workbench, result.variant, stalls=stalls and not rank))
    steps = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in workbench.stopwatch.seconds.items())
    show(f"steps: {steps}")
    show(f"log: {console.path_from_here(log)}; nothing here is a verdict: `warpsmith judge` gives one")


def _timed_workloads(
    definition: Definition,
    names: list[str] | None,
    shapes: Literal["representative", "full"],
    sizes: Sequence[str],
) -> Sequence[Workload]:
    """Return the workloads to time: the named ones, or those of the shapes, and one for each further size."""
    from warpsmith.errors import Misuse
    from warpsmith.lab.tuning.sizes import parse_size

    by_name = {item.name: item for item in definition.workloads}
    if unknown := [name for name in names or () if name not in by_name]:
        raise Misuse(f"{definition.name} has no workload `{unknown[0]}`; it has: {', '.join(by_name)}.")
    declared = definition.select("representative", *(("full",) if shapes == "full" else ()))
    timed = [by_name[name] for name in names] if names else [*declared]
    return [*timed, *(parse_size(definition, declared, size) for size in dict.fromkeys(sizes))]


def _best_version(project: Project, op: str, page: HardwarePage) -> Candidate | None:
    from warpsmith.lab.gate.request import Candidate
    from warpsmith.use import choice

    versions = choice.versions_for_target(project, op, page.target)
    if not versions:
        return None
    language, _, number = versions[0].solution.partition("/")
    return Candidate(path=versions[0].file, language=language, version=number)


def _phases_text(workbench: Workbench, host: WorkerHost, result: VariantResult) -> str:
    """Run a variant with its stamps at the workload that takes it longest; return its timeline."""
    from warpsmith.lab.tuning import phases
    from warpsmith.reporting.timeline import format_timeline

    bench, variant = workbench.bench, workbench.variant(result.variant)
    workload = max(bench.workloads, key=lambda workload: result.seconds[workload.name])
    times = phases.time_phases(bench.file, host, bench.device, variant, workload, bench.limits)
    return format_timeline(f"phases: {variant.name} at {workload.name}", times, bench.kind)


def _profile_text(project: Project, page: HardwarePage, workbench: Workbench, name: str, *, stalls: bool) -> str:
    """Profile a variant; return what limits it and the first thing to try, and with `stalls` its hotspot."""

    from warpsmith import files
    from warpsmith.campaign import explain
    from warpsmith.campaign.history.store import PROFILES
    from warpsmith.core.base import this_minute
    from warpsmith.core.hardware import Measurement
    from warpsmith.lab.gate.request import Candidate, Request
    from warpsmith.lab.machine import identity, measurement_store

    machine = identity.identify_machine(page.target)
    # Without ceilings of this machine the page's figures serve: a try is no verdict, and measuring takes longer.
    unmeasured = Measurement(machine=machine, measured=this_minute(), ceilings={})
    measurement = measurement_store.load_measurement(project, machine) or unmeasured
    bench, variant = workbench.bench, workbench.variant(name)
    with TemporaryFolder("try") as folder:
        path = Path(folder) / variant.file.name
        files.write_file(path, variant.text)
        request = Request(
            project=project, file=bench.file, candidate=Candidate(path, variant.language, name), page=page,
            measurement=measurement, limits=bench.limits,
        )  # fmt: skip
        reports = project.scratch / PROFILES / bench.file.definition.name
        profile = explain.explain_version(request, reports)
        waits = [_hotspot_text(project, profile, path)] if stalls else []
    advice = f"; try: {profile.opportunities[0].name}" if profile.opportunities else ""
    return "\n".join([f"profile: {name}: {profile.bottleneck}: {profile.root_cause}{advice}", *waits])


def _hotspot_text(project: Project, profile: Profile, source: Path) -> str:
    """Return the hotspot in a profile's report, or the reason why there is none."""
    from warpsmith.profiling.ncu.hotspot import format_hotspot, read_hotspot

    if not profile.details:
        return f"why: no counters were read; {profile.without}"
    hotspot = read_hotspot(project.root / profile.details)
    return f"why: {hotspot.kernel} at {profile.workload}\n{format_hotspot(hotspot, [source])}"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("try")(try_command)
