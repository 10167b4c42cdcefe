"""Names of programs in records: each folder of `devlog/programs/` belongs to one file and one step of it.

Folders from before steps had their own are named by the file's stem alone. They stay where they are, and a program
whose records are all in such a folder goes on there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from warpsmith.program.process.program import Program
from warpsmith.project import SCRATCH as SCRATCH
from warpsmith.project import Project

FOLDER = "programs"
"""Folder of all programs, in the devlog."""

SCRIPT_STEP = "__main__"
"""Part of a name in place of a step, for a script that a command runs."""

_PLAIN = re.compile(r"[\w-]+")
_MOST = 60


def record_name(project: Project, program: Program) -> str:
    """Return the name of a program's folders: `package.train.train_step`, or `train.__main__` for a command."""
    if not program.path.is_file() and program.command is not None:
        return re.sub(r"[^\w.]+", "-", program.command)[:_MOST].strip("-.") or "command"
    name = _name_of(project, program.path, program.step or SCRIPT_STEP)
    return name if (project.devlog / FOLDER / name).is_dir() else _older_name(project, program) or name


def command_words(shell_command: str, writes: Sequence[str]) -> tuple[str, ...]:
    """Return the words that name a shell command as the program of a Warpsmith command."""
    return ("--command", shell_command, *(word for path in writes for word in ("--writes", path)))


def matching_names(project: Project, text: str) -> list[str]:
    """List the names with records that a name, a file, a module, or `FILE:STEP` means."""
    names = [path.name for path in sorted((project.devlog / FOLDER).glob("*")) if path.is_dir()]
    if text in names:
        return [text]
    file, _, step = text.partition(":")
    if file.endswith(".py"):
        path = Path(file).absolute()
        prefix, relative = _name_of(project, path, ""), project.relative(path)
        matches = [name for name in names if name.startswith(prefix) and "." not in name.removeprefix(prefix)]
        matches += [name for name in names if name == path.stem and relative in dict(_subjects(project, name))]
    else:
        matches = [name for name in names if f".{name}".rpartition(".")[0].endswith(f".{file}")]
    return [name for name in matches if not step or name.endswith(f".{step}")]


def _name_of(project: Project, path: Path, step: str) -> str:
    """Join the parts of a path and the step by dots; of paths with other dots, or outside, name and hash."""
    parts = Path(project.relative(path)).with_suffix("").parts
    plain = [part for part in parts if _PLAIN.fullmatch(part)]
    if len(plain) < len(parts):
        plain = [*plain[-1:], hashlib.sha256(str(path).encode()).hexdigest()[:8]]
    return ".".join([*plain, step])


def _older_name(project: Project, program: Program) -> str:
    """Return the folder that is named by the file's stem, if all its records are of this program; else nothing."""
    name = program.module or program.path.stem
    subjects = set(_subjects(project, name))
    return name if subjects == {(project.relative(program.path), program.step)} else ""


def _subjects(project: Project, name: str) -> Iterator[tuple[str, str]]:
    """Yield path and step of each record in a folder; a corrupt record is reported where it is read."""
    folder = project.devlog / FOLDER / name
    for path in (*folder.glob("analyses/*.json"), *folder.glob("trials/*/plan.json")):
        try:
            subject = json.loads(path.read_bytes())["subject"]
            yield subject["path"], subject["step"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
