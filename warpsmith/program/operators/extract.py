"""Extraction of an operator from a program: it becomes a definition with the program's shapes and call counts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warpsmith import files
from warpsmith.core.text import Tell
from warpsmith.errors import Misuse
from warpsmith.interchange import create
from warpsmith.interchange.draft import DefinitionDraft
from warpsmith.program.analysis import analyzer, record_names
from warpsmith.program.operators import call_form, operator_calls
from warpsmith.program.operators.definition_writer import DefinitionWriter, bare_name
from warpsmith.program.operators.models import CALLS_FILE, Extraction, OperatorRow, StepOperators
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import TIMEOUT, Runner
from warpsmith.program.scripts.command_runner import open_runner
from warpsmith.program.trials import trial_store
from warpsmith.project import Project


@dataclass(frozen=True)
class ExtractedOperator:
    """A written definition, with the calls that it covers."""

    path: Path
    """Path of the definition."""
    extraction: Extraction
    """The program's calls of the operator."""
    row: OperatorRow
    """The operator in the list of the step's operators."""
    notes: tuple[str, ...]
    """Sentences for people."""


def list_operators(
    project: Project, program: Program, tell: Tell = print, *, seed: int = 0, timeout: float = TIMEOUT
) -> StepOperators:
    """List all operators of a program's step; raises as `Runner`."""
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
    """Write the definition of an operator, or of the operator that launches a kernel.

    `like` is a part of a workload's name, such as its sizes. It selects the form that has a call of that name,
    instead of the form that takes the most time.

    Raises:
        Misuse: it cannot become a definition, or the name is taken or invalid.
        MissingInput: the step has no such call.
        BadDefinition: the reference does not do what the definition says.
        SolutionFailed, TimedOut, MachineLacks: as `Runner`.
    """
    with _program_runner(project, program, seed, timeout) as runner:
        runner.start()
        operator_name = operator or operator_calls.find_launcher(
            runner, kernel, analyzer.scratch_folder(project, program), tell
        )
        operator_name = operator_name if "::" in operator_name else f"aten::{operator_name}"
        op = name or bare_name(operator_name)
        create.check_operator_name(op)
        if project.definition_path(op).exists():
            raise Misuse(f"{project.definition_path(op)} exists; choose another name with --name.")
        recorded = operator_calls.record_operators(runner, tell, operator_name)
        row = operator_calls.find_operator(recorded.operators, operator_name)
        form = call_form.choose_form(row.name, recorded.signatures[row.name], like)
        tell("finding the axes")
        writer = None
        for fixed in (False, True):
            axes_result = runner.call(
                "operator_axes", operator=row.name, results=form.results, fixed=fixed,
                calls=[form.call(index) for index in range(len(form.signatures))],
            )  # fmt: skip
            writer = DefinitionWriter(op, row, form, axes_result, program.label) if axes_result else None
            if writer is None or writer.has_unknown_size:
                continue
            tell("checking the definition")
            if writer.check_reference(last=fixed):
                break
        if writer is None or writer.has_unknown_size:
            raise Misuse(
                f"{row.name} cannot become a definition: the sizes of its results follow no simple formula."
            )
        extraction = Extraction(
            op=op,
            operator=row.name,
            composite=row.name in recorded.composites,
            program=trial_store.program_reference(project, program),
            device=recorded.operators.device,
            step_seconds=recorded.operators.step_seconds,
            slots=tuple(argument.slot for argument in form.arguments),
            results=writer.results,
            called=writer.workload_calls,
        )
    path = project.definition_path(op)
    draft = DefinitionDraft(
        {CALLS_FILE: extraction.model_dump_json(indent=2) + "\n", path.name: writer.text}, writer.notes
    )
    draft.write(path)
    return ExtractedOperator(path, extraction, row, draft.notes)


def _program_runner(project: Project, program: Program, seed: int, timeout: float) -> Runner:
    files.hide_from_git(project.root / record_names.SCRATCH)
    log = analyzer.scratch_folder(project, program) / "output.txt"
    return open_runner(program, seed=seed, timeout=timeout, log=log)
