"""A program's analysis: its steps timed, observed and traced; the bottleneck; what to try, ranked by Amdahl."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from math import ceil
from pathlib import Path

from warpsmith import files
from warpsmith.core.base import this_minute
from warpsmith.profiling.trace import rank as trace_rank
from warpsmith.profiling.trace.models import Parts, Trace
from warpsmith.program.analysis import models as model
from warpsmith.program.analysis import prerequisites, recommend
from warpsmith.program.analysis.models import Analysis, AnalyzedProgram, Hotspot
from warpsmith.program.analysis.prerequisites import ProgramInspection
from warpsmith.program.analysis.step_profile import StepProfile
from warpsmith.program.models import ProgramFacts
from warpsmith.program.process import command
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import TIMEOUT, Runner
from warpsmith.project import Project

STEPS = 5
"""Steps that are timed and traced where nobody says how many."""

_WARM_UP, _REPEATS = 2, 3
_SECONDS, _MOST_STEPS = 0.2, 200
"""Each repeat takes about so long, and no more steps than that."""

_HOTSPOTS = 8


def analyze_program(
    project: Project,
    program: Program,
    tell: Callable[[str], None],
    *,
    steps: int | None = None,
    seed: int = 0,
    timeout: float = TIMEOUT,
) -> Analysis:
    """Run the program's steps, timed, observed and under the profiler; what limits them and what to try.

    `steps` are timed and traced; of a shell command it is how many it runs, where it marks none. `timeout` in
    seconds, for each of these. The program's output and its trace are under `scratch(project, program)`.

    Raises:
        BadEntry: a knowledge entry does not read; nothing was run.
        WarpsmithError: as `Runner` and `run_command` do.
    """
    declared = prerequisites.list_program_rules(project)
    found, inspection = _run_program(project, program, tell, steps, seed, timeout)
    rules = {one.entry: declared[one.entry] for one in found.recommendations if one.entry in declared}
    lacks = prerequisites.unmet_by_entry(project, program, found.facts, inspection, rules)
    given = (one.model_copy(update={"lacks": lacks.get(one.entry or "", "")}) for one in found.recommendations)
    return found.model_copy(update={"recommendations": tuple(given)})


def scratch_folder(project: Project, program: Program) -> Path:
    """Where a program's output and its last trace lie."""
    return project.root / ".warpsmith" / "programs" / program.name


def analyzed_program(project: Project, program: Program) -> AnalyzedProgram:
    """The program as records give it."""
    command_only = program.command is not None
    return AnalyzedProgram(
        label=program.label,
        path="" if command_only else project.relative(program.path),
        sha256=None if command_only else files.file_sha256(program.path),
        module=program.module,
        step=program.step,
        setup=program.setup,
        args=program.args,
        command=program.command,
    )


def split_step(trace: Trace, step_seconds: float) -> Parts:
    """One step in parts.

    The profiler slows the host: idle time is what the unprofiled step leaves beside the device's work. Without a
    device all parts are scaled.
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
    project: Project, program: Program, tell: Callable[[str], None], steps: int | None, seed: int, timeout: float
) -> tuple[Analysis, ProgramInspection]:
    """Run the program; return its analysis without unmet prerequisites, and what those are checked against."""
    folder = scratch_folder(project, program)
    if program.command is not None:
        tell(f"{program.label} under torch.profiler")
        ran = command.run_command(program, folder, steps=steps, timeout=timeout)
        step_seconds = ran.trace.region.seconds / ran.trace.repetitions
        analysis = _build_analysis(
            project, program, ran.facts, ran.trace, step_seconds, ran.trace.repetitions, None
        )
        return analysis, ProgramInspection()
    count = steps or STEPS
    with Runner(program, seed=seed, timeout=timeout, log=folder / "output.txt") as runner:
        tell(f"{program.label} starts")
        runner.start()
        tell(f"{program.label}: timing its steps")
        each, broken = _time_steps(runner, count)
        tell(f"{program.label}: looking at one step")
        facts = runner.observe()
        tell(f"{program.label}: {count} steps under torch.profiler")
        trace = runner.trace(count, folder)
        inspection = prerequisites.inspect_program(runner, watch=facts.gpu)
    return _build_analysis(project, program, facts, trace, each, count, broken), inspection


def _time_steps(runner: Runner, count: int) -> tuple[float, int | None]:
    """Seconds of a step that is warm, and the number of the first step that returned NaN or infinity."""
    first = runner.run(_WARM_UP)
    more = runner.run(count)
    long = min(_MOST_STEPS, max(count, ceil(_SECONDS / more.each)))
    timed = [runner.run(long, values=False) for _ in range(_REPEATS)]
    return statistics.median(one.each for one in timed), next(
        (one.broken for one in (first, more) if one.broken is not None), None
    )


def _build_analysis(
    project: Project,
    program: Program,
    facts: ProgramFacts,
    trace: Trace,
    step_seconds: float,
    steps: int,
    broken: int | None,
) -> Analysis:
    split = split_step(trace, step_seconds)
    case = StepProfile(facts, trace, split, *_command_words(project, program))
    bound, why = trace_rank.bound(split, trace.evidence == "gpu")
    return Analysis(
        subject=analyzed_program(project, program),
        made=this_minute(),
        steps=steps,
        step_seconds=step_seconds,
        bound=bound,
        why=why,
        parts=split,
        idle_share=case.idle,
        hotspots=tuple(_list_hotspots(case)),
        findings=tuple(_list_findings(case, broken)),
        recommendations=recommend.recommend(case),
        facts=facts,
        trace=trace.model_copy(update={"source": project.relative(Path(trace.source))}),
        broken=broken is not None,
    )


def _command_words(project: Project, program: Program) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The program and its arguments as a command names them."""
    if program.command is not None:
        return ("FILE", "--step", "STEP"), ()
    words = (program.module or project.relative(program.path), "--step", program.step)
    return (*words, *(("--setup", program.setup) if program.setup else ())), program.args


def _list_hotspots(case: StepProfile) -> Iterator[Hotspot]:
    trace = case.trace
    scale = 1.0 if case.facts.gpu else case.seconds * trace.repetitions / trace.region.seconds
    for kernel in trace.kernels[:_HOTSPOTS]:
        seconds = kernel.alone_seconds / trace.repetitions * scale
        share = case.share(seconds)
        yield Hotspot(
            name=kernel.name,
            calls=kernel.calls / trace.repetitions,
            seconds=seconds,
            share=share,
            ceiling=model.amdahl_bound(share),
        )


def _list_findings(case: StepProfile, broken: int | None) -> Iterator[str]:
    facts, seen = case.facts, case.seen
    if broken is not None:
        yield f"Step {broken} returned NaN or infinity: no optimization can be judged before that is mended."
    if facts.gpu_at_hand and not facts.gpu:
        yield "The machine has a GPU that the program does not use."
    if not facts.gpu:
        yield "No GPU in use: operators on the CPU stand for kernels, and what only a GPU shows is left out."
    if seen.shapes_vary:
        yield "Operators or their shapes differ from step to step: a CUDA graph or compiled code sees many cases."
    others = facts.processes - sum(one.workers for one in facts.loaders)
    if others > 0 and not facts.compiled:  # a compiler keeps processes of its own
        yield f"It started {others} processes that still ran; they were ended with it."
    if seen.backwards and not seen.optimizer_steps and facts.optimizers:
        yield "The observed step had a backward pass and no optimizer step: give a step that holds both."
