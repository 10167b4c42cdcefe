"""The assembly of a version as text: one table of counts, then loops, lines and what deserves a look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from warpsmith.cli import console
from warpsmith.profiling.assembly.models import Assembly, AssemblyDiff, Count, Kernel, Loop, Pair, Row

_ROWS = 28
_LOOPS = 6
_KINDS = 10
_TEXT = 90
_WIDTH = 400
"""As wide as its content: what an agent reads is not cut to the width of a pipe."""

_MINOR = {
    "barriers", "shuffles", "special functions", "conversions", "fp32", "branches", "cache hints (PTX)",
    "scalar load moves", "scalar store moves", "lane moves", "calls", "packed integer",
}  # fmt: skip
"""Groups that are summed up first where the table is too long."""

_NAMED = {"scalar arithmetic", "streaming stores", "conversions", "lane moves"}
"""Groups of a CPU whose kinds are instructions; the kinds of the others are widths."""

Cells = Sequence[str]


def show(assembly: Assembly) -> None:
    """A version: its kernels, their counts side by side, loops, lines and notices."""
    kernels = assembly.kernels
    console.out(f"{assembly.op} {assembly.version} for {assembly.arch}, in {assembly.folder}")
    _print(
        [
            "",
            "kernel",
            "at",
            f"compiled for{' (/16: a known multiple of 16)' if kernels[0].isa == 'sass' else ''}",
        ],
        [_head(place, kernel) for place, kernel in enumerate(kernels, 1)],
    )
    for note in _notes(assembly):
        console.out(note)
    columns = ["count"] if len(kernels) == 1 else [str(place) for place in range(1, len(kernels) + 1)]
    _print(["", "", *columns], [*_resources(kernels), *_counts(kernels)])
    loops = list(_loops(kernels))
    if loops:
        _print(["", "innermost loop", "instructions", "of which"], loops[:_LOOPS])
    if len(loops) > _LOOPS:
        console.out(f"and {len(loops) - _LOOPS} more: --json")
    for place, kernel in _one_a_name(kernels):
        name = kernel.name if len(kernels) == 1 else f"{kernel.name} ({place})"
        if kernel.lines:
            _print(["line", "instructions", "memory", name], list(_lines(kernel)))
    for notice in assembly.notices:
        where = f"{', '.join(map(str, notice.kernels))}: " if len(kernels) > 1 else ""
        console.out(f"look: {where}{notice.text} (warpsmith knowledge show {notice.entry})")


def show_diff(found: AssemblyDiff) -> None:
    """Two versions: one column for each pair of kernels that serve the same workloads; the rows that differ."""
    before, after = found.before, found.after
    console.out(f"{after.op} {before.version} -> {after.version} for {after.arch}")
    heads = [
        [str(place), _names(before, pair.before), _names(after, pair.after), ", ".join(pair.workloads)]
        for place, pair in enumerate(found.pairs, 1)
    ]
    _print(["", before.version, after.version, "at"], heads)
    rows = list(_differences(found.pairs))
    if not rows:
        console.out("no count differs")
        return
    _print(["", "", *(str(place) for place in range(1, len(found.pairs) + 1))], rows)


def _head(place: int, kernel: Kernel) -> Cells:
    return [str(place), kernel.name, ", ".join(kernel.workloads), kernel.variant]


def _notes(assembly: Assembly) -> Iterator[str]:
    """What the compiler's report says beyond the counts."""
    launched = {name for kernel in assembly.kernels for name in kernel.workloads}
    if idle := [name for name in assembly.workloads if name not in launched]:
        yield f"launches no kernel of its own at: {', '.join(idle)}"
    for place, kernel in enumerate(assembly.kernels, 1):
        # The first two notes of a GPU kernel are its counts and its launch options once more.
        for note in kernel.resources.notes[2 if kernel.isa == "sass" else 0 :]:
            yield f"{place}: {note}" if len(assembly.kernels) > 1 else note


def _resources(kernels: Sequence[Kernel]) -> Iterator[Cells]:
    names = ("registers", "shared_bytes", "spill_bytes", "vectorized_loops", "missed_loops")
    for name in names:
        values = [getattr(kernel.resources, name) for kernel in kernels]
        if any(value is not None for value in values):
            yield [name.replace("_", " "), "", *("-" if value is None else str(value) for value in values)]
    yield ["instructions", "", *(str(kernel.instructions) for kernel in kernels)]
    yield ["loops", "", *(str(len(kernel.loops)) for kernel in kernels)]


def _counts(kernels: Sequence[Kernel]) -> list[Cells]:
    """One row a kind; where that is too long, fewer kinds a group and the rest of it in one row."""
    for major, minor in ((9, 9), (9, 3), (9, 2), (5, 1), (3, 1), (1, 1)):
        rows = list(_limited(kernels, major, minor))
        if len(rows) <= _ROWS:
            break
    return rows


def _limited(kernels: Sequence[Kernel], major: int, minor: int) -> Iterator[Cells]:
    table: dict[str, dict[str, list[int]]] = {}
    for place, kernel in enumerate(kernels):
        for count in kernel.counts:
            row = table.setdefault(count.group, {}).setdefault(count.kind, [0] * len(kernels))
            row[place] = count.count
    for group, rows in _ordered(table, kernels):
        kinds = minor if group in _MINOR else major
        ranked = sorted(rows.items(), key=lambda item: -sum(item[1]))
        shown = ranked if len(ranked) <= kinds else ranked[: kinds - 1]
        for place, (kind, values) in enumerate(shown):
            yield [group if place == 0 else "", kind, *(str(value or "") for value in values)]
        if rest := ranked[len(shown) :]:
            total = [sum(values) for values in zip(*(values for _, values in rest), strict=True)]
            kind = f"{len(rest)} other kinds" if shown else f"{len(rest)} kinds"
            yield ["" if shown else group, kind, *(str(value or "") for value in total)]


def _ordered(
    table: dict[str, dict[str, list[int]]], kernels: Sequence[Kernel]
) -> Iterator[tuple[str, dict[str, list[int]]]]:
    """The groups in the order of the kernels' own counts, though no kernel may have them all."""
    from warpsmith.profiling.assembly import ptx as assembly_ptx
    from warpsmith.profiling.assembly import sass as assembly_sass
    from warpsmith.profiling.assembly import x86 as assembly_x86

    order = [*assembly_sass.GROUPS, assembly_ptx.HINTS] if kernels[0].isa == "sass" else assembly_x86.GROUPS
    return ((group, table[group]) for group in order if group in table)


def _loops(kernels: Sequence[Kernel]) -> Iterator[Cells]:
    for place, kernel in enumerate(kernels, 1):
        for loop in sorted((loop for loop in kernel.loops if loop.innermost), key=lambda loop: -loop.instructions):
            where = f"line {loop.line}" if loop.line else "no line"
            yield [str(place) if len(kernels) > 1 else "", where, str(loop.instructions), _body(loop, kernel.isa)]


def _body(loop: Loop, isa: str) -> str:
    """The kinds that tell one loop from another."""
    kinds = [_kind(count, isa) for count in loop.counts if count.group not in ("branches", "calls")]
    return ", ".join(kinds[:_KINDS])


def _kind(count: Count, isa: str) -> str:
    named = count.kind if isa == "sass" or count.group in _NAMED else f"{count.group} {count.kind}"
    return f"{named} x{count.count}"


def _lines(kernel: Kernel) -> Iterator[Cells]:
    for line in kernel.lines:
        yield [str(line.line), str(line.instructions), str(line.memory), line.text[:_TEXT]]


def _one_a_name(kernels: Sequence[Kernel]) -> Iterator[tuple[int, Kernel]]:
    """Of each kernel's specialisations the largest."""
    for name in dict.fromkeys(kernel.name for kernel in kernels):
        own = [(place, kernel) for place, kernel in enumerate(kernels, 1) if kernel.name == name]
        yield max(own, key=lambda item: item[1].instructions)


def _names(assembly: Assembly, places: Sequence[int]) -> str:
    return ", ".join(assembly.kernels[place - 1].name for place in places) or "-"


def _differences(pairs: Sequence[Pair]) -> Iterator[Cells]:
    found: dict[tuple[str, str], dict[int, Row]] = {}
    for place, pair in enumerate(pairs):
        for row in pair.rows:
            found.setdefault((row.group, row.kind), {})[place] = row
    groups = dict.fromkeys(group for group, _ in found)
    for group in groups:
        own = [(kind, cells) for (of, kind), cells in found.items() if of == group]
        for place, (kind, cells) in enumerate(own):
            shown = (f"{cells[at].before} -> {cells[at].after}" if at in cells else "" for at in range(len(pairs)))
            yield [group if place == 0 else "", kind.replace("_", " ") if group == "resources" else kind, *shown]


def _print(columns: Sequence[str], rows: Sequence[Cells]) -> None:
    table = Table(*columns, box=None, pad_edge=False, header_style="")
    for row in rows:
        table.add_row(*map(Text, row))
    shown = Console(width=_WIDTH, color_system=None)
    with shown.capture() as captured:
        shown.print(table)
    console.out("\n".join(line.rstrip() for line in captured.get().splitlines()))
