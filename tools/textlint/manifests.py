"""The plugin's manifests: they parse, and every place that states the version states the same one."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from tools.textlint import schema
from tools.textlint.finding import Finding, line_of
from tools.textlint.tree import PLUGIN, Tree

_PLUGIN, _MARKETPLACE = ".claude-plugin/plugin.json", ".claude-plugin/marketplace.json"
_SETTINGS = ".claude/settings.json"


def parse(tree: Tree) -> Iterator[Finding]:
    """Manifests and settings that are missing, no JSON, or no mapping."""
    for path in (_PLUGIN, _MARKETPLACE, _SETTINGS):
        data, problem = schema.read_json(tree, path)
        if problem:
            yield problem
        elif not isinstance(data, dict):
            yield Finding(path, 1, "this is no mapping", "write `{...}`")


def names(tree: Tree) -> Iterator[Finding]:
    """A plugin or a marketplace entry of another name than the texts use."""
    if (name := _read(tree, _PLUGIN).get("name", PLUGIN)) != PLUGIN:
        yield _at(tree, _PLUGIN, "name", f"the plugin is called `{name}`", f"call it `{PLUGIN}`")
    if PLUGIN not in [entry.get("name") for entry in _listed(tree)] and _read(tree, _MARKETPLACE):
        yield _at(tree, _MARKETPLACE, "plugins", f"the marketplace has no plugin `{PLUGIN}`", "add it")


def versions(tree: Tree) -> Iterator[Finding]:
    """Versions that differ from the one in pyproject.toml."""
    if not tree.has("pyproject.toml"):
        return
    version = tomllib.loads(tree.text("pyproject.toml")).get("project", {}).get("version")
    stated = [(_PLUGIN, plugin.get("version", "none"))] if (plugin := _read(tree, _PLUGIN)) else []
    stated += [(_MARKETPLACE, entry["version"]) for entry in _listed(tree) if "version" in entry]
    for path, found in stated:
        if found != version:
            yield _at(
                tree,
                path,
                "version",
                f"the version is {found}, that of pyproject.toml {version}",
                f"write {version}",
            )


def _read(tree: Tree, path: str) -> dict[str, Any]:
    data, _ = schema.read_json(tree, path)
    return data if isinstance(data, dict) else {}


def _listed(tree: Tree) -> list[dict[str, Any]]:
    plugins = _read(tree, _MARKETPLACE).get("plugins")
    return [entry for entry in plugins if isinstance(entry, dict)] if isinstance(plugins, list) else []


def _at(tree: Tree, path: str, key: str, wrong: str, fix: str) -> Finding:
    return Finding(path, line_of(tree.text(path), f'"{key}"'), wrong, fix)
