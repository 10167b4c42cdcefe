"""Assembly of a version: compiled without running it, counted by kind, with notices about suspicious counts."""

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
from warpsmith.profiling.assembly import amdgcn, notices, ptx, sass, x86
from warpsmith.profiling.assembly.carried import CarriedValue, find_carried_value, reads_new_addresses
from warpsmith.profiling.assembly.code import Instruction, Routine, find_loops
from warpsmith.profiling.assembly.models import (
    Assembly,
    AssemblyDiff,
    CompiledKernel,
    Count,
    FigureChange,
    KernelPair,
    LoadWait,
    Loop,
    SourceLine,
    count_kinds,
)
from warpsmith.profiling.assembly.notices import KernelContext
from warpsmith.project import Project

_MAX_LINES, _MAX_MEMORY_LINES = 10, 5


class _Isa(NamedTuple):
    """Classification of the instructions of one instruction set."""

    kind: Callable[[Instruction], tuple[str, str] | None]
    groups: Iterable[str]
    memory: Callable[[Instruction], bool]
    waits: Callable[[Sequence[Instruction]], bool]
    carried: Callable[[Sequence[Instruction]], CarriedValue | None] = lambda loop: None
    reads: Callable[[Sequence[Instruction]], bool] = lambda loop: False

    def count_kinds(self, code: Iterable[Instruction]) -> tuple[Count, ...]:
        return count_kinds((pair for instruction in code if (pair := self.kind(instruction))), self.groups)


_ISAS = {
    "sass": _Isa(sass.classify_sass, sass.GROUPS, sass.is_sass_memory, sass.is_sass_wait),
    "amdgcn": _Isa(amdgcn.classify_amdgcn, amdgcn.GROUPS, amdgcn.is_amdgcn_memory, amdgcn.is_amdgcn_wait),
    "x86": _Isa(
        x86.classify_x86, x86.GROUPS, x86.is_x86_memory, x86.is_x86_wait, find_carried_value, reads_new_addresses
    ),
}


def inspect_assembly(
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

    The default `workloads` are the representative ones; the default `keep` is `.warpsmith/assembly`.

    Raises:
        BuildFailed: the version does not compile, or launches nothing.
        MachineLacks: a compiler or a disassembler is missing.
        Misuse: the language has no assembly, or a workload or the architecture is unknown.
    """
    compiler = languages.get(language)
    if not isinstance(compiler, Assembles):
        raise Misuse(f"{source.name}: the language `{language}` shows no assembly.")
    selected = _chosen(definition, workloads)
    target = compiler.architecture(arch)
    folder = (keep or project.scratch / "assembly") / definition.name / language / source.stem
    listings = compiler.assembly(source, definition, selected, target, folder)
    kernels = tuple(read_assembly(listing, source, project) for listing in listings)
    return Assembly(
        op=definition.name,
        version=f"{language}/{source.stem}",
        solution_sha256=hashlib.sha256(source.read_bytes()).hexdigest(),
        arch=target,
        workloads=tuple(workload.name for workload in selected),
        folder=project.relative(folder),
        kernels=kernels,
        notices=notices.find_notices(
            [KernelContext(*pair, language, target, definition) for pair in zip(kernels, listings, strict=True)]
        ),
    )


def compare_assemblies(before: Assembly, after: Assembly) -> AssemblyDiff:
    """Compare two versions of one operator, by the kernels that serve the same workloads."""
    shared: dict[tuple[tuple[int, ...], tuple[int, ...]], list[str]] = {}
    for workload in after.workloads:
        if workload in before.workloads:
            sides = (_serving(before, workload), _serving(after, workload))
            shared.setdefault(sides, []).append(workload)
    pairs = []
    for (old, new), names in shared.items():
        rows = _rows(_figures(before, old), _figures(after, new))
        pairs.append(KernelPair(workloads=tuple(names), before=old, after=new, rows=rows))
    return AssemblyDiff(before=before, after=after, pairs=tuple(pairs))


def _chosen(definition: Definition, names: Sequence[str]) -> list[Workload]:
    chosen = []
    for name in names:
        workload = definition.find_workload(name)
        if workload is None:
            names_text = ", ".join(each.name for each in definition.workloads)
            raise Misuse(f"{definition.name} has no workload `{name}`; it has: {names_text}.")
        chosen.append(workload)
    return chosen or definition.select("representative")


def read_assembly(listing: Listing, source: Path, project: Project) -> CompiledKernel:
    """Read the assembly of a kernel: counts, loops, lines, waits."""
    ptx_text = listing.ptx.read_text(errors="replace") if listing.ptx else ""
    isa, routines = _ISAS[listing.isa], _routines(listing, ptx_text, source)
    code = [instruction for routine in routines for instruction in routine.code]
    hints = count_kinds(ptx.memory_hints(ptx_text), (ptx.HINTS,))
    return CompiledKernel(
        name=listing.kernel,
        workloads=listing.workloads,
        variant=listing.variant,
        isa=listing.isa,
        assembly=project.relative(listing.assembly),
        ptx=project.relative(listing.ptx) if listing.ptx else None,
        resources=listing.resources,
        instructions=len(code),
        counts=(*isa.count_kinds(code), *hints),
        loops=tuple(_loops(routines, isa)),
        lines=_lines(code, source, isa),
        block_warps=listing.block_warps,
        waits=tuple(_load_waits(routines)) if listing.isa == "amdgcn" else (),
    )


def _routines(listing: Listing, ptx_text: str, source: Path) -> list[Routine]:
    def inside(file: str) -> bool:
        return Path(file).name == source.name

    text = listing.assembly.read_text(errors="replace")
    if listing.isa == "x86":
        return x86.parse_x86(text, partial(_innermost, inside))
    if listing.isa == "amdgcn":
        return amdgcn.parse_amdgcn(text, ptx.source_lines(text, inside))
    line_by_ptx_line = ptx.source_lines(ptx_text, inside)

    def where(file: str, line: int, ptx_line: int | None) -> int | None:
        own = line if inside(file) and line else None
        return line_by_ptx_line.get(ptx_line, own) if ptx_line is not None else own

    return sass.parse_sass(text, where)


def _load_waits(routines: Iterable[Routine]) -> Iterator[LoadWait]:
    for routine in routines:
        every = [body.code for body in find_loops(routine.code, lambda _: False)]
        polls = {instruction.address for body in every if amdgcn.is_amdgcn_wait(body) for instruction in body}
        bodies = [body.code for body in find_loops(routine.code, amdgcn.is_amdgcn_wait) if body.innermost]
        in_loops = {instruction.address for body in bodies for instruction in body}
        outside = (wait for wait in amdgcn.memory_waits(routine.code) if wait.address not in in_loops | polls)
        waits = list(outside)
        for body in bodies:  # twice: what the first pass leaves in flight, the second waits for
            twice = {wait.address: wait for wait in amdgcn.memory_waits([*body, *body])}
            waits += twice.values()
        for wait in sorted(waits):
            yield LoadWait(
                line=wait.line,
                pending=wait.pending,
                distance=wait.distance,
                youngest=wait.youngest,
                in_loop=wait.address in in_loops,
            )


def _innermost(inside: Callable[[str], bool], chain: Sequence[tuple[str, int]]) -> int | None:
    return next((line for file, line in chain if inside(file) and line), None)


def _loops(routines: Iterable[Routine], isa: _Isa) -> Iterator[Loop]:
    first = 0
    for routine in routines:
        bodies = find_loops(routine.code, isa.waits)
        addresses = [{instruction.address for instruction in body.code} for body in bodies]
        for number, body in enumerate(bodies):
            around = [other for other, larger in enumerate(addresses) if addresses[number] < larger]
            outer = min(around, key=lambda other: len(addresses[other]), default=None)
            chain = isa.carried(body.code) if body.innermost else None
            yield Loop(
                line=body.line,
                innermost=body.innermost,
                instructions=len(body.code),
                counts=isa.count_kinds(body.code),
                routine=routine.name,
                outer=None if outer is None else first + outer,
                reads=isa.reads(body.code),
                serial_operations=chain.operations if chain else 0,
                scan=chain.stored if chain else False,
            )
        first += len(bodies)


def _lines(code: Iterable[Instruction], source: Path, isa: _Isa) -> tuple[SourceLine, ...]:
    """Return the lines with the most instructions; up to half of them are chosen by memory accesses."""
    text = source.read_text(errors="replace").splitlines()
    total: Counter[int] = Counter()
    memory: Counter[int] = Counter()
    for instruction in code:
        if instruction.line is not None and instruction.line <= len(text):
            total[instruction.line] += 1
            memory[instruction.line] += isa.memory(instruction)
    first = [line for line, accesses in memory.most_common(_MAX_MEMORY_LINES) if accesses]
    selected = list(dict.fromkeys([*first, *(line for line, _ in total.most_common())]))[:_MAX_LINES]
    return tuple(
        SourceLine(line=line, text=text[line - 1].strip(), instructions=total[line], memory=memory[line])
        for line in sorted(selected)
    )


def _serving(assembly: Assembly, workload: str) -> tuple[int, ...]:
    return tuple(number for number, kernel in enumerate(assembly.kernels, 1) if workload in kernel.workloads)


def _figures(assembly: Assembly, numbers: Sequence[int]) -> Counter[tuple[str, str]]:
    kernels = [assembly.kernels[number - 1] for number in numbers]
    figures: Counter[tuple[str, str]] = Counter()
    for name in ("registers", "shared_bytes", "spill_bytes"):
        values = [getattr(kernel.resources, name) for kernel in kernels]
        figures["resources", name] = max((value for value in values if value is not None), default=0)
    for kernel in kernels:
        figures["resources", "instructions"] += kernel.instructions
        figures["resources", "innermost loops"] += sum(loop.innermost for loop in kernel.loops)
        for count in kernel.counts:
            figures[count.group, count.kind] += count.count
        for count in (count for loop in kernel.loops if loop.innermost for count in loop.counts):
            figures["in innermost loops", count.group] += count.count
    return figures


def _rows(before: Counter[tuple[str, str]], after: Counter[tuple[str, str]]) -> tuple[FigureChange, ...]:
    keys = dict.fromkeys([*after, *before])
    order = {group: rank for rank, group in enumerate(dict.fromkeys(group for group, _ in keys))}
    return tuple(
        FigureChange(group=group, kind=kind, before=before[group, kind], after=after[group, kind])
        for group, kind in sorted(keys, key=lambda key: order[key[0]])
        if before[group, kind] != after[group, kind]
    )
