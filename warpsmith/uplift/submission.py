"""Submissions: read what an agent left in its folder, and keep it under the results."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.core.text import describe_error
from warpsmith.errors import CorruptRecord, MissingInput, Misuse
from warpsmith.ledger.store import write_model
from warpsmith.uplift.models import Cell, CellRecord, Effort, KernelClaim, Submission

RECORD = "record.json"
"""Name of a cell's record, next to its kernel."""

M = TypeVar("M", bound=Model)


def read_cell(folder: Path) -> Cell:
    """Read the task of a cell's folder; raises MissingInput if it is none."""
    return _read(folder / "cell.json", Cell, "`warpsmith uplift brief` makes a cell's folder")


def read_submission(folder: Path, effort: Effort) -> tuple[Submission, Path]:
    """Read what an agent submitted; return it and the kernel's file.

    Raises:
        MissingInput: the folder is no cell, or the kernel or the claim is missing.
        Misuse: there are several kernels, or the claim does not validate.
    """
    cell = read_cell(folder)
    kernels = sorted((folder / "submission").glob("kernel.*"))
    if not kernels:
        raise MissingInput(f"{folder / 'submission'} has no kernel; write `submission/kernel.py`.")
    if len(kernels) > 1:
        raise Misuse(f"{folder / 'submission'} has {len(kernels)} kernels; leave one.")
    claim = _read(folder / "submission" / "claim.json", KernelClaim, "the end of the brief shows its form")
    submission = Submission(
        cell=cell, kernel=kernels[0].name, kernel_sha256=files.file_sha256(kernels[0]), claim=claim, effort=effort
    )
    return submission, kernels[0]


def keep_submission(folder: Path, effort: Effort, results: Path) -> CellRecord:
    """Copy a submission into the results.

    Raises:
        MissingInput: as `read_submission`.
        Misuse: as `read_submission`, or this cell was submitted before.
    """
    submission, kernel = read_submission(folder, effort)
    target_folder = results / submission.cell.name
    record = CellRecord(submission=submission)
    try:
        files.publish_folder(
            {kernel.name: kernel.read_bytes(), RECORD: record.model_dump_json(indent=2) + "\n"}, target_folder
        )
    except FileExistsError as error:
        raise Misuse(f"{target_folder} exists: the cell was submitted before; name other --results.") from error
    return record


def read_records(results: Path) -> list[CellRecord]:
    """Read all records of the results, by name.

    Raises:
        MissingInput: there are none.
        CorruptRecord: one does not validate, or its kernel has changed.
    """
    records = []
    for path in sorted(results.glob(f"*/{RECORD}")):
        try:
            record = CellRecord.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise CorruptRecord(f"{path} does not validate: {describe_error(error)}; restore the file.") from error
        kernel = path.parent / record.submission.kernel
        if not kernel.is_file() or files.file_sha256(kernel) != record.submission.kernel_sha256:
            raise CorruptRecord(f"{kernel} is not the kernel that was submitted; restore the file.")
        records.append(record)
    if not records:
        raise MissingInput(f"{results} has no submissions; `warpsmith uplift submit` adds them.")
    return records


def write_record(results: Path, record: CellRecord) -> None:
    """Write a record over its earlier form."""
    write_model(results / record.submission.cell.name / RECORD, record)


def _read(path: Path, model: type[M], remedy: str) -> M:
    if not path.is_file():
        raise MissingInput(f"{path} does not exist; {remedy}.")
    try:
        return model.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise Misuse(f"{path} does not validate: {describe_error(error)}; {remedy}.") from error
