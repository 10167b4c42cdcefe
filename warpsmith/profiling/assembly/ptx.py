"""PTX as Triton writes it: the cache operators that SASS abbreviates, and the source line of each line, of AMD's
assembly as well."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

HINTS = "cache hints (PTX)"
"""Group of memory instructions with a cache operator or an eviction hint."""

_LOC = re.compile(r"^\s*\.loc\s+\d+\s+\d+\s+\d+.*?(?://|;)\s*(.*)$")
_PLACE = re.compile(r"([^\s\[\]@]+?):(\d+):\d+")
_MEMORY = re.compile(r"^\s*\{?\s*(?:@!?%p\d+\s+)?((?:ld|st|cp|prefetch|createpolicy)\.[\w.:]+)")
_HINT = re.compile(r"\.(?:c[agsv]|lu|w[bt]|nc|volatile)(?=\.|$)|L[12]::|^createpolicy|^prefetch")


def source_lines(assembly: str, inside: Callable[[str], bool]) -> dict[int, int]:
    """Map each line of PTX or amdgcn to the source line of its innermost call in a file that is `inside`.

    Inlined code names the chain of its callers in a comment, which begins with `;` in amdgcn:
    `.loc 2 191 40 // standard.py:191:40 @[ v1.py:19:44 ]`.
    """
    lines: dict[int, int] = {}
    line = 0
    for number, text in enumerate(assembly.splitlines(), start=1):
        if chain := _LOC.match(text):
            own = (int(number_text) for file, number_text in _PLACE.findall(chain[1]) if inside(file))
            line = next(own, 0)
        elif line:
            lines[number] = line
    return lines


def memory_hints(ptx: str) -> Iterator[tuple[str, str]]:
    """Yield memory instructions with a cache operator or an eviction hint, with their group."""
    for text in ptx.splitlines():
        match = _MEMORY.match(text)
        if match and _HINT.search(match[1]):
            yield HINTS, match[1]


def count_slow_exponentials(ptx: str) -> int:
    """Count exponentials that preserve subnormal results: each adds a range test and two multiplications."""
    return len(re.findall(r"\bex2\.approx\.f32\b", ptx))
