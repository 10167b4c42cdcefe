"""PTX as Triton leaves it: where each line comes from, and the cache operators that SASS abbreviates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

HINTS = "cache hints (PTX)"
"""The group of memory instructions with a cache operator or an eviction hint."""

_LOC = re.compile(r"^\s*\.loc\s+\d+\s+\d+\s+\d+.*?//\s*(.*)$")
_PLACE = re.compile(r"([^\s\[\]@]+?):(\d+):\d+")
_MEMORY = re.compile(r"^\s*\{?\s*(?:@!?%p\d+\s+)?((?:ld|st|cp|prefetch|createpolicy)\.[\w.:]+)")
_HINT = re.compile(r"\.(?:c[agsv]|lu|w[bt]|nc|volatile)(?=\.|$)|L[12]::|^createpolicy|^prefetch")


def places(ptx: str, inside: Callable[[str], bool]) -> dict[int, int]:
    """Line of the PTX to line of the solution: of the innermost call that stands in a file that is `inside`.

    Inlined code names the chain of its callers in a comment:
    `.loc 2 191 40 // standard.py:191:40 @[ v1.py:19:44 ]`.
    """
    found: dict[int, int] = {}
    line = 0
    for number, text in enumerate(ptx.splitlines(), start=1):
        if chain := _LOC.match(text):
            own = (int(at) for file, at in _PLACE.findall(chain[1]) if inside(file))
            line = next(own, 0)
        elif line:
            found[number] = line
    return found


def hints(ptx: str) -> Iterator[tuple[str, str]]:
    """The memory instructions with a cache operator or an eviction hint, with their group."""
    for text in ptx.splitlines():
        found = _MEMORY.match(text)
        if found and _HINT.search(found[1]):
            yield HINTS, found[1]


def slow_exponentials(ptx: str) -> int:
    """Exponentials that keep subnormal results: each takes a range test and two multiplications more."""
    return len(re.findall(r"\bex2\.approx\.f32\b", ptx))
