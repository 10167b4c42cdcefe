"""Budgets of loaded text: lengths of skills and agents, all descriptions together, the depth of references."""

from __future__ import annotations

from collections.abc import Iterator

from tools.textlint.fields import split_words
from tools.textlint.finding import Finding
from tools.textlint.tree import Tree

SKILL_LINES = 200
"""Largest number of lines of a SKILL.md, with front matter."""
SKILL_CHARACTERS = 6000
"""Largest number of characters of a SKILL.md, with front matter: about one page for an agent that works."""
DESIGNER_CHARACTERS = 6000
"""Largest number of characters that an agent which designs kernels loads: its own page and its skills."""
DESIGN = "design-kernel"
"""Skill that marks an agent as one that designs kernels."""
AGENT_LINES = 100
"""Largest number of lines of an agent's file, with front matter."""
DESCRIPTIONS = 4000
"""Largest number of characters of all skills' descriptions, which every session loads."""


def check_lengths(tree: Tree) -> Iterator[Finding]:
    """Yield skills and agents with too many lines, and skills with too many characters."""
    for page in tree.skills.values():
        if len(page.text) > SKILL_CHARACTERS:
            yield Finding(
                page.path,
                1,
                f"{len(page.text)} characters, of at most {SKILL_CHARACTERS}",
                "shorten it, or move what is needed rarely into a reference of the skill",
            )
    for pages, limit in ((tree.skills, SKILL_LINES), (tree.agents, AGENT_LINES)):
        for page in pages.values():
            if (lines := len(page.text.splitlines())) > limit:
                yield Finding(
                    page.path,
                    limit + 1,
                    f"{lines} lines, of at most {limit}",
                    "shorten it, or move details into a reference of a skill",
                )


def check_designers(tree: Tree) -> Iterator[Finding]:
    """Yield agents that design kernels and load too many characters before they begin."""
    for page in tree.agents.values():
        names = [name for name in split_words(page.matter.get("skills")) if name in tree.skills]
        total = len(page.text) + sum(len(tree.skills[name].text) for name in names)
        if DESIGN in names and total > DESIGNER_CHARACTERS:
            yield Finding(
                page.path,
                page.line_of_key("skills"),
                f"this page and its skills have {total} characters, of at most {DESIGNER_CHARACTERS}",
                "move what is needed rarely into a reference of a skill",
            )


def check_descriptions(tree: Tree) -> Iterator[Finding]:
    """Yield a finding at the longest description if all together are too long."""
    sizes = {page.path: len(str(page.matter.get("description", ""))) for page in tree.skills.values()}
    if (total := sum(sizes.values())) > DESCRIPTIONS:
        path = max(sizes, key=lambda path: sizes[path])
        line = tree.page(path).line_of_key("description")
        yield Finding(
            path,
            line,
            f"all skills' descriptions have {total} characters, of at most {DESCRIPTIONS}",
            f"shorten descriptions, this one of {sizes[path]} first",
        )


def check_references(tree: Tree) -> Iterator[Finding]:
    """Yield references in a nested folder, and references that no SKILL.md names."""
    for path in tree.files:
        parts = path.split("/")
        if parts[0] != "skills" or parts[2:3] != ["references"] or parts[1] not in tree.skills:
            continue
        inside = "/".join(parts[2:])
        if len(parts) > 4:
            yield Finding(path, 1, "the reference is deeper than one level", f"move it to {'/'.join(parts[:3])}/")
        elif inside not in tree.skills[parts[1]].text:
            yield Finding(
                path,
                1,
                "the skill does not name this reference, so it is never read",
                f"link to `{inside}` in {'/'.join(parts[:2])}/SKILL.md, or delete it",
            )
