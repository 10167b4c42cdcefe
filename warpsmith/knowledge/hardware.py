"""Hardware pages as part of the knowledge: which there are, and whether they hold together."""

from __future__ import annotations

import re
from pathlib import Path

from warpsmith.core.hardware import Target
from warpsmith.errors import BadEntry
from warpsmith.knowledge import page
from warpsmith.project import Project


def paths(layer: Path) -> list[Path]:
    """The hardware pages of one knowledge folder, in order."""
    return sorted(path for path in (layer / "hardware").glob("*.md") if not path.name.startswith("."))


def read(project: Project, path: Path) -> Target:
    """The target that a page describes; raises BadEntry where it does not parse or sits under another name."""
    shown = project.relative(path)
    target = page.validate(Target, page.parse(page.text_of(path, shown), shown).matter, shown)
    if target.id != path.stem:
        raise BadEntry(f"{shown} has the id `{target.id}`; an id is its file's stem, here `{path.stem}`.")
    return target


def targets(project: Project) -> dict[str, Target]:
    """Every known target by id, the project's own pages before those that ship."""
    found: dict[str, Target] = {}
    for layer in project.knowledge_layers:
        for path in paths(layer):
            if path.stem not in found:
                found[path.stem] = read(project, path)
    return dict(sorted(found.items()))


def figures_off_line(target: Target, text: str) -> list[str]:
    """Figures that do not stand on one line `  name: {value: ...}` each, so that no line could be cited."""
    return [
        name
        for name in target.figures
        if len(re.findall(rf"^ +{re.escape(name)}: *\{{.*\bvalue:.*\bunit:.*\}}", text, re.MULTILINE)) != 1
    ]
