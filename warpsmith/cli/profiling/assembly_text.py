"""Print the assembly of a version: one table of counts, then loops, lines and notices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpsmith.cli import console
from warpsmith.core.arithmetic.occupancy import MultiprocessorLimits
from warpsmith.profiling.assembly.models import (
    Assembly,
    AssemblyDiff,
    CompiledKernel,
    Count,
    FigureChange,
    KernelPair,
    Loop,
    kernel_occupancy,
)

_ROWS = 28
_LOOPS = 6
_KINDS = 10
_TEXT = 90
_MINOR = {
    "barriers", "shuffles", "special functions", "conversions", "fp32", "branches", "cache hints (PTX)",
    "scalar load moves", "scalar store moves", "lane moves", "calls", "packed integer", "waits", "scalar loads",
    "accumulator moves",
}  # fmt: skip
"""Groups that are summed first if the table is too long."""

_INSTRUCTION_GROUPS = {"scalar arithmetic", "streaming stores", "conversions", "lane moves"}
"""Groups of a CPU whose kinds are instructions; the kinds of other groups are widths."""

Cells = Sequence[str]


def print_assembly(assembly: Assembly, limits: MultiprocessorLimits | None = None) -> None:
    """Print a version: its kernels, their counts side by side, loops, waits, lines and notices.

    With the limits of a multiprocessor, the occupancy that they allow is among the counts.
    """
    kernels = assembly.kernels
    console.out(f"{assembly.op} {assembly.version} for {assembly.arch}, in {assembly.folder}")
    console.out_table(
        [
            "",
            "kernel",
            "at",
            f"compiled for{' (/16: a known multiple of 16)' if kernels[0].isa != 'x86' else ''}",
        ],
        [_head(index, kernel) for index, kernel in enumerate(kernels, 1)],
    )
    for note in _notes(assembly):
        console.out(note)
    columns = ["count"] if len(kernels) == 1 else [str(index) for index in range(1, len(kernels) + 1)]
    console.out_table(
        ["", "", *columns], [*_resources(kernels), *_occupancies(kernels, limits), *_counts(kernels)]
    )
    loops = list(_loops(kernels))
    if loops:
        console.out_table(["", "innermost loop", "instructions", "of which"], loops[:_LOOPS])
    if len(loops) > _LOOPS:
        console.out(f"and {len(loops) - _LOOPS} more: --json")
    waits = list(_waits(kernels))
    if waits:
        console.out_table(
            ["", "wait for loads", "in flight after it", "instructions since what it waits for"], waits[:_LOOPS]
        )
    for index, kernel in _largest_of_each_name(kernels):
        name = kernel.name if len(kernels) == 1 else f"{kernel.name} ({index})"
        if kernel.lines:
            console.out_table(["line", "instructions", "memory", name], list(_lines(kernel)))
    for notice in assembly.notices:
        location = f"{', '.join(map(str, notice.kernels))}: " if len(kernels) > 1 else ""
        console.out(f"look: {location}{notice.text} (warpsmith knowledge show {notice.entry})")


def print_assembly_diff(diff: AssemblyDiff) -> None:
    """Print two versions: one column for each pair of kernels with the same workloads, and the changed rows."""
    before, after = diff.before, diff.after
    console.out(f"{after.op} {before.version} -> {after.version} for {after.arch}")
    heads = [
        [str(index), _names(before, pair.before), _names(after, pair.after), ", ".join(pair.workloads)]
        for index, pair in enumerate(diff.pairs, 1)
    ]
    console.out_table(["", before.version, after.version, "at"], heads)
    rows = list(_differences(diff.pairs))
    if not rows:
        console.out("no count differs")
        return
    console.out_table(["", "", *(str(index) for index in range(1, len(diff.pairs) + 1))], rows)


def _head(index: int, kernel: CompiledKernel) -> Cells:
    return [str(index), kernel.name, ", ".join(kernel.workloads), kernel.variant]


def _notes(assembly: Assembly) -> Iterator[str]:
    """Yield the facts of the compiler's report that are not counts."""
    launched = {name for kernel in assembly.kernels for name in kernel.workloads}
    if idle := [name for name in assembly.workloads if name not in launched]:
        yield f"launches no kernel of its own at: {', '.join(idle)}"
    for index, kernel in enumerate(assembly.kernels, 1):
        for note in kernel.resources.notes:
            if (kernel.isa == "sass" and note == kernel.resources.notes[0]) or note.startswith("num_warps "):
                continue  # repeats the counts, or the launch options
            yield f"{index}: {note}" if len(assembly.kernels) > 1 else note


def _resources(kernels: Sequence[CompiledKernel]) -> Iterator[Cells]:
    names = ("registers", "shared_bytes", "spill_bytes", "vectorized_loops", "missed_loops")
    for name in names:
        values = [getattr(kernel.resources, name) for kernel in kernels]
        if any(value is not None for value in values):
            yield [name.replace("_", " "), "", *("-" if value is None else str(value) for value in values)]
    yield ["instructions", "", *(str(kernel.instructions) for kernel in kernels)]
    yield ["loops", "", *(str(len(kernel.loops)) for kernel in kernels)]


def _occupancies(kernels: Sequence[CompiledKernel], limits: MultiprocessorLimits | None) -> Iterator[Cells]:
    """Yield the row of resident warps, if the launches and the device's limits are known."""
    occupancies = [limits and kernel_occupancy(kernel, limits) for kernel in kernels]
    if limits and all(occupancies):
        cells = (f"{o.warps}, by {o.limit}" for o in occupancies if o)
        yield ["resident warps", f"of {limits.warps}", *cells]


def _waits(kernels: Sequence[CompiledKernel]) -> Iterator[Cells]:
    """Yield the waits for loads, those in innermost loops first, and those with the shortest distance first."""
    waits = [(not wait.in_loop, wait.distance, index, wait) for index, kernel in enumerate(kernels, 1)
             for wait in kernel.waits]  # fmt: skip
    for outside, distance, index, wait in sorted(waits, key=lambda item: item[:3]):
        location = f"line {wait.line}" if wait.line else "no line"
        yield [
            str(index) if len(kernels) > 1 else "",
            f"{location}{'' if outside else ', in a loop'}",
            str(wait.pending or "none"),
            f"{distance}{'' if wait.youngest == 'load' else f', after {wait.youngest}'}",
        ]


def _counts(kernels: Sequence[CompiledKernel]) -> list[Cells]:
    """Return one row for each kind; if that is too long, fewer kinds a group and one row for the others."""
    for major, minor in ((9, 9), (9, 3), (9, 2), (5, 1), (3, 1), (1, 1)):
        rows = list(_limited_rows(kernels, major, minor))
        if len(rows) <= _ROWS:
            break
    return rows


def _limited_rows(kernels: Sequence[CompiledKernel], major: int, minor: int) -> Iterator[Cells]:
    table: dict[str, dict[str, list[int]]] = {}
    for index, kernel in enumerate(kernels):
        for count in kernel.counts:
            row = table.setdefault(count.group, {}).setdefault(count.kind, [0] * len(kernels))
            row[index] = count.count
    for group, rows in _ordered_groups(table, kernels):
        kinds = minor if group in _MINOR else major
        ranked = sorted(rows.items(), key=lambda item: -sum(item[1]))
        visible = ranked if len(ranked) <= kinds else ranked[: kinds - 1]
        for index, (kind, values) in enumerate(visible):
            yield [group if index == 0 else "", kind, *(str(value or "") for value in values)]
        if rest := ranked[len(visible) :]:
            total = [sum(values) for values in zip(*(values for _, values in rest), strict=True)]
            kind = f"{len(rest)} other kinds" if visible else f"{len(rest)} kinds"
            yield ["" if visible else group, kind, *(str(value or "") for value in total)]


def _ordered_groups(
    table: dict[str, dict[str, list[int]]], kernels: Sequence[CompiledKernel]
) -> Iterator[tuple[str, dict[str, list[int]]]]:
    """Return the groups in the order of a kernel's counts, even if no kernel has all of them."""
    from warpsmith.profiling.assembly import amdgcn as assembly_amdgcn
    from warpsmith.profiling.assembly import ptx as assembly_ptx
    from warpsmith.profiling.assembly import sass as assembly_sass
    from warpsmith.profiling.assembly import x86 as assembly_x86

    orders = {
        "sass": [*assembly_sass.GROUPS, assembly_ptx.HINTS],
        "amdgcn": [*assembly_amdgcn.GROUPS],
        "x86": [*assembly_x86.GROUPS],
    }
    order = orders[kernels[0].isa]
    return ((group, table[group]) for group in order if group in table)


def _loops(kernels: Sequence[CompiledKernel]) -> Iterator[Cells]:
    for index, kernel in enumerate(kernels, 1):
        for loop in sorted((loop for loop in kernel.loops if loop.innermost), key=lambda loop: -loop.instructions):
            location = f"line {loop.line}" if loop.line else "no line"
            yield [
                str(index) if len(kernels) > 1 else "",
                location,
                str(loop.instructions),
                _body(loop, kernel.isa),
            ]


def _body(loop: Loop, isa: str) -> str:
    """Return the kinds that distinguish one loop from another."""
    kinds = [_kind(count, isa) for count in loop.counts if count.group not in ("branches", "calls")]
    return ", ".join(kinds[:_KINDS])


def _kind(count: Count, isa: str) -> str:
    kind = count.kind if isa != "x86" or count.group in _INSTRUCTION_GROUPS else f"{count.group} {count.kind}"
    return f"{kind} x{count.count}"


def _lines(kernel: CompiledKernel) -> Iterator[Cells]:
    for line in kernel.lines:
        yield [str(line.line), str(line.instructions), str(line.memory), line.text[:_TEXT]]


def _largest_of_each_name(kernels: Sequence[CompiledKernel]) -> Iterator[tuple[int, CompiledKernel]]:
    """Yield the largest specialization of each kernel name, with its number."""
    for name in dict.fromkeys(kernel.name for kernel in kernels):
        own = [(index, kernel) for index, kernel in enumerate(kernels, 1) if kernel.name == name]
        yield max(own, key=lambda item: item[1].instructions)


def _names(assembly: Assembly, indices: Sequence[int]) -> str:
    return ", ".join(assembly.kernels[index - 1].name for index in indices) or "-"


def _differences(pairs: Sequence[KernelPair]) -> Iterator[Cells]:
    changes: dict[tuple[str, str], dict[int, FigureChange]] = {}
    for index, pair in enumerate(pairs):
        for row in pair.rows:
            changes.setdefault((row.group, row.kind), {})[index] = row
    for group in dict.fromkeys(group for group, _ in changes):
        rows = [(kind, cells) for (name, kind), cells in changes.items() if name == group]
        for number, (kind, cells) in enumerate(rows):
            columns = (f"{cells[i].before} -> {cells[i].after}" if i in cells else "" for i in range(len(pairs)))
            label = kind.replace("_", " ") if group == "resources" else kind
            yield [group if number == 0 else "", label, *columns]
