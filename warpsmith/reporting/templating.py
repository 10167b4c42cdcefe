"""Templates that escape every value unless the formatting module produced it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from warpsmith.core import trust
from warpsmith.reporting import facts, format

if TYPE_CHECKING:
    from jinja2 import Environment


def fill_template(template: str, **values: object) -> str:
    """Render `templates/<template>.md.j2` with `values`.

    Raises:
        jinja2.UndefinedError: the template uses an undefined value.
        TypeError: the template shows a number that was not formatted.
    """
    text = _environment().get_template(f"{template}.md.j2").render(**values)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("warpsmith.reporting", "templates"),
        undefined=StrictUndefined,
        finalize=_page_text,
        autoescape=False,  # autoescape is for HTML; `finalize` escapes for Markdown
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for name in _FILTERS:
        environment.filters[name] = _as_markdown(getattr(format, name))
    environment.globals["facts"] = facts
    environment.globals["trust"] = trust
    return environment


_FILTERS = (
    "bandwidth",
    "change",
    "code",
    "count_noun",
    "dollars",
    "factor",
    "gain",
    "interval",
    "joules",
    "comma_list",
    "metric",
    "minutes",
    "key_values",
    "percent",
    "rate",
    "seconds",
    "share_of_bound",
    "speedup",
)
"""Formatting functions that templates may use as filters."""


def _as_markdown(formatter: Callable[..., str]) -> Callable[..., format.Md]:
    return lambda *values: format.Md(formatter(*values))


def _page_text(value: object) -> str:
    if isinstance(value, format.Md):
        return value
    if value is None:
        return format.ABSENT
    if isinstance(value, str):
        return format.inline(value)
    if isinstance(value, int):
        return str(value)
    # Not its repr: an undefined value raises its own error when formatted.
    raise TypeError(f"a page shows {value} of type {type(value).__name__}, which was not formatted")
