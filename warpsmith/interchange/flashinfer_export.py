"""Export of an operator as a FlashInfer-Trace data set: definitions, workloads, and every version as a
solution."""

from __future__ import annotations

import ast
import builtins
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from warpsmith import files, languages
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload
from warpsmith.core.text import VERSION, Tell
from warpsmith.errors import BadDefinition, Misuse
from warpsmith.interchange.draft import read_user_text
from warpsmith.interchange.standalone_reference import reference_source
from warpsmith.interchange.trace_schema import (
    TRACE_DTYPES,
    TraceAxis,
    TraceBuildSpec,
    TraceDefinition,
    TraceInput,
    TraceSolution,
    TraceSource,
    TraceTensor,
    TraceWorkload,
    TraceWorkloadLine,
)
from warpsmith.lab.operator import definition_file
from warpsmith.languages.base import BuildFailed, ExportedVersion
from warpsmith.project import Project

AUTHOR = "warpsmith"

_VERSION = re.compile(rf"{VERSION}\.[a-z]+")
_SCALARS = {"float": "float32", "int": "int32", "bool": "bool"}


def export_operator(project: Project, op: str, folder: Path, tell: Tell = lambda _: None) -> list[Path]:
    """Write the operator's data set into `folder`, replacing files of an earlier export.

    If tensors have the workload's dtype, each dtype becomes a separate definition `<op>_<dtype>`. A version that
    cannot run without Warpsmith is left out, and `tell` gets the reason.

    Returns:
        The paths of the files written.

    Raises:
        MissingInput: there is no such definition.
        BadDefinition: FlashInfer-Trace cannot express the definition.
        Misuse: `folder` is not a folder.
    """
    path = project.definition_path(op)
    definition = definition_file.load_definition(path).definition
    texts: dict[Path, str] = {}
    for exported in export_definitions(definition, path):
        texts[exported.path("definitions")] = to_json(exported.definition)
        lines = [line.model_dump_json(exclude_none=True) for line in exported.lines.values()]
        texts[exported.path("workloads")] = "\n".join(lines) + "\n"
        for solution in _solutions(path.parent, definition, exported.definition.name, tell):
            texts[exported.solution_path(solution)] = to_json(solution)
    return write_data_set(folder, texts)


@dataclass(frozen=True)
class ExportedDefinition:
    """Definition for one data type, and its workloads by their names in the operator's definition."""

    definition: TraceDefinition
    """Definition as the format has it."""
    lines: dict[str, TraceWorkloadLine]
    """Workload lines by name."""

    def path(self, kind: Literal["definitions", "workloads", "traces"]) -> Path:
        """Return the place of its file in a data set."""
        suffix = ".json" if kind == "definitions" else ".jsonl"
        return Path(kind) / self.definition.op_type / f"{self.definition.name}{suffix}"

    def solution_path(self, solution: TraceSolution) -> Path:
        """Return the place of a solution in a data set."""
        return (
            Path("solutions") / AUTHOR / self.definition.op_type / self.definition.name / f"{solution.name}.json"
        )


def export_definitions(definition: Definition, path: Path, name: str = "") -> list[ExportedDefinition]:
    """Export a definition, which `path` holds, once for each data type that its workloads have.

    Args:
        definition: the definition.
        path: its file.
        name: replaces its name.

    Raises:
        BadDefinition: FlashInfer-Trace cannot express it.
    """
    reference, exports = reference_source(path), []
    for exported_name, workloads in _by_dtype(definition, name or definition.name).items():
        exporter = _DefinitionExport(definition, workloads, path)
        converted = exporter.definition(exported_name, reference)
        exports.append(
            ExportedDefinition(converted, {w.name: exporter.workload(exported_name, w) for w in workloads})
        )
    return exports


def write_data_set(folder: Path, texts: dict[Path, str]) -> list[Path]:
    """Write the files of a data set, by their places in it.

    Raises:
        Misuse: `folder` is not a folder.
    """
    if folder.exists() and not folder.is_dir():
        raise Misuse(f"{folder} is not a folder.")
    for relative, text in texts.items():
        files.write_file(folder / relative, text)
    return [folder / relative for relative in texts]


def to_json(model: BaseModel) -> str:
    """Return the text of a file with one model."""
    data = model.model_dump(mode="json", exclude_none=True)
    if isinstance(model, TraceDefinition):
        for name, tensor in model.inputs.items():
            data["inputs"][name].setdefault("shape", tensor.shape)  # A null shape is a value.
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _by_dtype(definition: Definition, name: str) -> dict[str, list[Workload]]:
    """Group workloads by the name of the exported definition that they belong to."""
    specs = (*definition.tensor_inputs.values(), *definition.outputs.values())
    if all(spec.dtype != "workload" for spec in specs):
        return {name: list(definition.workloads)}
    groups: dict[str, list[Workload]] = {}
    for workload in definition.workloads:
        groups.setdefault(f"{name}_{workload.dtype}", []).append(workload)
    return groups


class _DefinitionExport:
    """Export of one definition, with new axes for sizes that the definition writes as arithmetic."""

    def __init__(self, definition: Definition, workloads: list[Workload], path: Path) -> None:
        self._definition, self._workloads, self._path = definition, workloads, path
        self._derived: dict[str, str] = {}
        """New axes by the arithmetic that they stand for."""

    def definition(self, name: str, reference: str) -> TraceDefinition:
        """Export the definition with the source of its `run`.

        Raises:
            BadDefinition: the format cannot express it.
        """
        definition = self._definition
        inputs = {key: self._input(spec) for key, spec in definition.inputs.items()}
        outputs = {key: self._tensor(spec) for key, spec in definition.outputs.items()}
        own = {key: _axis(key, size) for key, size in definition.axes.items()}
        derived = {axis: self._derived_axis(text) for text, axis in self._derived.items()}
        equal = [f"{axis} == {text}" for text, axis in self._derived.items() if derived[axis].type == "var"]
        known_names = {*definition.axes, *definition.inputs}
        expressions = [text for text in definition.constraints if _is_expression(text, known_names)]
        words = [text for text in definition.constraints if text not in expressions]
        try:
            return TraceDefinition(
                name=name,
                op_type=definition.op_type,
                tags=list(definition.tags),
                description=" ".join([definition.description, *words]),
                axes=own | derived,
                constraints=[*expressions, *equal],
                inputs=inputs,
                outputs=outputs,
                reference=reference,
            )
        except ValueError as error:
            message = " ".join(str(error).split())[:300]
            raise BadDefinition(f"{self._path} does not fit FlashInfer-Trace: {message}") from error

    def workload(self, name: str, workload: Workload) -> TraceWorkloadLine:
        """Export a workload; `definition` must have been called before."""
        scalars = self._definition.scalars(workload)
        inputs = {
            key: TraceInput(type="scalar", value=scalars[key]) if key in scalars else TraceInput(type="random")
            for key in self._definition.inputs
        }
        derived = {axis: self._size(text, workload) for text, axis in self._derived.items()}
        variable = {axis: size for axis, size in derived.items() if self._derived_axis_named(axis).type == "var"}
        point = TraceWorkload(uuid=workload.name, axes={**workload.axes, **variable}, inputs=inputs)
        return TraceWorkloadLine(definition=name, workload=point)

    def _input(self, spec: TensorSpec | ScalarSpec) -> TraceTensor:
        if isinstance(spec, TensorSpec):
            return self._tensor(spec)
        return TraceTensor(shape=None, dtype=_SCALARS[spec.type], description=spec.description or None)

    def _tensor(self, spec: TensorSpec) -> TraceTensor:
        dtype = self._definition.dtype(spec, self._workloads[0])
        if dtype not in TRACE_DTYPES:
            raise BadDefinition(f"{self._path}: FlashInfer-Trace has no dtype `{dtype}`.")
        shape = [self._axis_of(size) for size in spec.shape]
        return TraceTensor(shape=shape, dtype=dtype, description=spec.description or None)

    def _axis_of(self, size: str | int) -> str:
        if size in self._definition.axes:
            return str(size)
        if str(size) not in self._derived:
            stem = f"size_{size}" if isinstance(size, int) else f"derived_{len(self._derived)}"
            while stem in self._definition.axes:
                stem += "_"
            self._derived[str(size)] = stem
        return self._derived[str(size)]

    def _size(self, text: str, workload: Workload) -> int:
        return self._definition.shape(TensorSpec(shape=(text,)), workload)[0]

    def _derived_axis(self, text: str) -> TraceAxis:
        """Describe a new axis: fixed if its size uses only fixed axes, else variable."""
        fixed = {name for name, size in self._definition.axes.items() if isinstance(size, int)}
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        if names <= fixed:
            return TraceAxis(type="const", value=self._size(text, self._workloads[0]), description=text)
        return TraceAxis(type="var", description=text)

    def _derived_axis_named(self, axis: str) -> TraceAxis:
        return self._derived_axis(next(text for text, name in self._derived.items() if name == axis))


def _axis(name: str, size: str | int) -> TraceAxis:
    if isinstance(size, int):
        return TraceAxis(type="const", value=size)
    return TraceAxis(type="var", description=size if size != name else None)


def _is_expression(text: str, names: set[str]) -> bool:
    """Return whether a constraint is a Python expression over these names; prose can look like one: `cols is
    even, always`."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} <= names | set(dir(builtins))


def _solutions(folder: Path, definition: Definition, name: str, tell: Tell) -> list[TraceSolution]:
    """List every version under `kernels/<op>/<language>/` that runs without Warpsmith as a solution."""
    solutions = []
    notes: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*/v*.*")):
        language = path.parent.name
        if not _VERSION.fullmatch(path.name) or not read_user_text(path).strip():
            continue
        version = f"{language}/{path.stem}"
        if language not in languages.names():
            tell(f"{version} is left out of {name}: {language} is no language of Warpsmith.")
            continue
        try:
            exported = languages.get(language).export(path, definition)
        except BuildFailed as error:
            tell(f"{version} is left out of {name}: {error}.")
            continue
        for note in exported.notes:
            notes.setdefault(note, []).append(version)
        solutions.append(to_solution(definition, name, path, exported))
    for note, versions in notes.items():
        tell(f"{name}, {', '.join(versions)}: {note}.")
    return solutions


def solution_name(name: str, path: Path) -> str:
    """Return the name of the solution of a version `<language>/v<N>.<suffix>` for a definition."""
    return f"{name}_{path.parent.name}_{path.stem}"


def to_solution(definition: Definition, name: str, path: Path, exported: ExportedVersion) -> TraceSolution:
    """Describe an exported version as a solution of the definition that is exported under `name`."""
    language = path.parent.name
    on_cpu = tuple(languages.get(language).targets) == ("cpu",)
    spec = TraceBuildSpec(
        language=exported.language,
        target_hardware=["cpu" if on_cpu else "cuda"],
        entry_point=f"{next(iter(exported.files))}::run",
        dependencies=list(exported.packages),
        destination_passing_style=exported.takes_outputs,
        binding=exported.binding,
    )
    notes = "".join(f" Note: {note}." for note in exported.notes)
    return TraceSolution(
        name=solution_name(name, path),
        definition=name,
        author=AUTHOR,
        spec=spec,
        sources=[TraceSource(path=file, content=text) for file, text in exported.files.items()],
        description=f"{definition.description} Version {path.stem} in {language}.{notes}",
    )
