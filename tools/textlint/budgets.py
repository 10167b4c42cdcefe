"""How much may be loaded: lengths of skills and agents, all descriptions together, the depth of references."""

from __future__ import annotations

from collections.abc import Iterator

from tools.textlint.finding import Finding
from tools.textlint.tree import Tree

SKILL_LINES = 200
"""Of a SKILL.md, front matter included."""
AGENT_LINES = 100
"""Of an agent's file, front matter included."""
DESCRIPTIONS = 4000
"""Characters of all skills' descriptions, which every session loads."""


def lengths(tree: Tree) -> Iterator[Finding]:
    """Skills and agents with too many lines."""
    for pages, most in ((tree.skills, SKILL_LINES), (tree.agents, AGENT_LINES)):
        for page in pages.values():
            if (lines := len(page.text.splitlines())) > most:
                yield Finding(
                    page.path,
                    most + 1,
                    f"{lines} lines, of at most {most}",
                    "cut it, or move detail into a reference of a skill",
                )


def descriptions(tree: Tree) -> Iterator[Finding]:
    """Descriptions that are too long together, told at the longest one."""
    found = {page.path: len(str(page.matter.get("description", ""))) for page in tree.skills.values()}
    if (total := sum(found.values())) > DESCRIPTIONS:
        path = max(found, key=lambda path: found[path])
        line = tree.page(path).line_of_key("description")
        yield Finding(
            path,
            line,
            f"all skills' descriptions have {total} characters, of at most {DESCRIPTIONS}",
            f"shorten descriptions, this one of {found[path]} first",
        )


def references(tree: Tree) -> Iterator[Finding]:
    """References in a folder of their own, or that no SKILL.md names."""
    for path in tree.files:
        parts = path.split("/")
        if parts[0] != "skills" or parts[2:3] != ["references"] or parts[1] not in tree.skills:
            continue
        inside = "/".join(parts[2:])
        if len(parts) > 4:
            yield Finding(
                path, 1, "the reference lies deeper than one level", f"move it to {'/'.join(parts[:3])}/"
            )
        elif inside not in tree.skills[parts[1]].text:
            yield Finding(
                path,
                1,
                "the skill does not name this reference, so nobody reads it",
                f"link to `{inside}` in {'/'.join(parts[:2])}/SKILL.md, or delete it",
            )
