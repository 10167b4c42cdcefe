"""Hardware pages in the knowledge folders: list, read and check them."""

from __future__ import annotations

import re
from pathlib import Path

from warpsmith.core.hardware import Target
from warpsmith.errors import BadEntry
from warpsmith.knowledge import page
from warpsmith.project import Project


def hardware_paths(layer: Path) -> list[Path]:
    """Return the hardware pages of one knowledge folder, sorted."""
    return sorted(path for path in (layer / "hardware").glob("*.md") if not path.name.startswith("."))


def read_hardware_page(project: Project, path: Path) -> Target:
    """Read the target of a page; raise BadEntry if it does not parse or its id differs from the file name."""
    label = project.relative(path)
    target = page.validate(Target, page.parse_page(page.read_text(path, label), label).matter, label)
    if target.id != path.stem:
        raise BadEntry(f"{label} has the id `{target.id}`; the id must be the file name, `{path.stem}`.")
    return target


def read_targets(project: Project) -> dict[str, Target]:
    """Return every target by id; the project's own pages hide shipped ones."""
    targets: dict[str, Target] = {}
    for layer in project.knowledge_layers:
        for path in hardware_paths(layer):
            if path.stem not in targets:
                targets[path.stem] = read_hardware_page(project, path)
    return dict(sorted(targets.items()))


def misformatted_figures(target: Target, text: str) -> list[str]:
    """Return the figures that are not on one line `  name:
    {value: ...}` of their own, which evidence could cite."""
    return [
        name
        for name in target.figures
        if len(re.findall(rf"^ +{re.escape(name)}: *\{{.*\bvalue:.*\bunit:.*\}}", text, re.MULTILINE)) != 1
    ]
