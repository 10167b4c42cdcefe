"""Trial of a draft: its reference runs at small sizes against its own bound, before the draft is written."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from warpsmith.core.evaluation import Status
from warpsmith.errors import BadDefinition
from warpsmith.interchange.draft import DefinitionDraft
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.temporary import TemporaryFolder

_MOST_ELEMENTS = 1 << 21
_DRAWS = 4
_SECONDS = 20.0


@dataclass(frozen=True)
class ReferenceTrial:
    """Outcome of a trial at small workloads."""

    failure: str = ""
    """Sentence on how the reference fails or misses its bound; empty if it holds it."""
    worst: float = 0.0
    """Largest error over its bound."""


def try_reference(op: str, draft: DefinitionDraft, most_elements: int = _MOST_ELEMENTS) -> ReferenceTrial:
    """Run the reference of a draft at small workloads against its own bound.

    Workloads of more than `most_elements` elements are left out, and those that time does not suffice for. Needs
    PyTorch.
    """
    with TemporaryFolder("definition") as folder:
        path = Path(folder) / op / "definition.py"
        path.parent.mkdir()
        for name, content in draft.files.items():
            path.with_name(name).write_bytes(content.encode() if isinstance(content, str) else content)
        try:
            return _try(definition_file.load_definition(path), most_elements)
        except BadDefinition as error:
            return ReferenceTrial(str(error).replace(str(path), "definition.py"))


def _try(file: definition_file.DefinitionFile, most_elements: int) -> ReferenceTrial:
    deadline, worst = time.monotonic() + _SECONDS, 0.0
    for workload in sorted(file.definition.workloads, key=file.definition.elements):
        for seed in range(_DRAWS):
            if file.definition.elements(workload) > most_elements or time.monotonic() > deadline:
                return ReferenceTrial(worst=worst)
            inputs = Inputs(file, workload, seed, "cpu").draw()
            truth = correctness.compute_truth(file, workload, inputs)
            grade = correctness.grade_reference(file, workload, inputs, truth)
            if grade.status is not Status.PASSED:
                failure = f"the reference misses its own bound at {workload.name}: {grade.detail}"
                return ReferenceTrial(failure, grade.worst)
            worst = max(worst, grade.worst)
    return ReferenceTrial(worst=worst)
