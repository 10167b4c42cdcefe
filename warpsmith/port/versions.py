"""Version or draft of an operator that is compiled for other devices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PortVersion:
    """File of a version or of a draft."""

    language: str
    """Language of the file."""
    version: str
    """Name of the version, `v3`, or of the draft, `01_rows`."""
    path: Path
    """Path of the file."""

    @property
    def name(self) -> str:
        """Name in records: `triton/v3`, `flydsl/01_rows`."""
        return f"{self.language}/{self.version}"
