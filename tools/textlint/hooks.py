"""hooks/hooks.json: known events, matchers that compile, scripts that exist, a check of every answer owed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.textlint import schema
from tools.textlint.claude_code import HookGroup, HooksFile
from tools.textlint.finding import Finding, line_of
from tools.textlint.tree import PLUGIN, Tree
from warpsmith.languages.base import agent_name

PATH = "hooks/hooks.json"
ANSWERS = "warpsmith/driver/answers/kinds.py"
"""Holds the table of agents and the kind of answer that each owes."""

_SCRIPT = re.compile(r"\$\{CLAUDE_PLUGIN_ROOT\}[\"']?/([\w./-]+)")


def form(tree: Tree) -> Iterator[Finding]:
    """A file that is missing, no JSON, or holds what Claude Code does not know."""
    data, problem = schema.read_json(tree, PATH)
    if problem:
        yield problem
    else:
        text = tree.text(PATH)
        yield from schema.misfits(PATH, data, HooksFile, lambda key: line_of(text, f'"{key}"'))


def matchers(tree: Tree) -> Iterator[Finding]:
    """Matchers that do not compile: Claude Code never starts their hooks."""
    for _, group in _groups(tree):
        try:
            re.compile("" if group.matcher in (None, "*") else str(group.matcher))
        except re.error as error:
            line = schema.line_of_value(tree.text(PATH), group.matcher)
            yield Finding(PATH, line, f"the matcher `{group.matcher}` does not compile: {error.msg}", "correct it")


def scripts(tree: Tree) -> Iterator[Finding]:
    """Commands that run nothing of the plugin's own, or a script that is not there."""
    for command in (
        hook.command or "" for _, group in _groups(tree) for hook in group.hooks if hook.type == "command"
    ):
        line = schema.line_of_value(tree.text(PATH), command)
        named = _SCRIPT.findall(command)
        if not named:
            fix = "begin the script's path with ${CLAUDE_PLUGIN_ROOT}/"
            yield Finding(PATH, line, f"`{command}` runs nothing of the plugin's", fix)
        for script in named:
            if not tree.has(script):
                yield Finding(PATH, line, f"the hook's script {script} does not exist", "name one that does")


def owed_answers(tree: Tree) -> Iterator[Finding]:
    """A SubagentStop that misses an agent which owes an answer, or meets one that owes none."""
    if not tree.has(ANSWERS) or any(form(tree)):
        return
    answers = _answers(tree)
    for name in sorted(answers.keys() - tree.agents.keys()):
        yield Finding(ANSWERS, 1, f"`{name}` is no agent", f"remove it from ANSWERS, or add agents/{name}.md")
    owing = {name for name in tree.agents if answers.get(name)}
    stops = [group.matcher for event, group in _groups(tree) if event == "SubagentStop"]
    met = {name for name in tree.agents if any(_meets(matcher, f"{PLUGIN}:{name}") for matcher in stops)}
    line = line_of(tree.text(PATH), '"SubagentStop"')
    for name in sorted(owing ^ met):
        wrong = "misses this agent, which owes an" if name in owing else "meets this agent, which owes no"
        fix = "make the matcher fit the agents that owe one in ANSWERS, and no others"
        yield Finding(PATH, line, f"`{PLUGIN}:{name}`: SubagentStop {wrong} answer", fix)


def _answers(tree: Tree) -> dict[str, bool]:
    """The agents in ANSWERS, with literal keys, and those of languages; whether each owes an answer."""
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


def _groups(tree: Tree) -> Iterator[tuple[str, HookGroup]]:
    """Each event with each of its matchers; nothing where the form is wrong."""
    if not any(form(tree)):
        file = HooksFile.model_validate(schema.read_json(tree, PATH)[0])
        yield from ((event, group) for event, groups in file.hooks.items() for group in groups)


def _meets(matcher: str | None, name: str) -> bool:
    """As Claude Code decides it: all, or a pattern found anywhere in the name."""
    try:
        return matcher in (None, "", "*") or bool(re.search(str(matcher), name))
    except re.error:
        return False
