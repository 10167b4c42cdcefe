"""Earlier work on an operator: judged versions, records and lessons of other campaigns than one.

Hooks read it at every tool use, so this module builds no model.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from warpsmith import files
from warpsmith.project import SHIPPED, Project

READS = "reads.jsonl"
"""File of a campaign's folder with the reads of earlier work, a line each."""


@dataclass(frozen=True)
class EarlierWork:
    """Earlier work on one operator, in the project or in the installed package."""

    project: Project
    """Project of the campaign."""
    op: str
    """Operator of the campaign."""
    folder: Path
    """Folder of the campaign, whose own work is not earlier."""

    @classmethod
    def of_operator(cls, project: Project, op: str) -> EarlierWork:
        """Return the work of all campaigns on an operator."""
        return cls(project, op, project.devlog / op / "none")

    def has_language(self, language: str) -> bool:
        """Return True if a version of this language was judged, which a new campaign takes as its baseline."""
        return any(version.parent.name == language for version in self.versions)

    @cached_property
    def versions(self) -> frozenset[Path]:
        """Paths of the versions that other campaigns judged, without suffix: `kernels/rmsnorm/cpp/v3`."""
        own, others = set[str](), set[str]()
        for record in self.project.devlog.glob(f"{self.op}/*/rounds/[0-9]*/record.json"):
            try:
                solution = str(json.loads(record.read_bytes())["solution"])
            except (OSError, ValueError, KeyError, TypeError):
                continue
            (own if record.is_relative_to(self.folder) else others).add(solution)
        return frozenset(self.project.kernels / self.op / name for name in others - own)

    @cached_property
    def campaigns(self) -> tuple[Path, ...]:
        """Folders of the other campaigns on the operator."""
        names = ("manifest.yaml", "manifest.sha256")  # hooks ask at each tool use, so `manifests` is not imported
        folders = {path.parent for name in names for path in self.project.devlog.glob(f"{self.op}/*/{name}")}
        return tuple(sorted(folders - {self.folder}))

    @cached_property
    def lessons(self) -> tuple[Path, ...]:
        """Pages with lessons of campaigns on the operator."""
        layers = self.project.knowledge_layers
        return tuple(page for layer in layers for page in sorted(layer.glob(f"experience/*/{self.op}/*.md")))

    def includes(self, path: Path) -> bool:
        """Return True for a file of earlier work, and for a folder of the operator that holds some."""
        path = path.resolve()
        if any(path.is_relative_to(root.resolve()) for root in self._folders()):
            return True
        kernels, devlog = self.project.kernels.resolve() / self.op, self.project.devlog.resolve() / self.op
        stems = {kernels / version.relative_to(self.project.kernels / self.op) for version in self.versions}
        if path.is_relative_to(kernels):
            return path.with_suffix("") in stems or any(stem.is_relative_to(path) for stem in stems)
        return path == devlog and bool(self.campaigns)

    def describe(self) -> str:
        """Describe in one line how much there is; empty if there is none."""
        work = (
            (len(self.versions), "version", "versions"),
            (len(self.campaigns), "campaign", "campaigns"),
            (len(self.lessons), "page of lessons", "pages of lessons"),
        )
        return ", ".join(f"{count} {single if count == 1 else plural}" for count, single, plural in work if count)

    def _folders(self) -> list[Path]:
        """List the folders and files that are earlier work in whole."""
        own = (self.project.kernels.resolve(), self.project.devlog.resolve())
        shipped = [(SHIPPED / name / self.op).resolve() for name in ("kernels", "devlog")]
        elsewhere = [path for path in shipped if not any(path.is_relative_to(folder) for folder in own)]
        return [*self.campaigns, *self.lessons, *elsewhere]


def record_read(campaign: Path, path: str, reader: str) -> None:
    """Record a read of earlier work in the folder of the campaign that hides it; once for each path and reader."""
    log = campaign / READS
    lines = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    fields = json.dumps({"path": path, "reader": reader})[:-1]
    if fields not in lines:
        files.append_line(log, f'{fields}, "at": "{datetime.now(UTC):%Y-%m-%d %H:%M}"}}')
