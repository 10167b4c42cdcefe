"""Brief of an agent: the task, its limits, and how it measures in its arm."""

from __future__ import annotations

from pathlib import Path

from warpsmith.core.definition import Definition
from warpsmith.uplift.models import Cell


def render_brief(cell: Cell, definition: Definition) -> str:
    """Return the brief of a cell: the same text for all arms but for the part on measuring."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.get_template("brief.md.j2").render(
        cell=cell,
        definition=definition,
        has_lab=cell.arm.startswith("plugin"),
        outputs=", ".join(f"`{name}`" for name in definition.outputs),
        workloads=[workload for workload in definition.workloads if workload.timed],
    )
