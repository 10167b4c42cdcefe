"""Folder of one agent: its brief, its material for the arm, and places for device requests and the submission."""

from __future__ import annotations

import sys
from pathlib import Path

from warpsmith import files, languages
from warpsmith.driver.claude import agents as claude_agents
from warpsmith.errors import Misuse
from warpsmith.ledger.store import write_model
from warpsmith.project import MARKER, SHIPPED
from warpsmith.uplift import bare, brief, device, suite
from warpsmith.uplift.models import Cell

CELL, CLAIM = "cell.json", "submission/claim.json"
"""Paths of a cell's task and of its agent's claim, in the cell's folder."""

LANGUAGES = ("triton", "cuda")
"""Languages with a starting file: each runs without Warpsmith."""

_SPECIALISTS = ("kernel-designer", "triton-specialist", "cuda-specialist")
_SKILLS = ("profile-kernel", "analyze-bottleneck", "optimization-catalog")
_COMMAND = """\
#!/bin/sh
exec "${{WARPSMITH_PYTHON:-{python}}}" -m warpsmith "$@"
"""


def lay_out_cell(cell: Cell, folder: Path) -> None:
    """Write an agent's folder.

    Raises:
        Misuse: the folder exists and is not empty, or there is no such operator.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Misuse(f"{folder} exists; name a new folder for the cell.")
    texts = _material(cell)
    device.forget_calls(folder)
    for name, text in texts.items():
        files.write_file(folder / name, text)
    for name in ("device/out", "submission"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    if (command := folder / "bin" / "warpsmith").exists():
        command.chmod(0o755)
    write_model(folder / CELL, cell)


def _material(cell: Cell) -> dict[str, str]:
    """Collect the files of the arm by name."""
    file = suite.load_public(cell.operator)
    texts = {"brief.md": brief.render_brief(cell, file.definition)}
    texts |= {
        f"start_{name}{languages.get(name).suffix}": languages.get(name).template(file.definition)
        for name in LANGUAGES
    }
    if cell.arm in ("bare", "knowledge"):
        texts["reference.py"] = bare.plain_reference(file)
        texts["bench.py"] = (suite.SUITE / "bare" / "bench.py").read_text(encoding="utf-8")
    else:
        texts[MARKER] = "# The root of a Warpsmith project: all defaults.\n"
        texts[f"kernels/{cell.operator}/definition.py"] = file.path.read_text(encoding="utf-8")
        texts["bin/warpsmith"] = _COMMAND.format(python=sys.executable)
        texts |= _plugin_pages()
    if cell.arm == "knowledge":
        texts |= _knowledge_pages()
    return texts


def _plugin_pages() -> dict[str, str]:
    """Collect the agents' pages with the skills that they preload, and the skills for profiles."""
    pages = {f"plugin/agents/{name}.md": claude_agents.load_agent(SHIPPED, name).prompt for name in _SPECIALISTS}
    for skill in _SKILLS:
        text = (SHIPPED / "skills" / skill / "SKILL.md").read_text(encoding="utf-8")
        pages[f"plugin/skills/{skill}.md"] = text
    return pages


def _knowledge_pages() -> dict[str, str]:
    root = SHIPPED / "docs" / "knowledge"
    return {
        f"knowledge/{path.relative_to(root).as_posix()}": path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*.md"))
    }
