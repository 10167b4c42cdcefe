"""Extract: an operator that a program calls becomes a definition, with the program's shapes and frequencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from warpsmith.errors import Misuse
from warpsmith.interchange import create
from warpsmith.interchange.draft import DefinitionDraft
from warpsmith.program.analysis import analyzer
from warpsmith.program.operators import call_form, operator_calls
from warpsmith.program.operators.definition_writer import DefinitionWriter, bare_name
from warpsmith.program.operators.models import CALLS_FILE, Extraction, OperatorRow, StepOperators
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import TIMEOUT, Runner
from warpsmith.program.trials import trial_store
from warpsmith.project import Project

Tell = Callable[[str], None]


@dataclass(frozen=True)
class ExtractedOperator:
    """A definition that was written."""

    path: Path
    """Its file."""
    extraction: Extraction
    """How the program calls the operator."""
    row: OperatorRow
    """The operator in the step."""
    notes: tuple[str, ...]
    """Sentences for people."""


def list_operators(
    project: Project, program: Program, tell: Tell = print, *, seed: int = 0, timeout: float = TIMEOUT
) -> StepOperators:
    """All operators of a program's step; raises as `Runner`."""
    with _program_runner(project, program, seed, timeout) as runner:
        runner.start()
        return operator_calls.record_operators(runner, tell).operators


def extract_operator(
    project: Project,
    program: Program,
    *,
    operator: str = "",
    kernel: str = "",
    like: str = "",
    name: str = "",
    seed: int = 0,
    timeout: float = TIMEOUT,
    tell: Tell = print,
) -> ExtractedOperator:
    """Write the definition of an operator, or of the one that launches a kernel.

    `like` is a part of a workload's name, such as sizes: of the calls that a definition can cover together those
    are taken that have one of that name, instead of those with the most time.

    Raises:
        Misuse: it cannot become a definition, or the name is taken or does not fit.
        MissingInput: the step does not call it, or not so.
        BadDefinition: the definition does not hold what it says.
        SolutionFailed, TimedOut, MachineLacks: as `Runner`.
    """
    with _program_runner(project, program, seed, timeout) as runner:
        runner.start()
        wanted = operator or operator_calls.find_launcher(
            runner, kernel, analyzer.scratch_folder(project, program), tell
        )
        wanted = wanted if "::" in wanted else f"aten::{wanted}"
        op = name or bare_name(wanted)
        create.check_operator_name(op)
        if project.definition(op).exists():
            raise Misuse(f"{project.definition(op)} exists; give another name by --name.")
        recorded = operator_calls.record_operators(runner, tell, wanted)
        row = operator_calls.find_operator(recorded.operators, wanted)
        chosen = call_form.choose_form(row.name, recorded.signatures[row.name], like)
        tell("finding the axes")
        made = None
        for fixed in (False, True):
            found = runner.call(
                "operator_axes", operator=row.name, results=chosen.results, fixed=fixed,
                calls=[chosen.call(place) for place in range(len(chosen.signatures))],
            )  # fmt: skip
            made = DefinitionWriter(op, row, chosen, found, program.label) if found else None
            if made is None or made.unknown:
                continue
            tell("trying the definition")
            if made.holds(last=fixed):
                break
        if made is None or made.unknown:
            raise Misuse(f"{row.name} cannot become a definition: the sizes of its results follow no simple rule.")
        extraction = Extraction(
            op=op, operator=row.name, composite=row.name in recorded.composites,
            program=trial_store.program_reference(project, program), device=recorded.operators.device,
            step_seconds=recorded.operators.step_seconds, slots=tuple(part.slot for part in chosen.parts),
            results=made.results, called=made.called,
        )  # fmt: skip
    path = project.definition(op)
    draft = DefinitionDraft(
        {CALLS_FILE: extraction.model_dump_json(indent=2) + "\n", path.name: made.text}, made.notes
    )
    draft.write(path)
    return ExtractedOperator(path, extraction, row, draft.notes)


def _program_runner(project: Project, program: Program, seed: int, timeout: float) -> Runner:
    log = analyzer.scratch_folder(project, program) / "output.txt"
    return Runner(program, seed=seed, timeout=timeout, log=log)
