"""Validation of front matter against a model, and reading of JSON files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from tools.textlint.finding import Finding, line_of
from tools.textlint.tree import Tree

_MESSAGES = {"extra_forbidden": "is not a known field", "missing": "is missing"}
"""Messages by pydantic's kind of error; other kinds have pydantic's own message."""


def check_model(path: str, data: object, model: type[BaseModel], line: Callable[[str], int]) -> Iterator[Finding]:
    """Yield a finding for every error of `data` against `model`; `line` returns the line of a key."""
    try:
        model.model_validate(data)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            key = str(detail["loc"][0]) if detail["loc"] else "the front matter"
            message = _MESSAGES.get(detail["type"], detail["msg"].rstrip("."))
            yield Finding(path, line(key), f"`{key}`: {message}", f"correct `{key}`")


def read_json(tree: Tree, path: str) -> dict[str, Any]:
    """Return the content of a JSON file; empty if it is missing, invalid or not an object."""
    try:
        data = json.loads(tree.text(path)) if tree.has(path) else {}
    except json.JSONDecodeError:
        return {}
    return data if isinstance(data, dict) else {}


def line_of_value(text: str, value: object) -> int:
    """Return the first line of a JSON text with a value; 1 if there is none."""
    return line_of(text, json.dumps(value, ensure_ascii=False))
