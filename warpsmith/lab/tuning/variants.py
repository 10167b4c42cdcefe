"""Variants: a designer's kernel files, each with one setting of the constants that a sweep names."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from warpsmith import languages
from warpsmith.errors import MissingInput, Misuse
from warpsmith.languages.shared.stamps import without_stamps

MAX_VARIANTS = 256
"""Largest number of variants of one command; more is no choice but a lottery."""

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Variant:
    """One text that is built and run."""

    name: str
    """File and settings: `a.cu TILE=64`."""
    file: Path
    """Designer's file, which does not change."""
    language: str
    """Name of its language."""
    settings: Mapping[str, int]
    """Constant to value; empty without a sweep."""
    stamped: str
    """Text of the file with these settings, and with its stamps."""

    @property
    def text(self) -> str:
        """The text without its stamps, line by line as in the file, which is built and timed."""
        return without_stamps(self.stamped, same_lines=True)

    @property
    def text_to_submit(self) -> str:
        """The text without its stamps and their lines."""
        return without_stamps(self.stamped)


def parse_sweep(text: str) -> dict[str, tuple[int, ...]]:
    """Parse `TILE=64,128 STAGES=2..6` into the values of each constant.

    Raises:
        Misuse: a part is not `NAME=VALUES`, or a name stands twice.
    """
    values: dict[str, tuple[int, ...]] = {}
    for part in text.split():
        name, _, listed = part.partition("=")
        if not _NAME.fullmatch(name) or name in values:
            raise Misuse(
                f"--sweep: `{part}` is wrong; write each constant once, as `TILE=64,128` or `STAGES=2..6`."
            )
        values[name] = tuple(dict.fromkeys(_parse_values(part, listed)))
    return values


def _parse_values(part: str, listed: str) -> Iterator[int]:
    for item in listed.split(","):
        if span := _RANGE.fullmatch(item):
            yield from range(int(span[1]), int(span[2]) + 1)
        elif re.fullmatch(r"-?\d+", item):
            yield int(item)
        else:
            raise Misuse(
                f"--sweep: `{part}` has the value `{item}`; values are integers or ranges such as `2..6`."
            )


def list_variants(paths: Sequence[Path], sweep: Mapping[str, Sequence[int]]) -> list[Variant]:
    """List the variants of files, those nearest to the settings in their files first, the files taking turns.

    A file takes part in the sweep of the constants that it assigns.

    Raises:
        MissingInput: a file does not exist.
        Misuse: no language claims a file, a constant is assigned in no file or more than once in a file, or there
            are more than `MAX_VARIANTS`.
    """
    names = _short_names(paths)
    turns = itertools.zip_longest(*(_variants_of(path, names[path], sweep) for path in paths))
    variants = [variant for turn in turns for variant in turn if variant]
    used = {name for variant in variants for name in variant.settings}
    if unused := [name for name in sweep if name not in used]:
        raise Misuse(f"--sweep: no file assigns {' or '.join(f'`{name}`' for name in unused)} an integer.")
    if len(variants) > MAX_VARIANTS:
        raise Misuse(f"These are {len(variants)} variants; sweep at most {MAX_VARIANTS}.")
    return variants


def _short_names(paths: Sequence[Path]) -> dict[Path, str]:
    """Name files by their last part, or by their whole path where that is not unique."""
    ends = [path.name for path in paths]
    return {path: path.name if ends.count(path.name) == 1 else str(path) for path in paths}


def _variants_of(path: Path, name: str, sweep: Mapping[str, Sequence[int]]) -> list[Variant]:
    if not path.is_file():
        raise MissingInput(f"{path} does not exist.")
    text = path.read_text(encoding="utf-8")
    language = languages.recognise(str(path), text)
    if language is None:
        raise Misuse(f"{path}: no language of the lab claims this file; see `warpsmith route --kernel {path}`.")
    sites = {constant: site for constant in sweep if (site := _find_constant(path, text, constant))}
    own = {constant: int(site[2]) for constant, site in sites.items()}
    total = prod(len(sweep[constant]) for constant in sites)
    if total > MAX_VARIANTS:
        raise Misuse(f"{path}: the sweep has {total} settings; sweep at most {MAX_VARIANTS}.")
    combinations = [
        dict(zip(sites, values, strict=True)) for values in itertools.product(*(sweep[c] for c in sites))
    ]
    settings = sorted(combinations, key=lambda setting: _distance(setting, own, sweep))
    return [
        Variant(
            name=" ".join([name, *(f"{constant}={value}" for constant, value in setting.items())]),
            file=path,
            language=language,
            settings=setting,
            stamped=_write_constants(text, sites, setting),
        )
        for setting in settings
    ]


def _find_constant(path: Path, text: str, name: str) -> re.Match[str] | None:
    """Find the only place that gives a constant an integer: `NAME = 4`, `NAME: int = 4`, `#define NAME 4`."""
    gap = r"[ \t]*"  # within a line: `if n <= NAME:` gives no value to what the next line begins with
    assignment = rf"""\b{name}\b["']?{gap}(?::{gap}[\w.]+{gap})?[=:]{gap}"""
    macro = rf"\#{gap}define[ \t]+{name}[ \t]+\(?"
    pattern = rf"({assignment}|{macro})(-?\d+)\b(?!\.\d)"
    sites = list(re.finditer(pattern, text))
    if len(sites) > 1:
        lines = ", ".join(str(text.count("\n", 0, site.start()) + 1) for site in sites)
        raise Misuse(f"{path} assigns `{name}` on lines {lines}; give it its value in one place.")
    return sites[0] if sites else None


def _distance(setting: Mapping[str, int], own: Mapping[str, int], sweep: Mapping[str, Sequence[int]]) -> int:
    """Count the steps between a setting and the file's own, each step to the next value of a constant."""
    steps = 0
    for name, value in setting.items():
        order = sorted({*sweep[name], own[name]})
        steps += abs(order.index(value) - order.index(own[name]))
    return steps


def _write_constants(text: str, sites: Mapping[str, re.Match[str]], setting: Mapping[str, int]) -> str:
    for name, site in sorted(sites.items(), key=lambda item: item[1].start(2), reverse=True):
        text = text[: site.start(2)] + str(setting[name]) + text[site.end(2) :]
    return text
