"""The list of all rules, and the run of all of them over a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tools.textlint import blocks, budgets, commands, fields, glossary, hooks, hygiene, links, manifests, names
from tools.textlint.finding import Finding
from tools.textlint.tree import Tree

RULES: tuple[Callable[[Tree], Iterator[Finding]], ...] = (
    fields.check_skills,
    fields.check_agents,
    budgets.check_lengths,
    budgets.check_designers,
    budgets.check_descriptions,
    budgets.check_references,
    glossary.check_glossary,
    names.check_qualified_names,
    names.check_subagent_types,
    names.check_named_fields,
    links.check_links,
    links.check_code_paths,
    commands.check_commands,
    commands.check_make_targets,
    blocks.check_blocks,
    hooks.check_matchers,
    hooks.check_scripts,
    hooks.check_answers,
    manifests.check_settings_file,
    manifests.check_manifest_names,
    manifests.check_version,
    hygiene.check_private_references,
    hygiene.check_invisible_characters,
)


def lint(tree: Tree) -> list[Finding]:
    """Return the findings of all rules, sorted by path and line."""
    return sorted({finding for rule in RULES for finding in rule(tree)})
