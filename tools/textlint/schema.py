"""Data held against a model: each thing that does not fit is a finding at the line of its key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from tools.textlint.finding import Finding, line_of

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from tools.textlint.tree import Tree

_FIXES = {
    "bool_type": "write true or false",
    "extra_forbidden": "remove `{key}`, or correct its name",
    "literal_error": "write {expected}",
    "missing": "add `{key}`",
    "string_too_long": "shorten it to {max_length} characters",
    "union_tag_invalid": "write one of {expected_tags}",
    "union_tag_not_found": "add {discriminator}",
}
"""What to do, by pydantic's kind of error."""


def misfits(path: str, data: object, model: type[BaseModel], line: Callable[[str], int]) -> Iterator[Finding]:
    """What in `data` does not fit `model`; `line` gives the line of a key."""
    try:
        model.model_validate(data)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            yield _finding(path, detail, line)


def _finding(path: str, detail: ErrorDetails, line: Callable[[str], int]) -> Finding:
    keys = [str(part) for part in detail["loc"] if part != "[key]"]
    named = [part for part in keys if not part.isdigit()]
    key = named[-1] if named else "the value"
    wrong = {"extra_forbidden": "is not a known field", "missing": "is missing"}.get(detail["type"], "")
    fix = _FIXES.get(detail["type"], "correct `{key}`").format(key=key, **detail.get("ctx", {}))
    message = wrong or detail["msg"].removeprefix("Value error, ").rstrip(".")
    return Finding(path, line(key), f"`{'.'.join(keys) or key}`: {message}", fix)


def read_json(tree: Tree, path: str) -> tuple[Any, Finding | None]:
    """The content of a JSON file, or why there is none; a key that stands twice is an error."""
    if not tree.has(path):
        return None, Finding(path, 1, "the file is missing", "write it")
    text = tree.text(path)
    try:
        return json.loads(text, object_pairs_hook=_without_twins), None
    except json.JSONDecodeError as error:
        return None, Finding(path, error.lineno, f"this is not JSON: {error.msg}", "mend the syntax")
    except _Twin as twin:
        place = line_of(text, f'"{twin}"')
        return None, Finding(path, place, f"the key `{twin}` stands twice, and one is lost", "join the two")


def line_of_value(text: str, value: object) -> int:
    """The line of a JSON text on which a value first stands; 1 where it does not."""
    return line_of(text, json.dumps(value, ensure_ascii=False))


class _Twin(Exception):
    pass


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Twin(key)
        found[key] = value
    return found
