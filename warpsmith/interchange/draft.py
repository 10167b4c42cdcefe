"""A definition about to be written: its files as text, and what to tell people."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.core.definition import Definition
from warpsmith.errors import Misuse

_WIDTH = 100
"""A literal that fits into this many columns stands on one line."""

_MAGNITUDE = '''\
def magnitude(@PARAMETERS@):
    """What rounding errors are relative to: an element, or a typical one where sums cancelled to less."""
    results = reference(@PARAMETERS@)
    results = results if isinstance(results, tuple | list) else (results,)
    results = [result.double() for result in results]
    typical = [r.nan_to_num(posinf=0.0, neginf=0.0).square().mean().sqrt() for r in results]
    return tuple(r.abs().clamp_min(t) for r, t in zip(results, typical))
'''


@dataclass(frozen=True)
class DefinitionDraft:
    """What `warpsmith new` is going to write into `kernels/<op>/`."""

    files: dict[str, str]
    """Text by file name; `definition.py` is one of them."""
    notes: tuple[str, ...] = ()
    """Sentences for people: what was skipped or chosen for them."""

    def write(self, definition: Path) -> None:
        """Put the files beside each other; `definition` is where its definition goes.

        That is the last: a folder without it is none, so a kill in between leaves nothing half-made.
        """
        for name in sorted(self.files, key=lambda name: name == definition.name):
            files.write_file(definition.with_name(name), self.files[name])


def docstring_safe(name: str) -> str:
    """A name from elsewhere, harmless inside a docstring."""
    return re.sub(r"[^\w.\- ]", "_", name)


def magnitude_source(definition: Definition) -> str:
    """Source of the error hook of an operator of which nothing is known but its reference."""
    return _MAGNITUDE.replace("@PARAMETERS@", ", ".join(definition.inputs))


def python_literal(value: object, notes: Mapping[str, str] | None = None) -> str:
    """Python source of a model, container or plain value; fields at their defaults are left out.

    `notes` are comments by field name of the outermost model; each stands above its field.
    """
    opening, parts, closing = _parts(value)
    if not closing:
        return opening
    texts = [f"{label}{python_literal(item)}" for label, item in parts]
    lone = opening == "(" and len(texts) == 1
    flat = f"{opening}{', '.join(texts)}{',' if lone else ''}{closing}"
    if not notes and "\n" not in flat and len(flat) <= _WIDTH:
        return flat
    lines = []
    for (label, _), text in zip(parts, texts, strict=True):
        comment = (notes or {}).get(label.rstrip("="))
        lines += [f"# {line}" for line in comment.splitlines()] if comment else []
        lines.append(f"{text},")
    return f"{opening}\n{indent(chr(10).join(lines), '    ')}\n{closing}"


def _parts(value: object) -> tuple[str, list[tuple[str, object]], str]:
    """Opening text, labelled items, closing text; a plain value is all opening."""
    match value:
        case Model():
            fields = type(value).model_fields
            kept = [name for name, field in fields.items() if getattr(value, name) != field.default]
            return f"{type(value).__name__}(", [(f"{name}=", getattr(value, name)) for name in kept], ")"
        case dict():
            return "{", [(f"{json.dumps(key)}: ", item) for key, item in value.items()], "}"
        case tuple():
            return "(", [("", item) for item in value], ")"
        case str():
            return json.dumps(value, ensure_ascii=False), [], ""
        case _:
            return repr(value), [], ""


def read_user_text(path: Path) -> str:
    """The text of a file the user named; raises Misuse where it is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"{path} cannot be read as text: {error}.") from error
