"""Definitions that were made of regions, by the digest of the region."""

from __future__ import annotations

from collections.abc import Iterator

from warpsmith.errors import CorruptRecord, MissingInput
from warpsmith.program.operators import extraction_file
from warpsmith.program.operators.models import CALLS_FILE, Extraction
from warpsmith.project import Project


def list_definitions(project: Project) -> dict[str, str]:
    """Return the names of the project's definitions that are regions, by digest."""
    return {item.region.digest: item.op for item in region_extractions(project) if item.region is not None}


def region_extractions(project: Project) -> Iterator[Extraction]:
    """Yield the calls of each region that has a definition; a file that does not read is left out."""
    for path in sorted(project.kernels.glob(f"*/{CALLS_FILE}")):
        try:
            extraction = extraction_file.read_extraction(project, path.parent.name)
        except (CorruptRecord, MissingInput):
            continue  # the command that uses it says so
        if extraction.region is not None:
            yield extraction
