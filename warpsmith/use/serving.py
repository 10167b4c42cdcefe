"""Export for serving: a data set from which flashinfer-bench's `apply` calls the best version of an operator.

`apply` looks the definition up by its name and the call by the sizes of its variable axes. Of the solutions with a
trace there that passed within its error limits, it calls the one with the largest speedup.
"""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith import languages
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import REFERENCE, Evaluation
from warpsmith.core.text import Tell
from warpsmith.errors import BadDefinition, MachineLacks, SolutionFailed
from warpsmith.interchange import flashinfer_export
from warpsmith.interchange.capture import SERVING_TAG
from warpsmith.interchange.flashinfer_export import ExportedDefinition
from warpsmith.interchange.trace_schema import (
    TraceEntry,
    TraceEnvironment,
    TraceErrors,
    TraceEvaluation,
    TracePerformance,
)
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.languages.base import BuildFailed
from warpsmith.packages import require_torch
from warpsmith.temporary import TemporaryFolder
from warpsmith.use import choice
from warpsmith.use.choice import BestVersion
from warpsmith.use.operator import BestFunction, best_accepted

if TYPE_CHECKING:
    import torch

    from warpsmith.project import Project

_EPSILON = 1e-8
"""Number that flashinfer-bench adds to the reference where it divides by it."""

_DEFAULT_ATOL, _DEFAULT_RTOL = 1e-2, 1e-5
"""Limits that `apply` has for errors of a trace if it gets no configuration."""

_SEED = 0


@dataclass(frozen=True)
class ServingExport:
    """Export of an operator's best version for `apply`."""

    paths: tuple[Path, ...]
    """Files written."""
    names: tuple[str, ...]
    """Definitions that the serving process calls."""
    solution: str
    """Version as records name it: `cpp/v3`."""
    workloads: tuple[str, ...]
    """Workloads at which `apply` finds the version."""
    largest_absolute: float
    """Largest absolute error against the reference."""
    largest_relative: float
    """Largest relative error of an element against the reference."""

    @property
    def max_atol(self) -> float:
        """Limit for absolute errors that `apply` needs, at least its default."""
        return max(_DEFAULT_ATOL, _rounded_up(self.largest_absolute))

    @property
    def max_rtol(self) -> float:
        """Limit for relative errors that `apply` needs, at least its default."""
        return max(_DEFAULT_RTOL, _rounded_up(self.largest_relative))

    @property
    def within_defaults(self) -> bool:
        """True if `apply` uses the version without a configuration."""
        return self.max_atol == _DEFAULT_ATOL and self.max_rtol == _DEFAULT_RTOL


def export_for_serving(
    project: Project, op: str, folder: Path, name: str = "", tell: Tell = lambda _: None
) -> ServingExport:
    """Write the operator's definition, its best version for this machine, and a trace for each judged workload.

    A definition of that name in `folder` stays as it is, and so do traces of other solutions: `folder` may be the
    data set of the serving process. The version runs once at each workload, to measure its errors as
    flashinfer-bench does; times come from the judgement.

    Args:
        project: the project that has the operator.
        op: the operator.
        folder: the data set.
        name: name that the process calls; by default the one in the capture, else that of the operator.
        tell: receives what was left out, and why.

    Raises:
        MissingInput: there is no such operator.
        MachineLacks: PyTorch is missing, or no accepted version runs on this machine.
        BadDefinition: FlashInfer-Trace cannot express the definition.
        SolutionFailed: the version's results are not finite where the reference's are.
        Misuse: `folder` is not a folder.
    """
    require_torch("export --apply")
    import torch

    file = definition_file.load_definition(project.definition_path(op))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    function, version = _best_version(project, file, device)
    evaluation = choice.read_judgement(project, version)
    timed = _timed_workloads(file, evaluation, tell)
    exports = flashinfer_export.export_definitions(file.definition, file.path, name or _serving_name(file))
    for exported in exports:
        _check_axes(file, exported)
    errors = {workload.name: _measure_errors(file, function, workload, device) for workload in timed}
    texts: dict[Path, str] = {}
    for exported in exports:
        texts |= _data_set(folder, file, version, exported, evaluation, errors)
    measured = [errors[workload.name] for workload in timed]
    return ServingExport(
        paths=tuple(flashinfer_export.write_data_set(folder, texts)),
        names=tuple(exported.definition.name for exported in exports),
        solution=version.solution,
        workloads=tuple(workload.name for workload in timed),
        largest_absolute=max(each.max_absolute_error for each in measured),
        largest_relative=max(each.max_relative_error for each in measured),
    )


def _rounded_up(value: float) -> float:
    """Round a positive number up to two significant digits."""
    rounded = float(f"{value:.1e}")
    return rounded if rounded >= value else float(f"{value * 1.06:.1e}")


def _best_version(project: Project, file: DefinitionFile, device: str) -> tuple[BestFunction, BestVersion]:
    op = file.definition.name
    try:
        function = best_accepted(project, file, device)
    except (MachineLacks, BuildFailed) as error:
        text = str(error).rstrip(".")
        raise MachineLacks(
            f"{op}: {text}; export it on the machine that serves, from a project with an accepted version."
        ) from error
    versions = [v for group in choice.rank_versions(project, op).values() for v in group]
    return function, next(version for version in versions if version.solution == function.solution)


def _check_axes(file: DefinitionFile, exported: ExportedDefinition) -> None:
    """Check that the inputs show every size: `apply` has no other source of them.

    Raises:
        BadDefinition: they do not.
    """
    definition = exported.definition
    input_axes = {axis for tensor in definition.inputs.values() for axis in tensor.shape or ()}
    variable = {axis: spec for axis, spec in definition.axes.items() if spec.type == "var"}
    if hidden := [spec.description or axis for axis, spec in variable.items() if axis not in input_axes]:
        raise BadDefinition(
            f"{file.path}: no input has the size {', '.join(hidden)}, but flashinfer-bench's apply reads sizes "
            "off inputs; it cannot serve the operator."
        )


def _serving_name(file: DefinitionFile) -> str:
    """Return the name in the capture, else that of the operator."""
    names = (tag.removeprefix(SERVING_TAG) for tag in file.definition.tags if tag.startswith(SERVING_TAG))
    return next(names, file.definition.name)


def _timed_workloads(file: DefinitionFile, evaluation: Evaluation, tell: Tell) -> list[Workload]:
    """List the workloads at which the version was timed and beats the reference; name the others."""
    untimed, slower, timed = [], [], []
    for workload in file.definition.workloads:
        timing = evaluation.timed.get(workload.name)
        against = timing.against(REFERENCE) if timing else None
        if against and against.speedup > 1:
            timed.append(workload)
        elif against:
            slower.append(workload.name)
        elif workload.timed:
            untimed.append(workload.name)
    if slower:
        tell(f"Left out, since the reference is as fast there: {', '.join(slower)}.")
    if untimed:
        tell(f"Left out, since no judgement has a time: {', '.join(untimed)}; `warpsmith race --final` times all.")
    if not timed:
        raise SolutionFailed(f"{file.definition.name}: the best version beats the reference at no workload.")
    return timed


def _measure_errors(file: DefinitionFile, function: BestFunction, workload: Workload, device: str) -> TraceErrors:
    """Measure the errors of one call against the reference in its own precision."""
    import torch

    inputs = {**Inputs(file, workload, _SEED, device).draw(), **file.definition.scalars(workload)}
    arguments = [inputs[name] for name in file.definition.inputs]
    with torch.no_grad():
        truth, results = file.outputs(file.reference(*arguments)), file.outputs(function(*arguments))
    largest = [0.0, 0.0]
    for name, expected in truth.items():
        for index, error in enumerate(_errors(results[name], expected)):
            largest[index] = max(largest[index], error)
            if not math.isfinite(error):
                raise SolutionFailed(
                    f"{function.solution}: `{name}` is not finite where the reference is, at {workload.name}; "
                    "judge the version again."
                )
    return TraceErrors(max_absolute_error=largest[0], max_relative_error=largest[1])


def _errors(result: torch.Tensor, expected: torch.Tensor) -> tuple[float, float]:
    """Return the largest absolute and relative error of an element; equal infinities and NaN are none."""
    import torch

    wide, truth = result.double(), expected.double()
    same = (wide == truth) | (wide.isnan() & truth.isnan())
    absolute = torch.where(same, 0.0, (wide - truth).abs())
    relative = torch.where(same, 0.0, absolute / (truth.abs() + _EPSILON))
    return (float(absolute.max()), float(relative.max())) if absolute.numel() else (0.0, 0.0)


def _data_set(
    folder: Path,
    file: DefinitionFile,
    version: BestVersion,
    exported: ExportedDefinition,
    evaluation: Evaluation,
    errors: dict[str, TraceErrors],
) -> dict[Path, str]:
    """Return the files of one definition by their places: the definition, the solution and its traces."""
    name, language = exported.definition.name, languages.get(version.language)
    with TemporaryFolder() as temporary:
        # The judged source may be a copy beside its record, under another name.
        source = Path(temporary) / version.language / f"{Path(version.solution).name}{language.suffix}"
        source.parent.mkdir()
        shutil.copyfile(version.file, source)
        try:
            version_files = language.export(source, file.definition, flashinfer_export.solution_name(name, source))
        except BuildFailed as error:
            raise MachineLacks(f"{version.solution} cannot be exported: {error}.") from error
        solution = flashinfer_export.to_solution(file.definition, name, source, version_files)
    entries = [
        _entry(exported, solution.name, workload, evaluation, errors[workload]).model_dump_json(exclude_none=True)
        for workload in exported.lines
        if workload in errors
    ]
    traces = exported.path("traces")
    texts = {
        exported.solution_path(solution): flashinfer_export.to_json(solution),
        traces: "\n".join([*_other_traces(folder / traces, name), *entries]) + "\n",
    }
    if not list((folder / "definitions").rglob(f"{name}.json")):
        texts[exported.path("definitions")] = flashinfer_export.to_json(exported.definition)
    return texts


def _entry(
    exported: ExportedDefinition, solution: str, workload: str, evaluation: Evaluation, errors: TraceErrors
) -> TraceEntry:
    timing = evaluation.timed[workload]
    against = timing.against(REFERENCE)
    assert against is not None  # It was timed beside the reference.
    machine = evaluation.provenance.machine
    return TraceEntry(
        definition=exported.definition.name,
        workload=exported.lines[workload].workload,
        solution=solution,
        evaluation=TraceEvaluation(
            environment=TraceEnvironment(hardware=machine.device, libs=machine.libraries),
            timestamp=str(evaluation.provenance.measured),
            log=f"Judged by Warpsmith as {evaluation.provenance.solution}.",
            correctness=errors,
            performance=TracePerformance(
                latency_ms=1e3 * timing.seconds,
                reference_latency_ms=1e3 * against.other_seconds,
                speedup_factor=against.speedup,
            ),
        ),
    )


def _other_traces(path: Path, name: str) -> list[str]:
    """Return the lines of a file of traces that are not of solutions that Warpsmith exported."""
    if not path.is_file():
        return []
    own = {
        solution_path.stem
        for solution_path in (path.parents[2] / "solutions" / flashinfer_export.AUTHOR).rglob(f"{name}_*.json")
    }
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [line for line in lines if json.loads(line).get("solution") not in own]
