"""The plugin's manifests: names that agree, and no version. `claude plugin validate` checks their form."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tools.textlint.finding import Finding, line_of
from tools.textlint.schema import read_json
from tools.textlint.tree import PLUGIN, Tree

_PLUGIN, _MARKETPLACE = ".claude-plugin/plugin.json", ".claude-plugin/marketplace.json"
_SETTINGS = ".claude/settings.json"


def check_settings_file(tree: Tree) -> Iterator[Finding]:
    """Yield an error if the settings of the repository are not JSON; `claude plugin validate` ignores them."""
    try:
        json.loads(tree.text(_SETTINGS))
    except (OSError, json.JSONDecodeError) as error:
        yield Finding(_SETTINGS, getattr(error, "lineno", 1), f"the file is not JSON: {error}", "correct it")


def check_manifest_names(tree: Tree) -> Iterator[Finding]:
    """Yield a plugin or a marketplace entry whose name differs from the one in the texts."""
    if (name := read_json(tree, _PLUGIN).get("name", PLUGIN)) != PLUGIN:
        yield _finding(tree, _PLUGIN, "name", f"the plugin is called `{name}`", f"call it `{PLUGIN}`")
    plugins = read_json(tree, _MARKETPLACE).get("plugins", [])
    if PLUGIN not in [entry.get("name") for entry in plugins]:
        yield _finding(tree, _MARKETPLACE, "plugins", f"the marketplace has no plugin `{PLUGIN}`", "add it")


def check_version(tree: Tree) -> Iterator[Finding]:
    """Yield a version in the plugin's manifest: without one it is the commit, and every landing is an update."""
    if "version" in read_json(tree, _PLUGIN):
        yield _finding(tree, _PLUGIN, "version", "a version that stands still hides updates", "remove it")


def _finding(tree: Tree, path: str, key: str, message: str, fix: str) -> Finding:
    return Finding(path, line_of(tree.text(path), f'"{key}"'), message, fix)
