"""Integration of an accepted kernel into its program, behind a switch and judged as any other edit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from warpsmith import files, languages
from warpsmith.core.text import Tell
from warpsmith.core.trial import ProgramRules, TrialVerdict
from warpsmith.errors import MachineLacks, MissingInput, Misuse
from warpsmith.ledger.store import write_model
from warpsmith.program.analysis import analyzer
from warpsmith.program.operators import accepted_regions, extraction_file, kernel_override, transfer_audit
from warpsmith.program.operators.models import Extraction
from warpsmith.program.operators.transfer_record import Transfer
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import TIMEOUT
from warpsmith.program.scripts.command_runner import open_runner
from warpsmith.program.trials import trial, trial_store
from warpsmith.program.trials.trial import ClosedTrial, TrialRequest
from warpsmith.project import Project
from warpsmith.temporary import TemporaryFolder
from warpsmith.use import choice
from warpsmith.use.choice import BestVersion


@dataclass(frozen=True)
class Integration:
    """Result of an integration."""

    closed: ClosedTrial
    """The trial."""
    transfer: Transfer
    """The audit."""

    @property
    def is_kept(self) -> bool:
        """Return whether the line is kept."""
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
    """Audit the best accepted version, insert its line into the program, and judge that edit.

    Args:
        project: the project of the program.
        op: the definition.
        program: the program, with a step.
        into: the file that gets the line; by default the program's.
        timeout: time limit of each request to the program, in seconds.
        tell: receives messages about the progress.

    Raises:
        MissingInput: the operator was not extracted, or no version was accepted for this machine.
        Misuse: the line is already there, the file is not Python, another trial is open, or the Python of a
            command has no Warpsmith.
        MachineLacks: the best version's language cannot run here; or as `Runner`.
        SolutionFailed, TimedOut: as `Runner`.
        RestoreConflict: as `trial.verify_trial`.
    """
    extraction = extraction_file.read_extraction(project, op)
    version = _best_version(project, op, extraction)
    target = (into or program.path).absolute()
    trials = trial_store.program_trials(project, program)
    entry = accepted_regions.integration_entry(op)
    plan, line = trials.plan(), kernel_override.enabling_line(op)
    text = _read_text(target)
    if plan is not None and plan.entry != entry:
        raise Misuse(f"{trials.name} has an open trial of {plan.entry}; verify or abandon it first.")
    is_open = plan is not None
    enabled = any(existing.endswith(line.partition(" import ")[2]) for existing in text.splitlines())
    if enabled and not is_open:
        raise Misuse(
            f"{project.relative(target)} already has the line of {op}; {kernel_override.SWITCH}=0 switches it off."
        )
    edited = text if enabled else insert_line(text, line, target)
    log = analyzer.scratch_folder(project, program) / "audit.txt"
    with open_runner(program, timeout=timeout, env={kernel_override.SWITCH: "0"}, log=log) as runner:
        runner.start()
        if program.command is not None and not runner.call("own_warpsmith"):
            raise Misuse(
                f"The Python of `{program.command}` has no Warpsmith, which `{line}` imports; install it there."
            )
        transfer = transfer_audit.audit_transfer(project, runner, extraction, version, tell)
    if extraction.region is not None:
        with (
            _copy_of(target, edited) as copy,
            open_runner(program, {target: copy}, timeout=timeout, log=log) as runner,
        ):
            runner.start()
            transfer = transfer_audit.count_hits(runner, transfer, tell)
    request = TrialRequest(entry, ProgramRules(), program, (target,), predicted=transfer.predicted)
    trial.open_trial(project, request, timeout, tell)
    write_model(trials.open / transfer_audit.TRANSFER_FILE, transfer)
    if objection := _audit_objection(transfer):
        closed = trial.abandon_trial(trials, objection, measured=True)
    else:
        mode = target.stat().st_mode
        files.write_file(target, edited.encode())
        target.chmod(mode)
        closed = trial.verify_trial(trials, timeout, tell)
    transfer = transfer.model_copy(update={"measured": closed.record.measured})
    write_model(closed.folder / transfer_audit.TRANSFER_FILE, transfer)
    return Integration(closed, transfer)


def insert_line(text: str, line: str, path: Path) -> str:
    """Insert a line after the docstring and the `from __future__` imports of a text.

    Raises:
        Misuse: the text is not Python.
    """
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        raise Misuse(f"{path} is not Python: {error}.") from error
    last = 0
    for index, node in enumerate(body):
        docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not docstring and not future:
            break
        last = node.end_lineno or last
    lines = re.split(r"(?<=\n)", text)  # counted as the parser does
    end = "\r\n" if lines[0].endswith("\r\n") else "\n"
    if not last:  # keep a shebang or an encoding comment first
        last = next((n for n, text_line in enumerate(lines[:2]) if not text_line.startswith("#")), 2)
    before = "".join(lines[:last])
    if before and not before.endswith("\n"):
        before += end
    return f"{before}{line}{end}{''.join(lines[last:])}"


def _best_version(project: Project, op: str, extraction: Extraction) -> BestVersion:
    on_cpu = kernel_override.extraction_device(extraction) == "cpu"
    target = accepted_regions.local_target(project, extraction.device)
    versions = choice.versions_for_target(project, op, target)
    if not versions:
        raise MissingInput(
            f"No version of {op} was accepted for {target.id if target else 'this machine'}; "
            f"`warpsmith start {op}` begins a campaign."
        )
    best = versions[0]
    if lacks := languages.get(best.language).missing("cpu" if on_cpu else "gpu"):
        raise MachineLacks(f"{best.solution} cannot run here, so it cannot be tried: {lacks}")
    return best


@contextmanager
def _copy_of(path: Path, text: str) -> Iterator[Path]:
    """Yield a temporary file with the text, under the same name."""
    with TemporaryFolder("edited") as folder:
        copy = Path(folder) / path.name
        copy.write_text(text)
        yield copy


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"{path} cannot be read as text: {error}.") from error


def _audit_objection(transfer: Transfer) -> str:
    """Return the objection of the audit to the kernel; empty if it has none."""
    if transfer.hits == 0:
        return f"region {transfer.region}: no place in the compiled step has the tensors of the definition"
    if not transfer.inflated:
        names = ", ".join(item.workload for item in transfer.undetectable)
        return names and (
            f"too noisy: at {names} a kernel that reuses its last result would go undetected; try again on an "
            "idle machine"
        )
    worst = max(transfer.inflated, key=lambda item: item.residual.seconds / item.reference_seconds)
    share = worst.residual.seconds / worst.reference_seconds
    return (
        f"residual share: at {worst.workload} {share:.0%} of the reference's time is gained only because all "
        "inputs repeat, which never happens in a program"
    )
