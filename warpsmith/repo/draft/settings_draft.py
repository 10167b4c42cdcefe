"""Draft of the project settings, written to where they live, and reversible by `warpsmith restore`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from warpsmith import backups, files
from warpsmith import project as projects
from warpsmith.core.repo import RepoSettings
from warpsmith.errors import Misuse
from warpsmith.project import MARKER, Project
from warpsmith.repo.draft import benchmark_command, build_system, kernel_files, test_command
from warpsmith.repo.draft.benchmark_command import SCRIPT
from warpsmith.repo.draft.draft_line import DraftLine
from warpsmith.repo.draft.repository_files import RepositoryFiles

_LABEL = "warpsmith repo init"


@dataclass(frozen=True)
class SettingsDraft:
    """Settings that were drafted, and the files that they are written to."""

    file: Path
    """File that the table is added to."""
    table: str
    """Table in TOML, with comments."""
    lines: tuple[DraftLine, ...]
    """Lines of the table."""
    script: str | None
    """Text of a benchmark script to add; None if the repository has its own."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """Files that the draft is written to."""
        return (self.file, *([self.file.parent / SCRIPT] if self.script else []))

    @property
    def contents(self) -> dict[Path, str]:
        """Contents of the files to write; raises Misuse if the table cannot be added to the file."""
        script = {self.file.parent / SCRIPT: self.script} if self.script else {}
        return {self.file: _append_table(self.file, self.table), **script}

    @property
    def doubts(self) -> int:
        """Number of uncertain lines."""
        return sum(line.doubt != "" for line in self.lines)


def draft_settings(project: Project, kernel: str | None) -> SettingsDraft:
    """Draft the settings from the repository's files; write nothing.

    Raises:
        Misuse: there are settings already, the kernel is no file, or the script's name is taken.
        MissingInput: no kernel is recognised.
    """
    file, table = projects.read_settings_table(project.root, "project")
    if table is not None:
        raise Misuse(f"{file} has project settings already; edit them, or remove them to draft new ones.")
    if not file.is_file():
        file = project.root / MARKER
    repository = RepositoryFiles(project.root)
    kernel_line = kernel_files.choose_kernel(repository, kernel)
    path = str(kernel_line.value)
    build = build_system.find_build_system(repository, path)
    benchmark = benchmark_command.draft_benchmark(repository, path, build)
    lines = tuple(
        line
        for line in (
            kernel_line,
            build.rebuild,
            test_command.draft_test(repository, path, build),
            *benchmark.lines,
        )
        if line
    )
    if benchmark.script and (project.root / SCRIPT).exists():
        raise Misuse(f"{project.root / SCRIPT} exists already; move it away, so that the draft can add its own.")
    name = "project" if file.name == MARKER else "tool.warpsmith.project"
    text = "\n".join(
        (f"[{name}]  # drafted by `warpsmith repo init`; correct it", *(line.to_toml() for line in lines))
    )
    text += '\n# program = "python train.py --steps 20"  # the whole program, to see whether a gain reaches it\n'
    return SettingsDraft(file, text, lines, benchmark.script)


def write_draft(project: Project, draft: SettingsDraft) -> None:
    """Write the draft's files; `warpsmith restore` takes them back.

    Raises:
        Misuse, CorruptRecord, Busy, MachineLacks: a file cannot be backed up or extended; nothing is written.
    """
    contents = draft.contents
    backups.open_backups(project, contents, _LABEL)
    for path, text in contents.items():
        files.write_file(path, text)
    backups.seal_backups(project, contents)


def _append_table(file: Path, table: str) -> str:
    """Return the content of a file with a table at its end, the rest byte for byte as it was."""
    before = file.read_bytes().decode() if file.is_file() else ""
    newline = "\r\n" if "\r\n" in before else "\n"
    gap = newline * (before != "") + newline * (before != "" and not before.endswith("\n"))
    content = f"{before}{gap}{table.replace(chr(10), newline)}"
    try:
        document = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise Misuse(
            f"The table cannot be added to the end of {file} ({error}); `warpsmith repo init --dry-run` prints it:"
            " add it by hand."
        ) from error
    settings = document["project"] if file.name == MARKER else document["tool"]["warpsmith"]["project"]
    RepoSettings.model_validate({**settings, "kernel": [settings["kernel"]]})
    return content
