"""HTML templates. They escape every value, and show a measured value only with the record that it comes from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Undefined

from warpsmith.core import trust
from warpsmith.reporting import facts, format
from warpsmith.site.charts import axes
from warpsmith.site.citation import Citation, Quote
from warpsmith.site.markup import Html, escape, escape_code, slug

FIGURES: dict[str, Callable[[Any], str]] = {
    "bandwidth": format.bandwidth,
    "change": format.change,
    "dollars": format.dollars,
    "factor": format.factor,
    "gain": format.gain,
    "joules": format.joules,
    "metric": format.metric,
    "percent": format.percent,
    "rate": format.rate,
    "seconds": format.seconds,
    "share_of_bound": format.share_of_bound,
    "speedup": format.speedup,
    "figure": str,
    "figure_number": lambda value: f"{value:g}" if isinstance(value, float | int) else str(value),
}
"""Formatters that templates may use as filters, on quotes alone."""


def fill_page(template: str, **values: object) -> str:
    """Render `templates/<template>.html.j2` with `values`.

    Raises:
        jinja2.UndefinedError: the template uses an undefined value.
        TypeError: the template shows a measured value without its record.
    """
    return environment().get_template(f"{template}.html.j2").render(**values)


@cache
def environment() -> Environment:
    """Return the engine of the templates."""
    engine = Environment(
        loader=PackageLoader("warpsmith.site", "templates"),
        undefined=StrictUndefined,
        finalize=_page_text,
        autoescape=True,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for name, formatter in FIGURES.items():
        engine.filters[name] = _cited(name, formatter)
    engine.filters["code"] = escape_code
    engine.filters["slug"] = slug
    engine.filters["count_noun"] = format.count_noun
    engine.filters["minutes"] = format.minutes
    engine.filters["within"] = _within
    engine.globals["facts"] = facts
    engine.globals["trust"] = trust
    engine.globals["marks"] = {shape: axes.marker(shape, 7, 7, 4.5) for shape in axes.MARKS}
    return engine


def _cited(name: str, formatter: Callable[[Any], str]) -> Callable[[Quote | None], Html]:
    def show(quote: Quote | None) -> Html:
        if quote is not None and not isinstance(quote, Quote):
            raise TypeError(f"the filter `{name}` got {quote!r} without its record; quote it from a citation")
        return Html(format.ABSENT) if quote is None else quote.show(formatter)

    return show


def _within(text: str, citation: Citation) -> Html:
    """Return a text with figures of a record."""
    return citation.derive(text).show(str)


def _page_text(value: object) -> object:
    if isinstance(value, Html) or hasattr(value, "__html__"):
        return value
    if value is None:
        return Html(format.ABSENT)
    if type(value) is Undefined:
        return Html("")  # of an `if` without an `else`; an undefined name is strict
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, int):
        return str(value)
    # Not its repr: an undefined value raises its own error when formatted.
    raise TypeError(f"a page shows {value} of type {type(value).__name__} without its record")
