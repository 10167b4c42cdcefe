"""Templates where every value is escaped unless the formatting module made it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from warpsmith.reporting import facts, format


def fill(template: str, **values: object) -> str:
    """The page that `templates/<template>.md.j2` makes of `values`.

    Raises:
        jinja2.UndefinedError: the template names a value that is not there.
        TypeError: the template shows a number that was not formatted.
    """
    text = _environment().get_template(f"{template}.md.j2").render(**values)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("warpsmith.reporting", "templates"),
        undefined=StrictUndefined,
        finalize=_shown,
        autoescape=False,  # that would be for HTML; pages are Markdown, and `finalize` escapes for it
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for name in _FILTERS:
        environment.filters[name] = _made(getattr(format, name))
    environment.globals["facts"] = facts
    return environment


_FILTERS = (
    "bandwidth",
    "change",
    "code",
    "counted",
    "dollars",
    "factor",
    "gain",
    "interval",
    "joules",
    "listed",
    "metric",
    "minutes",
    "named",
    "percent",
    "rate",
    "seconds",
    "share_of_bound",
    "speedup",
)
"""What templates may format with."""


def _made(formatter: Callable[..., str]) -> Callable[..., format.Md]:
    return lambda *values: format.Md(formatter(*values))


def _shown(value: object) -> str:
    if isinstance(value, format.Md):
        return value
    if value is None:
        return format.ABSENT
    if isinstance(value, str):
        return format.inline(value)
    if isinstance(value, int):
        return str(value)
    # Not its repr: an undefined value raises its own error here.
    raise TypeError(f"a page shows {value} of type {type(value).__name__}, which was not formatted")
