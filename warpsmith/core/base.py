"""Base class of all models: frozen, closed, and described by the docstrings of its fields."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler


class Model(BaseModel):
    """Part of a record: unknown fields are errors, and the docstring of a field is its schema text."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        defer_build=True,  # a command builds only the models that it reads
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls,
        core_schema: Any,  # noqa: ANN401 - its type is in a package that only pydantic depends on
        handler: GetJsonSchemaHandler,
    ) -> dict[str, Any]:
        """Return the schema with the field docstrings, read here
        because parsing the sources would slow every start."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        for owner in reversed(cls.__mro__):
            if issubclass(owner, Model):
                for name, words in _attribute_docstrings(owner):
                    schema.get("properties", {}).get(name, {}).setdefault("description", words)
        return schema


def _attribute_docstrings(cls: type) -> Iterator[tuple[str, str]]:
    body = _class_bodies(cls.__module__).get(cls.__qualname__)
    if body is None:  # a class in a function
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body  # type: ignore[assignment]
    for field, words in pairwise(getattr(body, "body", ())):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match words:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield field.target.id, inspect.cleandoc(text)


@cache
def _class_bodies(module: str) -> dict[str, ast.ClassDef]:
    """Parse a module once for all of its classes; a class by its name."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=80)]
"""Name that is also a folder and a Python identifier: `rmsnorm`, `rmsnorm_quant_fp8`."""

Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=120)]
"""Name that is also a file name without suffix: `single-pass-online-reduction`, `softmax-triton-h200-20261121`."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 of a content, in hexadecimal."""

Minute = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}$")]
"""Time in UTC to the minute: `2026-11-21 14:05`."""


def this_minute() -> str:
    """Return the current time in UTC as a `Minute`."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M")


Positive = Annotated[float, Field(gt=0)]
"""Finite number above zero."""
