"""Analyzer of a program: times, observes and traces its steps, and names the bottleneck and what to try."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path

from warpsmith import files
from warpsmith.core.base import this_minute
from warpsmith.core.text import Tell
from warpsmith.errors import Misuse
from warpsmith.lab.machine import hardware
from warpsmith.profiling.trace import analysis as trace_analysis
from warpsmith.profiling.trace import names as trace_names
from warpsmith.profiling.trace import rank as trace_rank
from warpsmith.profiling.trace.models import Parts, Trace
from warpsmith.profiling.trace.read import load_trace
from warpsmith.program.analysis import models as model
from warpsmith.program.analysis import prerequisites, program_rules, recommend, record_names, throughput
from warpsmith.program.analysis.models import Analysis, AnalyzedProgram, Hotspot
from warpsmith.program.analysis.prerequisites import ProgramInspection
from warpsmith.program.analysis.ranks import AnalyzedRanks, analyze_ranks
from warpsmith.program.analysis.step_profile import StepProfile
from warpsmith.program.analysis.throughput import StepWork
from warpsmith.program.models import ProgramFacts
from warpsmith.program.process import command
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import TIMEOUT, Runner
from warpsmith.program.scripts.command_runner import CommandEnded, open_runner
from warpsmith.program.scripts.script_loop import find_script_loop
from warpsmith.project import Project

STEPS = 5
"""Default number of timed and traced steps."""

_WARM_UP, _REPEATS, _BRIEF_STEPS = 2, 3, 3
_SECONDS, _MOST_STEPS = 0.2, 200
"""Approximate seconds of a repeat, and its largest number of steps."""

_HOTSPOTS = 8
_MARK = re.compile(rf"record_function\(\s*f?[\"']{trace_names.STEP.pattern}", re.IGNORECASE)


def analyze_program(
    project: Project,
    program: Program,
    tell: Tell,
    *,
    steps: int | None = None,
    seed: int = 0,
    timeout: float = TIMEOUT,
    work: StepWork | None = None,
) -> Analysis:
    """Run the program's steps timed, observed, watched line by line and under the profiler, and analyze them.

    `steps` is the number of timed and traced steps; for a shell command, the number that it runs if it marks none.
    `timeout`, in seconds, applies to each of the runs. `work` is the data that a step handles, by default that of
    its DataLoader. The program's output and trace are in `scratch_folder`.

    Raises:
        BadEntry: a knowledge entry does not read; nothing was run.
        WarpsmithError: as `Runner` and `command.run` do.
    """
    declared = program_rules.list_program_rules(project)
    files.hide_from_git(project.root / record_names.SCRATCH)
    analysis, inspection = _run_program(project, program, tell, steps, seed, timeout)
    rules = {item.entry: declared[item.entry] for item in analysis.recommendations if item.entry in declared}
    unmet = prerequisites.unmet_by_entry(project, program, analysis.facts, inspection, rules)
    recommendations = (
        recommend.complete_recommendation(item, rules.get(item.entry or ""), unmet.get(item.entry or "", ""))
        for item in analysis.recommendations
    )
    limit = None
    if inspection.lines:
        target = hardware.find_local_target(project) if analysis.facts.gpu == analysis.facts.gpu_at_hand else None
        limit = throughput.step_limit(inspection.lines.flops, target)
    return analysis.model_copy(
        update={
            "recommendations": tuple(recommendations),
            "work": work or throughput.loader_work(analysis.facts),
            "limit": limit,
        }
    )


def scratch_folder(project: Project, program: Program) -> Path:
    """Return the folder of a program's output and last trace."""
    return project.root / record_names.SCRATCH / record_names.FOLDER / record_names.record_name(project, program)


def analyzed_program(project: Project, program: Program) -> AnalyzedProgram:
    """Describe a program as the records of analyses do."""
    has_file = program.path.is_file()
    return AnalyzedProgram(
        label=program.label,
        path=project.relative(program.path) if has_file else "",
        sha256=files.file_sha256(program.path) if has_file else None,
        module=program.module,
        step=program.step,
        setup=program.setup,
        args=program.args,
        command=program.command,
        writes=tuple(map(project.relative, program.writes)),
    )


def split_step(trace: Trace, step_seconds: float) -> Parts:
    """Split the time of one step into parts.

    The profiler slows the host, so idle time is the unprofiled step minus the work of the device. Without a device
    all parts are scaled.
    """
    traced = {name: seconds / trace.repetitions for name, seconds in trace.parts}
    if trace.evidence == "cpu":
        scale = step_seconds / sum(traced.values())
        return Parts.model_validate({name: seconds * scale for name, seconds in traced.items()})
    idle = ("launches_seconds", "host_seconds")
    busy = sum(seconds for name, seconds in traced.items() if name not in idle)
    before = sum(traced[name] for name in idle)
    scale = max(0.0, step_seconds - busy) / before if before else 0.0
    return Parts.model_validate(
        {name: seconds * scale if name in idle else seconds for name, seconds in traced.items()}
    )


def _run_program(
    project: Project, program: Program, tell: Tell, steps: int | None, seed: int, timeout: float
) -> tuple[Analysis, ProgramInspection]:
    """Run the program, and return its analysis without unmet prerequisites, and the inspection to check them."""
    if program.command is not None and not _runs_step_by_step(program.path):
        return _record_command(project, program, tell, steps, timeout)
    for brief in (False, True):
        try:
            return _measure_steps(project, program, tell, steps or STEPS, seed, timeout, brief=brief)
        except CommandEnded:
            tell(f"{program.label} ended before it was measured: again with fewer steps")
    if steps is None:  # the whole run would be recorded as one step
        raise Misuse(
            f"`{program.command}` ended before enough of its steps were seen: have it run more steps, or give the "
            "number that it runs as --steps, to record its whole run."
        )
    return _record_command(project, program, tell, steps, timeout)


def _runs_step_by_step(script: Path) -> bool:
    """Tell whether steps of a script are found by its loop; one that marks its steps is recorded as a whole."""
    return find_script_loop(script) is not None and not _MARK.search(script.read_text(errors="replace"))


def _record_command(
    project: Project, program: Program, tell: Tell, steps: int | None, timeout: float
) -> tuple[Analysis, ProgramInspection]:
    """Record a whole run of a command."""
    tell(f"{program.label} under torch.profiler")
    result = command.run_shell_program(program, scratch_folder(project, program), steps=steps, timeout=timeout)
    step_seconds = result.trace.region.seconds / result.trace.repetitions
    world = len(result.rank_traces)
    ranks = analyze_ranks(result.rank_facts, [load_trace(path, world) for path in result.rank_traces], steps)
    analysis = _build_analysis(
        project, program, result.facts, result.trace, step_seconds, result.trace.repetitions, "",
        ProgramInspection(), ranks,
    )  # fmt: skip
    return analysis, ProgramInspection()


def _measure_steps(
    project: Project, program: Program, tell: Tell, count: int, seed: int, timeout: float, *, brief: bool
) -> tuple[Analysis, ProgramInspection]:
    """Time, observe and trace steps; with `brief` each as seldom as possible."""
    count = min(count, _BRIEF_STEPS) if brief else count
    folder = scratch_folder(project, program)
    with open_runner(program, seed=seed, timeout=timeout, log=folder / "output.txt") as runner:
        tell(f"{program.label}: starting")
        runner.start()
        tell(f"{program.label}: timing its steps")
        step_seconds, broken_step = _time_steps(runner, count, 0 if brief else _REPEATS)
        tell(f"{program.label}: observing one step")
        rank_facts = runner.observe_ranks()
        facts = rank_facts[0]
        tell(f"{program.label}: {count} steps under torch.profiler")
        rank_traces = [load_trace(path) for path in runner.write_traces(count, folder)]
        tell(f"{program.label}: watching steps line by line")
        inspection = prerequisites.inspect_program(runner, facts, watch=True)
    trace = trace_analysis.analyze_trace(rank_traces[0], 0.0)
    ranks = analyze_ranks(rank_facts, rank_traces)
    return (
        _build_analysis(project, program, facts, trace, step_seconds, count, broken_step, inspection, ranks),
        inspection,
    )


def _time_steps(runner: Runner, count: int, repeat_count: int) -> tuple[float, str]:
    """Return the seconds per warm step, and the first step that returned NaN or infinity in words."""
    warm_up = runner.run(_WARM_UP)
    sample = runner.run(count)
    repeat_steps = min(_MOST_STEPS, max(count, ceil(_SECONDS / sample.seconds_per_step)))
    repeats = [runner.run(repeat_steps, values=False) for _ in range(repeat_count)] or [sample]
    return statistics.median(
        batch.seconds_per_step for batch in repeats
    ), warm_up.broken_step or sample.broken_step


def _build_analysis(
    project: Project,
    program: Program,
    facts: ProgramFacts,
    trace: Trace,
    step_seconds: float,
    steps: int,
    broken_step: str,
    inspection: ProgramInspection,
    ranks: AnalyzedRanks | None,
) -> Analysis:
    parts = split_step(trace, step_seconds)
    words, args = _command_words(project, program)
    profile = StepProfile(facts, trace, parts, words, args, inspection.lines, program.folder, ranks)
    bound, reason = trace_rank.classify_bound(parts, trace.evidence == "gpu")
    if ranks is not None:
        report = ranks.report
        reason += f"; rank 0 waits for later ranks {report.share_of(report.ranks[0].wait_seconds):.0%} of a step"
    return Analysis(
        subject=analyzed_program(project, program),
        made=this_minute(),
        steps=steps,
        step_seconds=step_seconds,
        bound=bound,
        why=reason,
        parts=parts,
        idle_share=profile.idle_share,
        hotspots=tuple(_list_hotspots(profile)),
        findings=tuple(_list_findings(profile, broken_step, inspection.differences)),
        lines=profile.lines,
        recommendations=recommend.recommend(profile),
        facts=facts,
        trace=trace.model_copy(update={"source": project.relative(Path(trace.source))}),
        ranks=ranks,
        broken=bool(broken_step),
    )


def _command_words(project: Project, program: Program) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the program and its arguments as words of a command."""
    if program.command is not None:
        return record_names.command_words(program.command, analyzed_program(project, program).writes), ()
    words = (program.module or project.relative(program.path), "--step", program.step)
    return (*words, *(("--setup", program.setup) if program.setup else ())), program.args


def _list_hotspots(profile: StepProfile) -> Iterator[Hotspot]:
    trace = profile.trace
    scale = 1.0 if profile.facts.gpu else profile.seconds * trace.repetitions / trace.region.seconds
    for kernel in trace.kernels[:_HOTSPOTS]:
        seconds = kernel.alone_seconds / trace.repetitions * scale
        share = profile.share_of(seconds)
        yield Hotspot(
            name=kernel.name,
            calls=kernel.calls / trace.repetitions,
            seconds=seconds,
            share=share,
            ceiling=model.amdahl_bound(share),
        )


def _list_findings(profile: StepProfile, broken_step: str, differences: Sequence[str]) -> Iterator[str]:
    facts, observed = profile.facts, profile.observed
    if broken_step:
        words = broken_step[0].upper() + broken_step[1:]
        yield f"{words} returned NaN or infinity: fix that first, or no optimization can be judged."
    if differences:
        yield f"{prerequisites.describe_rank_differences(differences)}."
    if facts.gpu_at_hand and not facts.gpu:
        yield "The machine has a GPU that the program does not use."
    if not facts.gpu:
        yield "No GPU in use: operators on the CPU stand in for kernels, and rules that need a GPU are skipped."
    if observed.shapes_vary:
        yield "Operators or their shapes differ from step to step: a CUDA graph or compiled code meets many cases."
    processes = facts.processes - sum(loader.workers for loader in facts.loaders)
    if processes > 0 and not facts.compiled:  # a compiler keeps its own processes
        yield f"It started {processes} processes that were still running; they were ended with it."
    if profile.watched is None:
        yield "No lines are named: " + (
            "they are watched only in steps that run one by one."
            if observed.returns is None
            else "the step fails, takes too long, or ends the script, while it is watched line by line."
        )
    if observed.backwards and not observed.optimizer_steps and facts.optimizers:
        yield "The observed step has a backward pass but no optimizer step: choose a step that has both."
