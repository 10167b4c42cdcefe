"""The assembly of a version: compiled without running it, counted, and what in the counts deserves a look."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from warpsmith import languages
from warpsmith.core.definition import Definition, Workload
from warpsmith.errors import Misuse
from warpsmith.languages.base import Assembles, Listing
from warpsmith.profiling.assembly import (
    code as assembly_code,
)
from warpsmith.profiling.assembly import (
    notices as assembly_notices,
)
from warpsmith.profiling.assembly import (
    ptx as assembly_ptx,
)
from warpsmith.profiling.assembly import (
    sass as assembly_sass,
)
from warpsmith.profiling.assembly import (
    x86 as assembly_x86,
)
from warpsmith.profiling.assembly.code import Instruction, Routine
from warpsmith.profiling.assembly.models import (
    Assembly,
    AssemblyDiff,
    Count,
    Kernel,
    Line,
    Loop,
    Pair,
    Row,
    counts,
)
from warpsmith.profiling.assembly.notices import Seen
from warpsmith.project import Project

_LINES, _BY_MEMORY = 10, 5


class _Isa(NamedTuple):
    """How one kind of assembly is counted."""

    kind: Callable[[Instruction], tuple[str, str] | None]
    groups: Iterable[str]
    memory: Callable[[Instruction], bool]
    waits: Callable[[Sequence[Instruction]], bool]

    def counted(self, code: Iterable[Instruction]) -> tuple[Count, ...]:
        return counts((found for instruction in code if (found := self.kind(instruction))), self.groups)


_ISAS = {
    "sass": _Isa(assembly_sass.kind, assembly_sass.GROUPS, assembly_sass.memory, assembly_sass.waits),
    "x86": _Isa(assembly_x86.kind, assembly_x86.GROUPS, assembly_x86.memory, assembly_x86.waits),
}


def examine(
    project: Project,
    source: Path,
    language: str,
    definition: Definition,
    *,
    arch: str | None = None,
    workloads: Sequence[str] = (),
    keep: Path | None = None,
) -> Assembly:
    """Compile a version and read its assembly, which is left in `<keep>/<op>/<language>/<version>/`.

    Without `workloads` the representative ones are looked at; without `keep` it is `.warpsmith/assembly`.

    Raises:
        BuildFailed: the version does not compile, or launches nothing.
        MachineLacks: a compiler or a disassembler is missing.
        Misuse: the language shows no assembly, or a workload or the architecture is unknown.
    """
    compiler = languages.get(language)
    if not isinstance(compiler, Assembles):
        raise Misuse(f"{source.name}: the language `{language}` shows no assembly.")
    chosen = _chosen(definition, workloads)
    target = compiler.architecture(arch)
    folder = (keep or project.root / ".warpsmith" / "assembly") / definition.name / language / source.stem
    listings = compiler.assembly(source, definition, chosen, target, folder)
    kernels = tuple(_kernel(listing, source, project) for listing in listings)
    return Assembly(
        op=definition.name,
        version=f"{language}/{source.stem}",
        solution_sha256=hashlib.sha256(source.read_bytes()).hexdigest(),
        arch=target,
        workloads=tuple(workload.name for workload in chosen),
        folder=project.relative(folder),
        kernels=kernels,
        notices=assembly_notices.notices(
            [Seen(*made, language, target, definition) for made in zip(kernels, listings, strict=True)]
        ),
    )


def compare(before: Assembly, after: Assembly) -> AssemblyDiff:
    """Two versions of one operator, by the kernels that serve the same workloads."""
    shared: dict[tuple[tuple[int, ...], tuple[int, ...]], list[str]] = {}
    for workload in after.workloads:
        if workload in before.workloads:
            sides = (_serving(before, workload), _serving(after, workload))
            shared.setdefault(sides, []).append(workload)
    pairs = []
    for (old, new), names in shared.items():
        rows = _rows(_figures(before, old), _figures(after, new))
        pairs.append(Pair(workloads=tuple(names), before=old, after=new, rows=rows))
    return AssemblyDiff(before=before, after=after, pairs=tuple(pairs))


def _chosen(definition: Definition, names: Sequence[str]) -> list[Workload]:
    known = {workload.name: workload for workload in definition.workloads}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Misuse(f"{definition.name} has no workload `{unknown[0]}`; it has: {', '.join(known)}.")
    return [known[name] for name in names] if names else definition.select("representative")


def _kernel(listing: Listing, source: Path, project: Project) -> Kernel:
    ptx = listing.ptx.read_text(errors="replace") if listing.ptx else ""
    isa, routines = _ISAS[listing.isa], _routines(listing, ptx, source)
    code = [instruction for routine in routines for instruction in routine.code]
    hints = counts(assembly_ptx.hints(ptx), (assembly_ptx.HINTS,))
    return Kernel(
        name=listing.kernel,
        workloads=listing.workloads,
        variant=listing.variant,
        isa=listing.isa,
        assembly=project.relative(listing.assembly),
        ptx=project.relative(listing.ptx) if listing.ptx else None,
        resources=listing.resources,
        instructions=len(code),
        counts=(*isa.counted(code), *hints),
        loops=tuple(_loops(routines, isa)),
        lines=_lines(code, source, isa),
    )


def _routines(listing: Listing, ptx: str, source: Path) -> list[Routine]:
    def inside(file: str) -> bool:
        return Path(file).name == source.name

    text = listing.assembly.read_text(errors="replace")
    if listing.isa == "x86":
        return assembly_x86.read(text, partial(_innermost, inside))
    places = assembly_ptx.places(ptx, inside)

    def where(file: str, line: int, at: int | None) -> int | None:
        own = line if inside(file) and line else None
        return places.get(at, own) if at is not None else own

    return assembly_sass.read(text, where)


def _innermost(inside: Callable[[str], bool], chain: Sequence[tuple[str, int]]) -> int | None:
    return next((line for file, line in chain if inside(file) and line), None)


def _loops(routines: Iterable[Routine], isa: _Isa) -> Iterator[Loop]:
    for routine in routines:
        for body in assembly_code.loops(routine.code, isa.waits):
            yield Loop(
                line=body.line,
                innermost=body.innermost,
                instructions=len(body.code),
                counts=isa.counted(body.code),
            )


def _lines(code: Iterable[Instruction], source: Path, isa: _Isa) -> tuple[Line, ...]:
    """The lines with the most instructions; up to half of them for their memory accesses."""
    text = source.read_text(errors="replace").splitlines()
    total: Counter[int] = Counter()
    memory: Counter[int] = Counter()
    for instruction in code:
        if instruction.line is not None and instruction.line <= len(text):
            total[instruction.line] += 1
            memory[instruction.line] += isa.memory(instruction)
    first = [line for line, accesses in memory.most_common(_BY_MEMORY) if accesses]
    kept = list(dict.fromkeys([*first, *(line for line, _ in total.most_common())]))[:_LINES]
    return tuple(
        Line(line=line, text=text[line - 1].strip(), instructions=total[line], memory=memory[line])
        for line in sorted(kept)
    )


def _serving(assembly: Assembly, workload: str) -> tuple[int, ...]:
    return tuple(place for place, kernel in enumerate(assembly.kernels, 1) if workload in kernel.workloads)


def _figures(assembly: Assembly, places: Sequence[int]) -> Counter[tuple[str, str]]:
    kernels = [assembly.kernels[place - 1] for place in places]
    found: Counter[tuple[str, str]] = Counter()
    for name in ("registers", "shared_bytes", "spill_bytes"):
        values = [getattr(kernel.resources, name) for kernel in kernels]
        found["resources", name] = max((value for value in values if value is not None), default=0)
    for kernel in kernels:
        found["resources", "instructions"] += kernel.instructions
        found["resources", "innermost loops"] += sum(loop.innermost for loop in kernel.loops)
        for count in kernel.counts:
            found[count.group, count.kind] += count.count
        for count in (count for loop in kernel.loops if loop.innermost for count in loop.counts):
            found["in innermost loops", count.group] += count.count
    return found


def _rows(before: Counter[tuple[str, str]], after: Counter[tuple[str, str]]) -> tuple[Row, ...]:
    keys = dict.fromkeys([*after, *before])
    order = {group: place for place, group in enumerate(dict.fromkeys(group for group, _ in keys))}
    return tuple(
        Row(group=group, kind=kind, before=before[group, kind], after=after[group, kind])
        for group, kind in sorted(keys, key=lambda key: order[key[0]])
        if before[group, kind] != after[group, kind]
    )
