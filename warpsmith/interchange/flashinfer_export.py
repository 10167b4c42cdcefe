"""Writes an operator as a FlashInfer-Trace data set: definitions, workloads, and every version as a solution."""

from __future__ import annotations

import ast
import builtins
import json
import re
from pathlib import Path

from pydantic import BaseModel

from warpsmith import files, languages
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload
from warpsmith.errors import BadDefinition, Misuse
from warpsmith.interchange import trace_schema as trace
from warpsmith.interchange.draft import read_user_text
from warpsmith.interchange.standalone_reference import reference_source
from warpsmith.lab.operator import definition_file
from warpsmith.project import Project

AUTHOR = "warpsmith"

_VERSION = re.compile(r"v[1-9]\d*\.[a-z]+")
_LANGUAGES = {"triton": "triton", "cpp": "cpp", "cuda": "cuda", "tilelang": "tilelang"}
_SCALARS = {"float": "float32", "int": "int32", "bool": "bool"}


def export_operator(project: Project, op: str, folder: Path) -> list[Path]:
    """Write the operator's data set into `folder`; files of an earlier export are replaced.

    Where tensors have the workload's dtype, each dtype is a definition of its own, `<op>_<dtype>`.

    Returns:
        What was written.

    Raises:
        MissingInput: there is no such definition.
        BadDefinition: the definition has what FlashInfer-Trace cannot say.
        Misuse: `folder` is no folder.
    """
    path = project.definition(op)
    ours = definition_file.load_definition(path).definition
    reference = reference_source(path)
    written: dict[Path, str] = {}
    for name, workloads in _by_dtype(ours).items():
        place = Path(ours.op_type) / name
        shapes = _DefinitionExport(ours, workloads, path)
        written[Path("definitions") / place.with_suffix(".json")] = _json(shapes.definition(name, reference))
        lines = [shapes.workload(name, workload).model_dump_json(exclude_none=True) for workload in workloads]
        written[Path("workloads") / place.with_suffix(".jsonl")] = "\n".join(lines) + "\n"
        for solution in _solutions(path.parent, ours, name):
            written[Path("solutions") / AUTHOR / place / f"{solution.name}.json"] = _json(solution)
    if folder.exists() and not folder.is_dir():
        raise Misuse(f"{folder} is no folder.")
    for relative, text in written.items():
        files.write_file(folder / relative, text)
    return [folder / relative for relative in written]


def _json(model: BaseModel) -> str:
    data = model.model_dump(mode="json", exclude_none=True)
    if isinstance(model, trace.TraceDefinition):
        for name, tensor in model.inputs.items():
            data["inputs"][name].setdefault("shape", tensor.shape)  # null is a value here
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _by_dtype(ours: Definition) -> dict[str, list[Workload]]:
    """Workloads by the name of the definition that they go to."""
    specs = (*ours.tensor_inputs.values(), *ours.outputs.values())
    if all(spec.dtype != "workload" for spec in specs):
        return {ours.name: list(ours.workloads)}
    groups: dict[str, list[Workload]] = {}
    for workload in ours.workloads:
        groups.setdefault(f"{ours.name}_{workload.dtype}", []).append(workload)
    return groups


class _DefinitionExport:
    """One exported definition: axes, and those made up for sizes that ours writes as arithmetic."""

    def __init__(self, ours: Definition, workloads: list[Workload], path: Path) -> None:
        self._ours, self._workloads, self._path = ours, workloads, path
        self._derived: dict[str, str] = {}
        """Axis by the arithmetic that it stands for."""

    def definition(self, name: str, reference: str) -> trace.TraceDefinition:
        """The definition, with the source of its `run`; raises BadDefinition where the format cannot say it."""
        ours = self._ours
        inputs = {key: self._input(spec) for key, spec in ours.inputs.items()}
        outputs = {key: self._tensor(spec) for key, spec in ours.outputs.items()}
        own = {key: _axis(key, size) for key, size in ours.axes.items()}
        made = {axis: self._made(text) for text, axis in self._derived.items()}
        equal = [f"{axis} == {text}" for text, axis in self._derived.items() if made[axis].type == "var"]
        known = {*ours.axes, *ours.inputs}
        expressions = [text for text in ours.constraints if _is_expression(text, known)]
        words = [text for text in ours.constraints if text not in expressions]
        try:
            return trace.TraceDefinition(
                name=name,
                op_type=ours.op_type,
                tags=list(ours.tags),
                description=" ".join([ours.description, *words]),
                axes=own | made,
                constraints=[*expressions, *equal],
                inputs=inputs,
                outputs=outputs,
                reference=reference,
            )
        except ValueError as error:
            said = " ".join(str(error).split())[:300]
            raise BadDefinition(f"{self._path} does not fit FlashInfer-Trace: {said}") from error

    def workload(self, name: str, workload: Workload) -> trace.TraceWorkloadLine:
        """A workload, after `definition` was called."""
        scalars = self._ours.scalars(workload)
        inputs = {
            key: trace.TraceInput(type="scalar", value=scalars[key])
            if key in scalars
            else trace.TraceInput(type="random")
            for key in self._ours.inputs
        }
        made = {axis: self._size(text, workload) for text, axis in self._derived.items()}
        variable = {axis: size for axis, size in made.items() if self._made_by_axis(axis).type == "var"}
        point = trace.TraceWorkload(uuid=workload.name, axes={**workload.axes, **variable}, inputs=inputs)
        return trace.TraceWorkloadLine(definition=name, workload=point)

    def _input(self, spec: TensorSpec | ScalarSpec) -> trace.TraceTensor:
        if isinstance(spec, TensorSpec):
            return self._tensor(spec)
        return trace.TraceTensor(shape=None, dtype=_SCALARS[spec.type], description=spec.description or None)

    def _tensor(self, spec: TensorSpec) -> trace.TraceTensor:
        dtype = self._ours.dtype(spec, self._workloads[0])
        if dtype not in trace.TRACE_DTYPES:
            raise BadDefinition(f"{self._path}: FlashInfer-Trace has no dtype `{dtype}`.")
        shape = [self._axis_of(size) for size in spec.shape]
        return trace.TraceTensor(shape=shape, dtype=dtype, description=spec.description or None)

    def _axis_of(self, size: str | int) -> str:
        if size in self._ours.axes:
            return str(size)
        if str(size) not in self._derived:
            stem = f"size_{size}" if isinstance(size, int) else f"derived_{len(self._derived)}"
            while stem in self._ours.axes:
                stem += "_"
            self._derived[str(size)] = stem
        return self._derived[str(size)]

    def _size(self, text: str, workload: Workload) -> int:
        return self._ours.shape(TensorSpec(shape=(text,)), workload)[0]

    def _made(self, text: str) -> trace.TraceAxis:
        """Fixed where every workload agrees because only fixed axes are in it; else variable."""
        fixed = {name for name, size in self._ours.axes.items() if isinstance(size, int)}
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        if names <= fixed:
            return trace.TraceAxis(type="const", value=self._size(text, self._workloads[0]), description=text)
        return trace.TraceAxis(type="var", description=text)

    def _made_by_axis(self, axis: str) -> trace.TraceAxis:
        return self._made(next(text for text, name in self._derived.items() if name == axis))


def _axis(name: str, size: str | int) -> trace.TraceAxis:
    if isinstance(size, int):
        return trace.TraceAxis(type="const", value=size)
    return trace.TraceAxis(type="var", description=size if size != name else None)


def _is_expression(text: str, known: set[str]) -> bool:
    """Whether a constraint is Python over these names; words can look like it: `cols is even, always`."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} <= known | set(dir(builtins))


def _solutions(folder: Path, ours: Definition, name: str) -> list[trace.TraceSolution]:
    """Every version under `kernels/<op>/<language>/`."""
    found = []
    for path in sorted(folder.glob("*/v*.*")):
        if not _VERSION.fullmatch(path.name) or not (text := read_user_text(path)).strip():
            continue
        language = path.parent.name
        on_cpu = language in languages.names() and tuple(languages.get(language).targets) == ("cpu",)
        spec = trace.TraceBuildSpec(
            language=_LANGUAGES.get(language, "python"),
            target_hardware=["cpu" if on_cpu else "cuda"],
            entry_point=f"{path.name}::run",
            destination_passing_style=ours.outputs_are == "given",
        )
        found.append(
            trace.TraceSolution(
                name=f"{name}_{language}_{path.stem}",
                definition=name,
                author=AUTHOR,
                spec=spec,
                sources=[trace.TraceSource(path=path.name, content=text)],
                description=f"{ours.description} Version {path.stem} in {language}.",
            )
        )
    return found
