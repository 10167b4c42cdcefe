"""Survey of a compiled step: its regions, ranked by their share of the step."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith import files
from warpsmith.core.base import this_minute
from warpsmith.core.text import Tell
from warpsmith.errors import MissingInput, Misuse
from warpsmith.program.analysis import record_names, region_file
from warpsmith.program.analysis.analyzer import scratch_folder
from warpsmith.program.analysis.models import amdahl_bound
from warpsmith.program.compiled.models import CutRegion, RegionRow, StepRegions
from warpsmith.program.compiled.region_graph import RegionGraph, RegionTensor
from warpsmith.program.operators import kernel_override, operator_calls
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import TIMEOUT, Runner
from warpsmith.program.scripts.command_runner import open_runner
from warpsmith.project import Project

TRACED_STEPS = 5
"""Number of steps whose kernels are traced."""


@dataclass(frozen=True)
class SurveyedStep:
    """A step with its regions."""

    regions: StepRegions
    """The regions by digest, ranked."""
    cuts: dict[str, tuple[CutRegion, ...]]
    """Places of each region by digest, the most time first."""


def list_regions(
    project: Project, program: Program, tell: Tell = print, *, seed: int = 0, timeout: float = TIMEOUT
) -> StepRegions:
    """List the regions of a program's compiled step, and write the list beside the program's records.

    Raises:
        Misuse: the step compiles nothing.
        SolutionFailed, TimedOut, MachineLacks: as `Runner`.
    """
    with region_runner(project, program, seed, timeout) as runner:
        runner.start()
        surveyed = survey_regions(runner, tell)
    region_file.write_regions(project, program, surveyed.regions)
    return surveyed.regions


def region_runner(project: Project, program: Program, seed: int, timeout: float) -> Runner:
    """Return a process for a program without accepted kernels, so that all of its regions are Inductor's own."""
    files.hide_from_git(project.root / record_names.SCRATCH)
    log, env = scratch_folder(project, program) / "output.txt", {kernel_override.SWITCH: "0"}
    return open_runner(program, seed=seed, timeout=timeout, env=env, log=log)


def survey_regions(runner: Runner, tell: Tell) -> SurveyedStep:
    """Time the steps of a started program, then compile them anew and cut the graphs; raises as `list_regions`."""
    tell("timing steps")
    step_seconds = operator_calls.measure_step_seconds(runner)
    tell("compiling the step and tracing its kernels")
    answer = runner.call("compiled_regions", steps=TRACED_STEPS)
    if not answer["graphs"]:
        raise Misuse(
            f"{runner.program.label}: the step compiles no graph, so it has no regions; wrap its model or "
            "function in `torch.compile`, or take single operators with `warpsmith program extract --op OPERATOR`."
        )
    facts = runner.facts()
    groups: dict[str, list[CutRegion]] = defaultdict(list)
    for item in answer["cuts"]:
        cut = CutRegion.model_validate(item)
        groups[cut.region.digest if cut.region else f"{cut.refusal}: {cut.operators}"].append(cut)
    ordered = {key: tuple(sorted(cuts, key=lambda cut: -cut.seconds)) for key, cuts in groups.items()}
    rows = [_region_row(cuts, step_seconds) for cuts in ordered.values()]
    regions = StepRegions(
        program=runner.program.label,
        device=facts.device,
        torch=facts.torch,
        graphs=answer["graphs"],
        step_seconds=step_seconds,
        kernel_seconds=answer["kernel_seconds"] / TRACED_STEPS,
        rows=tuple(sorted(rows, key=lambda row: -row.seconds)),
        measured=this_minute(),
    )
    return SurveyedStep(regions, ordered)


def find_region(surveyed: SurveyedStep, digest: str) -> tuple[RegionRow, tuple[CutRegion, ...]]:
    """Return the region with this digest, or the only one whose digest begins so, with its places.

    Raises:
        MissingInput: the step has no such region.
        Misuse: several digests begin so.
    """
    rows = {row.digest: row for row in surveyed.regions.rows if row.digest}
    matches = [digest] if digest in rows else [name for name in rows if digest and name.startswith(digest)]
    if len(matches) > 1:
        raise Misuse(f"Several regions begin with `{digest}`: {', '.join(matches)}; give more of the digest.")
    if not matches:
        nearest = difflib.get_close_matches(digest, rows, 3, 0.5) or list(rows)[:5]
        choice = f"it has {', '.join(nearest)}" if nearest else "it has none that can be replaced"
        raise MissingInput(f"The step of {surveyed.regions.program} has no region `{digest}`; {choice}.")
    return rows[matches[0]], surveyed.cuts[matches[0]]


def _region_row(cuts: Sequence[CutRegion], step_seconds: float) -> RegionRow:
    seconds = sum(cut.seconds for cut in cuts) / TRACED_STEPS
    share = min(seconds / step_seconds, 1.0)
    region = cuts[0].region
    return RegionRow(
        digest=region.digest if region else "",
        kind=region.kind if region else "",
        operators=cuts[0].operators,
        kernels=tuple(dict.fromkeys(name for cut in cuts for name in cut.kernels)),
        chained=len(cuts[0].kernels) > 1,
        backward=all(cut.backward for cut in cuts),
        calls=sum(cut.calls for cut in cuts) / TRACED_STEPS,
        seconds=seconds,
        share=share,
        ceiling=amdahl_bound(share),
        inputs=tuple(map(_describe_tensor, region.inputs)) if region else (),
        outputs=tuple(map(_describe_tensor, region.results)) if region else (),
        sizes=len({_sizes(cut.region) for cut in cuts if cut.region}) or 1,
        refusal=cuts[0].refusal,
    )


def _sizes(region: RegionGraph) -> tuple[tuple[int, ...], ...]:
    return tuple(tensor.shape for tensor in region.inputs)


def _describe_tensor(tensor: RegionTensor) -> str:
    return f"{'x'.join(map(str, tensor.shape)) or 'scalar'} {tensor.dtype}"
