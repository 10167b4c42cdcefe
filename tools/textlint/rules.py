"""All rules in one list, and what they find in a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tools.textlint import (
    blocks,
    budgets,
    commands,
    evals,
    fields,
    hooks,
    hygiene,
    links,
    manifests,
    names,
)
from tools.textlint.finding import Finding
from tools.textlint.tree import Tree

RULES: tuple[Callable[[Tree], Iterator[Finding]], ...] = (
    fields.skills,
    fields.agents,
    budgets.lengths,
    budgets.descriptions,
    budgets.references,
    names.qualified,
    names.subagents,
    names.fields,
    links.broken,
    links.paths,
    links.orphans,
    commands.commands,
    commands.targets,
    blocks.parses,
    blocks.compiles,
    hooks.form,
    hooks.matchers,
    hooks.scripts,
    hooks.owed_answers,
    manifests.parse,
    manifests.names,
    manifests.versions,
    evals.cases,
    evals.prompts,
    evals.graders,
    hygiene.strays,
    hygiene.unseen,
)


def lint(tree: Tree) -> list[Finding]:
    """Everything that is wrong, in order of place."""
    return sorted({finding for rule in RULES for finding in rule(tree)})
