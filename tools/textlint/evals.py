"""The skill evals: enough cases, each with a prompt and graders that `claude plugin eval` can load."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from tools.textlint import claude_code, schema
from tools.textlint.finding import Finding, of_error
from tools.textlint.page import Page
from tools.textlint.tree import Tree

FEWEST = 12
"""Cases that the suite must have."""

_NO_CASES = {"results", "mocks"}


def cases(tree: Tree) -> Iterator[Finding]:
    """Too few cases, or one without a prompt or a grader."""
    found = sorted(
        {path.split("/")[1] for path in tree.files if path.startswith("evals/") and path.count("/") > 1}
    )
    names = [name for name in found if name not in _NO_CASES]
    if len(names) < FEWEST:
        yield Finding("evals", 1, f"{len(names)} cases, of at least {FEWEST}", "add cases")
    for name in names:
        prompt = f"evals/{name}/prompt.md"
        if not tree.has(prompt) or not tree.page(prompt).body.strip():
            yield Finding(prompt, 1, "the case has no prompt", "write what the agent is asked to do")
        if not tree.match(f"evals/{name}/graders/*.md"):
            yield Finding(prompt, 1, "the case has no grader", f"add one under evals/{name}/graders/")


def prompts(tree: Tree) -> Iterator[Finding]:
    """Prompts whose front matter, where they have any, cannot be loaded."""
    for path in tree.match("evals/*/prompt.md"):
        page = tree.page(path)
        if page.text.startswith("---"):
            yield from _matter(page, page.matter, claude_code.EvalPrompt)


def graders(tree: Tree) -> Iterator[Finding]:
    """Graders that cannot be loaded."""
    for path in tree.match("evals/*/graders/*.md"):
        page = tree.page(path)
        body = page.body.strip()
        given = {"regex": {"pattern": body}, "llm": {"criteria": body}, "baseline": {"criteria": body}}
        data = {**given.get(str(page.matter.get("type")), {}), **page.matter}
        yield from _matter(page, data, claude_code.Grader)


def _matter(page: Page, data: object, model: type[BaseModel]) -> Iterator[Finding]:
    if page.matter_error:
        yield of_error(page.path, page.matter_error)
    else:
        yield from schema.misfits(page.path, data, model, page.line_of_key)
