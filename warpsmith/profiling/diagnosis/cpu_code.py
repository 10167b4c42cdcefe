"""Facts that the code of a CPU version shows: calls, serial sums, scans, missed loops, passes and threads."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from warpsmith.profiling.assembly.models import Assembly, Loop

ISSUE = 4
"""Instructions that a core is taken to start in a cycle. Costs weigh loops against each other and are no times."""

LATENCY = 4
"""Cycles from a floating-point addition to one that needs its result."""

CALL = 20
"""Cycles that a call of a scalar math function is taken to cost."""

_SCALAR = ("scalar arithmetic", "multiply-add", "divide and root")
_TYPES = {"double": "float64", "float": "float32", "half": "float16", "float16": "float16", "bfloat16": "bfloat16"}
_ARGUMENTS = re.compile(r"<([^<>()]*)>")
_LANES = {"zmm": 16, "ymm": 8, "xmm": 4}
_USUAL_LANES = 8
_MATH = re.compile(
    r"(?:a?(?:sin|cos|tan)h?|atan2|sincos|exp(?:2|10|m1)?|log(?:2|10|1p)?|pow|cbrt|hypot|erfc?|[lt]gamma|fmod|remainder"
    r"|floor|ceil|trunc|round|rint|nearbyint|fma|sqrt|fmax|fmin|ldexp)[fl]?"
)
_THREADS = re.compile(
    r"#\s*pragma\s+omp\b[^\n]*\b(?:parallel|teams)\b|\bstd::(?:j?thread|async)\b|\bpthread_create\b"
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TAIL = re.compile(r"\bfor\s*\(\s*;|\bwhile\b")
_SIZE = re.compile(r"\bnumel\s*\(")
_CLONE = re.compile(r" \[clone .*|\._omp_fn\.\d+.*|\.omp_outlined.*")
_CALLS = re.compile(rf"it calls ({_MATH.pattern})")
_NOTE = re.compile(r"line (\d+): not vectorized(?: for every type)?: (.+)")


@dataclass(frozen=True)
class CodeFacts:
    """Facts that the code of a version shows, with source lines."""

    calls: Mapping[str, int]
    """Scalar math function to the number of its calls in innermost loops, the most frequent first."""
    call_lines: tuple[int, ...]
    """Lines of the loops with these calls."""
    serial_lines: tuple[int, ...]
    """Lines of the loops that reduce one number after another, also where the compiler says `vectorized`."""
    scan_lines: tuple[int, ...]
    """Lines of the loops that store a result of each step, which the next step needs."""
    missed: Mapping[int, str]
    """Line of every other loop that was not vectorised to the compiler's reason."""
    passes: int
    """Loops over the same data inside one loop, one after another."""
    sweeps: int
    """Loops over all of the data, one after another."""
    parallel_regions: int
    """Places in the source that start threads."""
    streams: bool
    """True if the code has stores that pass the caches by."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """Estimated share of the loops' time that each cause costs: `calls`, `serial`, `scan`, `missed`."""


def read_source(source: str, notes: Iterable[str]) -> CodeFacts:
    """Read the facts that the source and the compiler's report show, where there is no assembly for x86-64."""
    missed = {int(match[1]): match[2] for note in notes if (match := _NOTE.match(note))}
    called = {line: match[1] for line, reason in missed.items() if (match := _CALLS.fullmatch(reason))}
    return CodeFacts(
        calls=dict(Counter(called.values()).most_common()),
        call_lines=tuple(sorted(called)),
        serial_lines=(),
        scan_lines=(),
        missed={line: reason for line, reason in missed.items() if line not in called},
        passes=0,
        sweeps=0,
        parallel_regions=_parallel_regions(source),
        streams=False,
    )


def read_code(assembly: Assembly, source: str, dtypes: Collection[str]) -> CodeFacts:
    """Read the facts from a version's assembly for x86-64 and its source.

    Args:
        assembly: its assembly.
        source: its text.
        dtypes: data types of the workloads; copies of a template for other types are left out.
    """
    text = source.splitlines()
    groups: dict[tuple[str, int | None], list[Loop]] = defaultdict(list)
    for number, kernel in enumerate(assembly.kernels):
        for loop in _main_loops([loop for loop in kernel.loops if _serves(loop.routine, dtypes)], text):
            groups[f"{number} {loop.routine}", loop.outer].append(loop)
    loops = [loop for group in groups.values() for loop in group]
    missed = _missed(assembly, loops)
    return CodeFacts(
        calls=_total_calls(loops),
        call_lines=_lines(loop for loop in loops if _math_calls(loop)),
        serial_lines=_lines(loop for loop in loops if _cause(loop, missed) == "serial"),
        scan_lines=_lines(loop for loop in loops if _cause(loop, missed) == "scan"),
        missed=missed,
        passes=max((len({loop.line for loop in group if loop.reads}) for group in groups.values()), default=0),
        sweeps=_sweeps(assembly, text),
        parallel_regions=_parallel_regions(source),
        streams=any(kernel.total("streaming stores") for kernel in assembly.kernels),
        shares=_shares(groups.values(), missed),
    )


def _parallel_regions(source: str) -> int:
    return len(_THREADS.findall(_COMMENT.sub("", source)))


def _main_loops(loops: Sequence[Loop], text: Sequence[str]) -> list[Loop]:
    """Return the innermost loops without the tails of vectorised ones: the same line, or a hand-written tail."""
    inner = [loop for loop in loops if loop.innermost and _is_written_in(text, loop)]
    packed = {(loop.routine, loop.line) for loop in inner if loop.packed}
    main: list[Loop] = []
    for loop in inner:
        if not loop.packed and (loop.routine, loop.line) in packed:
            continue
        before = main[-1] if main and (main[-1].routine, main[-1].outer) == (loop.routine, loop.outer) else None
        if before and before.packed and not loop.packed and _TAIL.search(text[(loop.line or 1) - 1]):
            continue
        main.append(loop)
    return main


def _is_written_in(text: Sequence[str], loop: Loop) -> bool:
    """Return whether a loop comes from a line of the version; `numel` of the header has a loop over the axes."""
    return loop.line is not None and loop.line <= len(text) and not _SIZE.search(text[loop.line - 1])


def _math_calls(loop: Loop) -> dict[str, int]:
    return {
        count.kind: count.count for count in loop.counts if count.group == "calls" and _MATH.fullmatch(count.kind)
    }


def _total_calls(loops: Sequence[Loop]) -> dict[str, int]:
    """Add up calls over lines; of the copies of a line, such as a template's, the one with the most counts."""
    largest: Counter[tuple[int | None, str]] = Counter()
    for loop in loops:
        for name, count in _math_calls(loop).items():
            largest[loop.line, name] = max(largest[loop.line, name], count)
    total: Counter[str] = Counter()
    for (_, name), count in largest.items():
        total[name] += count
    return dict(total.most_common())


def _cause(loop: Loop, missed: Mapping[int, str]) -> str:
    """Return the first cause that holds a loop back: `calls`, `scan`, `serial`, `missed`, or an empty text."""
    if _math_calls(loop):
        return "calls"
    if loop.scan:
        return "" if loop.packed else "scan"
    if loop.serial_operations > (1 if loop.packed else 0):
        return "serial"
    return "missed" if not loop.packed and loop.line in missed else ""


def _missed(assembly: Assembly, loops: Sequence[Loop]) -> dict[int, str]:
    """Return line and reason of the loops without packed arithmetic that nothing else explains."""
    matches = [_NOTE.match(note) for kernel in assembly.kernels for note in kernel.resources.notes]
    reasons = {int(match[1]): match[2] for match in matches if match}
    scalar = [loop for loop in loops if loop.reads and not (loop.packed or _cause(loop, {}))]
    lines = {loop.line for loop in scalar if loop.line in reasons or loop.total(*_SCALAR)}
    return {line: reasons.get(line, "no reason given") for line in sorted(filter(None, lines))}


def _serves(routine: str, dtypes: Collection[str]) -> bool:
    """Return whether a routine is no copy of a template, or one for a type of the workloads."""
    types = _ARGUMENTS.search(routine)
    copy_types = {_TYPES[word] for word in re.findall(r"\w+", types[1] if types else "") if word in _TYPES}
    return not copy_types or not copy_types.isdisjoint(dtypes)


def _lines(loops: Iterable[Loop]) -> tuple[int, ...]:
    return tuple(sorted({loop.line for loop in loops if loop.line is not None}))


def _sweeps(assembly: Assembly, text: Sequence[str]) -> int:
    """Count the outermost loops of one function, its parallel regions included, that read memory."""
    sweeps: dict[str, set[tuple[str, int | None]]] = defaultdict(set)
    for kernel in assembly.kernels:
        for loop in kernel.loops:
            if loop.outer is None and loop.reads and _is_written_in(text, loop):
                sweeps[_CLONE.sub("", loop.routine)].add((loop.routine, loop.line))
    return max(map(len, sweeps.values()), default=0)


def _cycles(loop: Loop) -> tuple[float, float]:
    """Return the cycles for one element as the loop stands, and as a vectorised loop would need."""
    widths = [_LANES.get(c.kind, 0) for c in loop.counts if c.group in ("packed arithmetic", "multiply-add")]
    lanes = (max(widths, default=0) or _USUAL_LANES) if loop.packed else 1
    issue = loop.instructions / ISSUE
    elements = loop.serial_operations if loop.packed and loop.serial_operations else 1
    latency = LATENCY * loop.serial_operations / elements
    current = max(issue / lanes, latency) + CALL * sum(_math_calls(loop).values())
    return current, issue / max(lanes, _USUAL_LANES)


def _shares(groups: Iterable[Sequence[Loop]], missed: Mapping[int, str]) -> dict[str, float]:
    """Return the share of each cause in the loops that cost the most, a template's copies apart."""
    largest, shares = 0.0, dict[str, float]()
    for group in groups:
        costs = [(_cause(loop, missed), *_cycles(loop)) for loop in group]
        total = sum(current for _, current, _ in costs)
        if total > largest:
            largest = total
            shares = {
                cause: sum(current - vectorised for name, current, vectorised in costs if name == cause) / total
                for cause in dict.fromkeys(name for name, _, _ in costs if name)
            }
    return shares
