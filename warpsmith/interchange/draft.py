"""Definition that is about to be written: the content of its files, and notes for the user."""

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
"""Columns up to which a literal is written on one line."""

_MAGNITUDE = '''\
def magnitude(@PARAMETERS@):
    """Scale of rounding errors: the element, or a typical one if sums cancelled to less."""
    results = reference(@PARAMETERS@)
    results = results if isinstance(results, tuple | list) else (results,)
    results = [result.double() for result in results]
    typical = [r.nan_to_num(posinf=0.0, neginf=0.0).square().mean().sqrt() for r in results]
    return tuple(r.abs().clamp_min(t) for r, t in zip(results, typical))
'''

_CONDITION_MAGNITUDE = '''\
def magnitude(@PARAMETERS@):
    """Scale of rounding errors: the element, a typical one, or how far a relative change of the inputs moves it.

    The operator amplifies errors of its inputs, or its few results do not show their typical size.
    """

    def results(arguments):
        returned = reference(*arguments)
        return [r.double() for r in (returned if isinstance(returned, tuple | list) else (returned,))]

    def moved(value, step, seed):
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        generator = torch.Generator(value.device).manual_seed(seed)
        shares = 2 * torch.rand(value.shape, generator=generator, device=value.device) - 1  # no two elements alike
        return value + value.nan_to_num(posinf=0.0, neginf=0.0) * step * shares * 3**0.5

    def slopes(step):
        """Return how far results move, as a share of the step, in three directions."""
        others = [results([moved(value, *way) for value in values]) for way in ((step, 0), (-step, 1), (step, 2))]
        shares = []
        for i, r in enumerate(exact):
            changes = [((other[i] - r) / step).nan_to_num(posinf=0.0, neginf=0.0) for other in others]
            share = sum(change.square() for change in changes) / len(changes)
            shares.append((torch.maximum(share, share.mean(-1, keepdim=True)) if share.ndim else share).sqrt())
        return shares

    values = (@PARAMETERS@,)
    exact = results(values)
    typical = [r.nan_to_num(posinf=0.0, neginf=0.0).square().mean().sqrt() for r in exact]
    steep = slopes(2.0**-30)
    if any((share > 1000 * t).any() for share, t in zip(steep, typical)):
        # A slope is as large at any step, a jump is not: it counts no more than that.
        farther = slopes(2.0**-29)
        usual = [torch.minimum(share, 1000 * t) for share, t in zip(steep, typical)]
        steep = [torch.where(f < 0.75 * share, u, share) for f, share, u in zip(farther, steep, usual)]
    return tuple(torch.maximum(r.abs().clamp_min(t), share) for r, t, share in zip(exact, typical, steep))
'''


@dataclass(frozen=True)
class DefinitionDraft:
    """Files that `warpsmith new` is about to write to `kernels/<op>/`."""

    files: dict[str, str | bytes]
    """Content of each file by its name, including `definition.py`."""
    notes: tuple[str, ...] = ()
    """Sentences for the user about skipped parts and default choices."""

    def write(self, definition: Path) -> None:
        """Write the files next to `definition`, the path of the definition itself.

        The definition comes last: a folder without it does not count, so a kill in between leaves no partial
        definition.
        """
        for name in sorted(self.files, key=lambda name: name == definition.name):
            files.write_file(definition.with_name(name), self.files[name])


def docstring_safe(name: str) -> str:
    """Replace characters of a foreign name that could break a docstring."""
    return re.sub(r"[^\w.\- ]", "_", name)


def magnitude_source(definition: Definition, *, amplifies: bool = False) -> str:
    """Return the source of the error hook for an operator that is known only by its reference.

    With `amplifies`, the hook also moves the inputs, to see how the results follow.
    """
    template = _CONDITION_MAGNITUDE if amplifies else _MAGNITUDE
    return template.replace("@PARAMETERS@", ", ".join(definition.inputs))


def python_literal(value: object, notes: Mapping[str, str] | None = None) -> str:
    """Return Python source of a model, container or plain value; fields at their defaults are left out.

    `notes` are comments by field name of the outermost model; each is written above its field.
    """
    opening, parts, closing = _parts(value)
    if not closing:
        return opening
    texts = [f"{label}{python_literal(item)}" for label, item in parts]
    is_single = opening == "(" and len(texts) == 1
    flat = f"{opening}{', '.join(texts)}{',' if is_single else ''}{closing}"
    if not notes and "\n" not in flat and len(flat) <= _WIDTH:
        return flat
    lines = []
    for (label, _), text in zip(parts, texts, strict=True):
        comment = (notes or {}).get(label.rstrip("="))
        lines += [f"# {line}" for line in comment.splitlines()] if comment else []
        lines.append(f"{text},")
    return f"{opening}\n{indent(chr(10).join(lines), '    ')}\n{closing}"


def _parts(value: object) -> tuple[str, list[tuple[str, object]], str]:
    """Return the opening text, labelled items and closing text; a plain value is all opening text."""
    match value:
        case Model():
            fields = type(value).model_fields
            changed = [name for name, field in fields.items() if getattr(value, name) != field.default]
            return f"{type(value).__name__}(", [(f"{name}=", getattr(value, name)) for name in changed], ")"
        case dict():
            return "{", [(f"{json.dumps(key)}: ", item) for key, item in value.items()], "}"
        case tuple():
            return "(", [("", item) for item in value], ")"
        case str():
            return json.dumps(value, ensure_ascii=False), [], ""
        case _:
            return repr(value), [], ""


def read_user_text(path: Path) -> str:
    """Return the text of a file that the user named, without a byte order mark.

    Raises:
        Misuse: it is not text.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"{path} cannot be read as text: {error}.") from error
