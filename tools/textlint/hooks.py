"""hooks/hooks.json: matchers that compile, scripts that exist, and a check of every answer that an agent owes.

`claude plugin validate` checks its form.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from tools.textlint.finding import Finding, line_of
from tools.textlint.schema import line_of_value, read_json
from tools.textlint.tree import PLUGIN, Tree
from warpsmith.languages.base import agent_name

PATH = "hooks/hooks.json"
ANSWERS = "warpsmith/driver/answers/kinds.py"
"""Module with the table of agents and the kind of answer that each owes."""

_SCRIPT = re.compile(r"\$\{CLAUDE_PLUGIN_ROOT\}[\"']?/([\w./-]+)")


def check_matchers(tree: Tree) -> Iterator[Finding]:
    """Yield matchers that do not compile; Claude Code would never start their hooks."""
    for _, group in _groups(tree):
        matcher = str(group.get("matcher") or "")
        try:
            re.compile("" if matcher == "*" else matcher)
        except re.error as error:
            line = line_of_value(tree.text(PATH), matcher)
            yield Finding(PATH, line, f"the matcher `{matcher}` does not compile: {error.msg}", "correct it")


def check_scripts(tree: Tree) -> Iterator[Finding]:
    """Yield commands that run no script of the plugin, or a script that does not exist."""
    hooks = [hook for _, group in _groups(tree) for hook in group.get("hooks", [])]
    for command in (str(hook.get("command", "")) for hook in hooks if hook.get("type") == "command"):
        line = line_of_value(tree.text(PATH), command)
        scripts = _SCRIPT.findall(command)
        if not scripts:
            fix = "begin the script's path with ${CLAUDE_PLUGIN_ROOT}/"
            yield Finding(PATH, line, f"`{command}` runs no script of the plugin", fix)
        for script in scripts:
            if not tree.has(script):
                yield Finding(PATH, line, f"the hook's script {script} does not exist", "name an existing script")


def check_answers(tree: Tree) -> Iterator[Finding]:
    """Yield agents that owe an answer but have no SubagentStop hook, and agents with the hook that owe none."""
    answers = _answers(tree)
    for name in sorted(answers.keys() - tree.agents.keys()):
        yield Finding(ANSWERS, 1, f"`{name}` is not an agent", f"remove it from ANSWERS, or add agents/{name}.md")
    owing = {name for name in tree.agents if answers.get(name)}
    matchers = [group.get("matcher") for event, group in _groups(tree) if event == "SubagentStop"]
    hooked = {name for name in tree.agents if any(_matches(matcher, f"{PLUGIN}:{name}") for matcher in matchers)}
    line = line_of(tree.text(PATH), '"SubagentStop"')
    for name in sorted(owing ^ hooked):
        problem = "misses this agent, which owes an" if name in owing else "matches this agent, which owes no"
        fix = "let the matcher fit the agents that owe one in ANSWERS, and no others"
        yield Finding(PATH, line, f"`{PLUGIN}:{name}`: SubagentStop {problem} answer", fix)


def _answers(tree: Tree) -> dict[str, bool]:
    """Return for the agents in ANSWERS, and for those of languages, whether each owes an answer."""
    for node in ast.parse(tree.text(ANSWERS)).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        table = getattr(node, "value", None)
        if isinstance(table, ast.Dict) and "ANSWERS" in [getattr(target, "id", None) for target in targets]:
            entries = [(key, value) for key, value in zip(table.keys, table.values, strict=True) if key]
            answers = {str(ast.literal_eval(key)): ast.unparse(value) != "None" for key, value in entries}
            return answers | dict.fromkeys(_language_agents(tree), True)
    return {}


def _language_agents(tree: Tree) -> Iterator[str]:
    """Yield the agents that write languages, each of which owes a version."""
    for path in tree.match("warpsmith/languages/*/language.py"):
        yield agent_name(path.split("/")[2])


def _groups(tree: Tree) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each event with each of its groups of hooks."""
    events = read_json(tree, PATH).get("hooks", {})
    yield from ((event, group) for event, groups in events.items() for group in groups)


def _matches(matcher: str | None, name: str) -> bool:
    """Return whether a matcher fits an agent: Claude Code searches for the pattern anywhere in the name."""
    try:
        return matcher in (None, "", "*") or bool(re.search(str(matcher), name))
    except re.error:
        return False
