"""Integrate: an accepted kernel goes back into its program behind a switch, judged as any other edit of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from warpsmith import files, languages
from warpsmith.core.trial import ProgramRules, TrialVerdict
from warpsmith.errors import MachineLacks, MissingInput, Misuse
from warpsmith.lab.machine import hardware
from warpsmith.program.analysis import analyzer
from warpsmith.program.operators import extraction_file, kernel_override, transfer_audit
from warpsmith.program.operators.models import Extraction
from warpsmith.program.operators.transfer_record import Transfer
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import TIMEOUT, Runner
from warpsmith.program.trials import trial, trial_store
from warpsmith.program.trials.trial import ClosedTrial, TrialRequest
from warpsmith.project import Project
from warpsmith.use import choice
from warpsmith.use.choice import BestVersion

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Integration:
    """What became of an integration."""

    closed: ClosedTrial
    """The trial."""
    transfer: Transfer
    """The audit."""

    @property
    def kept(self) -> bool:
        """Whether the line stays."""
        return self.closed.record.decision.verdict is TrialVerdict.KEPT


def integrate_kernel(
    project: Project,
    op: str,
    program: Program,
    *,
    into: Path | None = None,
    timeout: float = TIMEOUT,
    tell: Tell = print,
) -> Integration:
    """Audit the best accepted version, put its line into the program, and keep or restore that.

    Args:
        project: the program's.
        op: the definition.
        program: with a step.
        into: the file that gets the line; by default the program's.
        timeout: seconds for each request to the program.
        tell: is told what goes on.

    Raises:
        MissingInput: the operator was not extracted, or no version was accepted for this machine.
        Misuse: the line is there already, the file is no Python, or another trial is open.
        MachineLacks: the best version's language cannot run here; or as `Runner`.
        SolutionFailed, TimedOut: as `Runner`.
        Conflict: as `trial.verify_trial`.
    """
    extraction = extraction_file.read_extraction(project, op)
    chosen = _best_version(project, op, extraction)
    target = (into or program.path).absolute()
    trials = trial_store.program_trials(project, program)
    entry = f"integrate-{op}"
    plan, line = trials.plan(), kernel_override.enabling_line(op)
    text = _read_text(target)
    if plan is not None and plan.entry != entry:
        raise Misuse(f"{trials.name} has an open trial of {plan.entry}; verify or abandon it first.")
    at_work = plan is not None
    if line in text.splitlines() and not at_work:
        raise Misuse(
            f"{project.relative(target)} has the line of {op} already; {kernel_override.SWITCH}=0 switches it off."
        )
    edited = text if line in text.splitlines() else insert_line(text, line, target)
    log = analyzer.scratch_folder(project, program) / "audit.txt"
    with Runner(program, timeout=timeout, env={kernel_override.SWITCH: "0"}, log=log) as runner:
        runner.start()
        found = transfer_audit.audit_transfer(project, runner, extraction, chosen, tell)
    asked = TrialRequest(entry, ProgramRules(), program, (target,), predicted=found.predicted)
    trial.open_trial(project, asked, timeout, tell)
    trial_store.write_trial_file(trials.open / transfer_audit.TRANSFER_FILE, found)
    if why := _audit_objection(found):
        closed = trial.abandon_trial(trials, why)
    else:
        mode = target.stat().st_mode
        files.write_file(target, edited.encode())
        target.chmod(mode)
        closed = trial.verify_trial(trials, timeout, tell)
    found = found.model_copy(update={"measured": closed.record.measured})
    trial_store.write_trial_file(closed.folder / transfer_audit.TRANSFER_FILE, found)
    return Integration(closed, found)


def insert_line(text: str, line: str, path: Path) -> str:
    """The text with a line after its docstring and its `from __future__` imports.

    Raises:
        Misuse: the text is no Python.
    """
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        raise Misuse(f"{path} is no Python: {error}.") from error
    last = 0
    for place, node in enumerate(body):
        docstring = place == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not docstring and not future:
            break
        last = node.end_lineno or last
    lines = re.split(r"(?<=\n)", text)  # as the parser counts them
    end = "\r\n" if lines[0].endswith("\r\n") else "\n"
    if not last:  # an interpreter or an encoding is named first
        last = next((n for n, one in enumerate(lines[:2]) if not one.startswith("#")), 2)
    before = "".join(lines[:last])
    if before and not before.endswith("\n"):
        before += end
    return f"{before}{line}{end}{''.join(lines[last:])}"


def _best_version(project: Project, op: str, extraction: Extraction) -> BestVersion:
    on_cpu = kernel_override.extraction_device(extraction) == "cpu"
    target = choice.target_of_device(project, None) if on_cpu else hardware.find_local_target(project)
    versions = choice.versions_for_target(project, op, target)
    if not versions:
        raise MissingInput(
            f"No version of {op} was accepted for {target.id if target else 'this machine'}; "
            f"`warpsmith start {op}` begins a campaign."
        )
    found = versions[0]
    if lacks := languages.get(found.language).missing("cpu" if on_cpu else "gpu"):
        raise MachineLacks(f"{found.solution} cannot run here, and the trial is of it: {lacks}")
    return found


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"{path} cannot be read as text: {error}.") from error


def _audit_objection(found: Transfer) -> str:
    """Why the audit speaks against the kernel; empty where it does not."""
    if not found.inflated:
        names = ", ".join(one.workload for one in found.untold)
        return names and f"too noisy: at {names} a kept result would not show; try again on an idle machine"
    worst = max(found.inflated, key=lambda one: one.residual.seconds / one.reference_seconds)
    share = worst.residual.seconds / worst.reference_seconds
    return (
        f"residual share: at {worst.workload} {share:.0%} of the reference's time is gained only because all "
        "inputs repeat, which no program's do"
    )
