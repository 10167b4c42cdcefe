"""Extraction of a region from a compiled step: it becomes a definition with the step's sizes and call counts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.core.text import Tell
from warpsmith.errors import Misuse
from warpsmith.interchange import create
from warpsmith.interchange.draft import DefinitionDraft
from warpsmith.program.compiled.models import CutRegion, RegionRow
from warpsmith.program.compiled.region_graph import RegionGraph, RegionTensor
from warpsmith.program.operators import accepted_regions, call_form
from warpsmith.program.operators.call_form import CallForm
from warpsmith.program.operators.definition_writer import DefinitionWriter
from warpsmith.program.operators.models import (
    CALLS_FILE,
    CallArgument,
    CallSignature,
    Extraction,
    OperatorRow,
    RecordedTensor,
)
from warpsmith.program.operators.reference_source import RegionReference
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import TIMEOUT, Runner
from warpsmith.program.regions import region_axes, survey
from warpsmith.program.regions.region_axes import RegionAxes
from warpsmith.program.regions.region_source import RegionSource
from warpsmith.program.trials import trial_store
from warpsmith.project import Project

_OBSERVED_STEPS = 2

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ExtractedRegion:
    """A written definition of a region."""

    path: Path
    """Path of the definition."""
    extraction: Extraction
    """The calls that it covers."""
    row: RegionRow
    """The region in the list of the step's regions."""
    notes: tuple[str, ...]
    """Sentences for people."""


def extract_region(
    project: Project,
    program: Program,
    digest: str,
    *,
    name: str = "",
    like: str = "",
    seed: int = 0,
    timeout: float = TIMEOUT,
    tell: Tell = print,
) -> ExtractedRegion:
    """Write the definition of a region; `like` selects a form by a part of a workload's name.

    Raises:
        Misuse: the step compiles nothing, the name is taken or invalid, or the region is defined already.
        MissingInput: the step has no such region, or no call matches `like`.
        BadDefinition: the reference does not do what the definition says.
        SolutionFailed, TimedOut, MachineLacks: as `Runner`.
    """
    if name:
        _check_name(project, name)
    with survey.region_runner(project, program, seed, timeout) as runner:
        runner.start()
        surveyed = survey.survey_regions(runner, tell)
        row, cuts = survey.find_region(surveyed, digest)
        defined_as = accepted_regions.list_definitions(project).get(row.digest)
        if defined_as and not name:
            raise Misuse(
                f"The region {row.digest} is defined as `{defined_as}` already; --name NAME makes another one."
            )
        op = name or f"{row.kind.replace(' ', '_')}_{row.digest}"
        _check_name(project, op)
        signatures = _call_signatures(cuts, _observe(runner, cuts, tell))
    title = f"{row.kind} region {row.digest}"
    form = call_form.choose_form(title, signatures, like)
    tell("checking the definition")
    regions = [_region_of(cuts, signature) for signature in form.signatures]
    writer = _write(op, row, form, regions, program)
    extraction = Extraction(
        op=op,
        operator=title,
        program=trial_store.program_reference(project, program),
        device=surveyed.regions.device,
        step_seconds=surveyed.regions.step_seconds,
        slots=tuple(argument.slot for argument in form.arguments),
        results=writer.results,
        called=writer.workload_calls,
        region=regions[0],
    )
    path = project.definition_path(op)
    draft = DefinitionDraft(
        {CALLS_FILE: extraction.model_dump_json(indent=2) + "\n", path.name: writer.text}, writer.notes
    )
    draft.write(path)
    return ExtractedRegion(path, extraction, row, draft.notes)


def _check_name(project: Project, op: str) -> None:
    create.check_operator_name(op)
    if project.definition_path(op).exists():
        raise Misuse(f"{project.definition_path(op)} exists; choose another name with --name.")


def _observe(runner: Runner, cuts: Sequence[CutRegion], tell: Tell) -> dict[Shapes, list[dict[str, Any]]]:
    """Return the ranges of the values that enter the region, by the shapes of its inputs."""
    tell("observing the values that enter the region")
    region = next(cut.region for cut in cuts if cut.region)
    rows = runner.call("region_values", region=region.model_dump(mode="json"), steps=_OBSERVED_STEPS)
    ranges: dict[Shapes, list[dict[str, Any]]] = {}
    for item in rows:
        ranges.setdefault(tuple(map(tuple, item["shapes"])), item["tensors"])
    return ranges


def _call_signatures(
    cuts: Sequence[CutRegion], ranges: Mapping[Shapes, list[dict[str, Any]]]
) -> tuple[CallSignature, ...]:
    """Return the calls of a region, those with the same tensors together, the most time first."""
    groups: dict[tuple[RegionTensor, ...], list[CutRegion]] = defaultdict(list)
    for cut in cuts:
        if cut.region is not None:
            groups[cut.region.inputs].append(cut)
    signatures = []
    for inputs, places in groups.items():
        region = places[0].region
        assert region is not None
        shapes = tuple(tensor.shape for tensor in inputs)
        observed = ranges.get(shapes) or [{} for _ in inputs]
        tensors = [_recorded(tensor, fields) for tensor, fields in zip(inputs, observed, strict=True)]
        names = _parameter_names(tensors)
        calls = sum(item.calls for item in places) / survey.TRACED_STEPS
        signatures.append(
            CallSignature(
                arguments=tuple(
                    CallArgument(name=name, tensor=tensor) for name, tensor in zip(names, tensors, strict=True)
                ),
                outputs=tuple(_recorded(tensor, {}) for tensor in region.results),
                calls=calls or 1 / survey.TRACED_STEPS,
                seconds=sum(item.seconds for item in places) / survey.TRACED_STEPS,
            )
        )
    return tuple(sorted(signatures, key=lambda item: -item.seconds))


def _recorded(tensor: RegionTensor, observed: Mapping[str, Any]) -> RecordedTensor:
    return RecordedTensor.model_validate({**tensor.model_dump(), **observed})


def _parameter_names(tensors: Sequence[RecordedTensor]) -> list[str]:
    """Name the inputs of a region by what they are; the largest activation is `x`."""
    kinds = [_parameter_kind(tensor) for tensor in tensors]
    total, numbers, names = Counter(kinds), Counter[str](), []
    for kind in kinds:
        names.append(kind if total[kind] == 1 else f"{kind}{numbers[kind]}")
        numbers[kind] += 1
    return names


def _parameter_kind(tensor: RecordedTensor) -> str:
    if tensor.weight:
        return "weight"
    if tensor.dtype == "bool":
        return "mask"
    if not is_floating(tensor.dtype):
        return "index"
    return "scale" if tensor.shape and tensor.shape[-1] == 1 and math.prod(tensor.shape) > 1 else "x"


def _region_of(cuts: Sequence[CutRegion], signature: CallSignature) -> RegionGraph:
    """Return the region with the tensors of a call."""
    expected = [(item.tensor.shape, item.tensor.strides) for item in signature.arguments if item.tensor]
    return next(
        cut.region
        for cut in cuts
        if cut.region and [(tensor.shape, tensor.strides) for tensor in cut.region.inputs] == expected
    )


def _write(
    op: str, row: RegionRow, form: CallForm, regions: Sequence[RegionGraph], program: Program
) -> DefinitionWriter:
    """Write the definition with free axes, or with fixed ones if its reference does not run at other sizes."""
    source = RegionSource(
        regions[0],
        [str(argument.slot.input) for argument in form.arguments],
        [argument.slot.order for argument in form.arguments],
        region_axes.result_orders(regions[0]),
        form.dtypes[0],
    )
    region_axes_of_form = RegionAxes(form, regions, source)
    title = f"{row.kind} region {row.digest}"
    operator = OperatorRow(name=title, calls=row.calls, seconds=row.seconds, share=row.share, ceiling=row.ceiling)
    for fixed in (False, True):
        result = region_axes_of_form.describe(fixed)
        if not result:
            continue
        reference = RegionReference(row.digest, row.kind, result["body"])
        writer = DefinitionWriter(op, operator, form, result, program.label, reference)
        if not writer.has_unknown_size and writer.check_reference(last=fixed):
            return writer
    raise Misuse(
        f"The region {row.digest} cannot become a definition: the sizes of its results follow no formula."
    )
