"""A process in which Triton interprets: for each path on standard input, how that version's results were graded.

Triton reads once, when it is imported, whether it interprets; the tests' own process must stay able to compile.
"""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from warpsmith.core.definition import Definition, Workload
    from warpsmith.lab.operator.definition_file import DefinitionFile

MOST_ELEMENTS = 1 << 17
"""Elements of all tensors of a workload that is interpreted."""

WORKLOADS = 3
"""Workloads a version is interpreted at."""

_BEYOND = re.compile(r"experimental\.gluon|experimental import gluon")
"""What the interpreter cannot do. Inline assembly is refused where it is called, since a version may have a plain
path."""


def definition_of(path: Path) -> Path:
    """The definition that a version or a draft belongs to."""
    return next(folder / "definition.py" for folder in path.parents if (folder / "definition.py").is_file())


def workloads(definition: Definition) -> list[Workload]:
    """The smallest, the largest and one between of those small enough, in types that Triton interprets."""
    from warpsmith import languages

    language = languages.get("triton")
    fitting = {}
    for one in sorted(definition.workloads, key=definition.elements):
        if language.distrust(definition, one):
            one = one.model_copy(update={"dtype": "float16", "name": f"{one.name}-as-fp16"})
        if definition.elements(one) <= MOST_ELEMENTS and not language.distrust(definition, one):
            fitting.setdefault((*one.axes.values(), one.dtype, one.distribution, *one.scalars.values()), one)
    found = list(fitting.values())
    step = max(1, (len(found) - 1) / (WORKLOADS - 1))
    return [found[round(i * step)] for i in range(WORKLOADS) if round(i * step) < len(found)]


def examine(path: Path) -> dict[str, Any]:
    """What came out: grades by workload and distribution; or why the version cannot be interpreted."""
    from warpsmith.lab.operator import definition_file
    from warpsmith.languages.shared.python_file import execute_file
    from warpsmith.languages.triton import interpreter_fixes

    if found := _BEYOND.search(path.read_text()):
        return {"skipped": f"Triton's interpreter has no {found[0]}"}
    file = definition_file.load_definition(definition_of(path))
    interpreter_fixes.patch_interpreter()
    version = execute_file(path)
    run, definition = version.run, file.definition
    if hasattr(version, "RESULT"):
        run, definition = _rounded_run(version), _with_results_in_float32(definition)
    chosen = workloads(definition)
    if not chosen:
        return {"skipped": f"{definition.name} has no workload that Triton's interpreter could be trusted at"}
    return {"graded": [grade for workload in chosen for grade in _graded(file, workload, run)]}


def _with_results_in_float32(definition: Definition) -> Definition:
    outputs = {name: spec.model_copy(update={"dtype": "float32"}) for name, spec in definition.outputs.items()}
    return definition.model_copy(update={"outputs": outputs})


def _rounded_run(version: Any) -> Any:
    """Return a version's call with results in float32, rounded here: the interpreter truncates to bfloat16."""
    import torch

    result, version.RESULT = version.RESULT, torch.float32
    return lambda *arguments: version.run(*arguments).to(result)


def _graded(file: DefinitionFile, workload: Workload, run: Any) -> list[list[str]]:
    from warpsmith.lab.gate.calls.unread_inputs import plant_unwritten
    from warpsmith.lab.grading import correctness
    from warpsmith.lab.operator.inputs import Inputs
    from warpsmith.lab.operator.promises import mentions_finite

    drawn = Inputs(file, workload, 7, "cpu")
    found = []
    for distribution in (None, "one_hot") if drawn.adversarial_distributions else (None,):
        inputs = drawn.draw(distribution)
        truth = correctness.compute_truth(file, workload, inputs, correlated=distribution is not None)
        if distribution and correctness.grade_reference(file, workload, inputs, truth).status != "PASSED":
            continue
        kinds = {distribution or workload.distribution: inputs}
        is_plantable = not distribution and not mentions_finite(file.definition)
        if is_plantable and (planted := plant_unwritten(file, workload, inputs, drawn.draw())):
            kinds["NaN and infinities in what is not read"] = planted
        for kind, tensors in kinds.items():
            before = {name: tensor.clone() for name, tensor in tensors.items()}
            outputs = _outputs(file, workload, tensors, run)
            fault = _fault(file, workload, outputs) or _changed(before, tensors)
            grade = correctness.grade_outputs(truth, outputs) if not fault else None
            status, detail = (grade.status, grade.detail) if grade else ("WRONG_KIND", fault)
            found.append([workload.name, kind, status, detail])
    return found


def _outputs(
    file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], run: Any
) -> dict[str, torch.Tensor]:  # fmt: skip
    """One call's results, its fresh memory poisoned, and what it was given to write into."""
    import torch

    from warpsmith.lab.workers import arena

    definition, given = file.definition, []
    if definition.outputs_are == "given":
        for spec in definition.outputs.values():
            dtype = getattr(torch, definition.dtype(spec, workload))
            given.append(torch.empty(definition.shape(spec, workload), dtype=dtype))
            arena.poison_tensor(given[-1])
    torch.use_deterministic_algorithms(True, warn_only=True)  # fills what torch.empty gives
    try:
        result = run(*file.arguments(workload, inputs), *given)
    finally:
        torch.use_deterministic_algorithms(False)
    return file.outputs(given or result)


def _fault(file: DefinitionFile, workload: Workload, outputs: dict[str, torch.Tensor]) -> str:
    for name, spec in file.definition.outputs.items():
        shape, dtype = file.definition.shape(spec, workload), file.definition.dtype(spec, workload)
        found = outputs[name]
        if tuple(found.shape) != shape or str(found.dtype) != f"torch.{dtype}" or not found.is_contiguous():
            return f"{name} is {found.dtype} {tuple(found.shape)}, not a contiguous {dtype} {shape}"
    return ""


def _changed(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> str:
    from warpsmith.lab.operator.tensor_bytes import equal_bytes

    changed = [name for name, tensor in before.items() if not equal_bytes(tensor, after[name])]
    return f"it changed its input {changed[0]}" if changed else ""


def main() -> None:
    """Answer one line of JSON for each path."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what versions print is no answer
    for line in sys.stdin:
        try:
            answer = examine(Path(line.strip()))
        except Exception:
            answer = {"error": traceback.format_exc()[-2000:]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
