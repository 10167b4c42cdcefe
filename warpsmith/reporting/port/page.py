"""Lines, page and files of a port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from warpsmith import files, languages
from warpsmith.core.port.check import LaunchFigures
from warpsmith.port import store
from warpsmith.port.advice import advise_constants
from warpsmith.port.models import PortedKernel, PortRecord, PortTarget
from warpsmith.project import Project
from warpsmith.reporting import format
from warpsmith.reporting.format import Md
from warpsmith.reporting.templating import fill_template

COLUMNS = ("target", "arch", "outcome", "kernels", "registers", "spill bytes", "shared bytes", "resident warps")
"""Columns of the table of targets."""

_KERNEL_COLUMNS = (
    "kernel", "at", "num_warps", "registers", "spill bytes", "shared bytes", "resident warps", "loads",
    "instructions", "matrix instructions",
)  # fmt: skip
_MATRIX_GROUPS = ("tensor cores", "matrix cores")


def target_rows(record: PortRecord) -> list[tuple[str, ...]]:
    """Return a row of `COLUMNS` for the origin and each target, one of them if they are the same."""
    return [_target_row(target) for target in _devices(record)]


def numerics_line(record: PortRecord) -> str:
    """Describe in one line what the interpreter showed."""
    numerics = record.numerics
    skipped = (
        f"; {format.count_noun(numerics.skipped, 'workload')} need a GPU (bfloat16)" if numerics.skipped else ""
    )
    at = f"{format.count_noun(len(numerics.workloads), 'workload')}"
    match numerics.state:
        case "correct":
            return f"numerics: correct by the interpreter at {at}{skipped}"
        case "failed":
            return f"numerics: FAILED by the interpreter: {numerics.reason}"
        case _:
            return f"numerics: unchecked: {numerics.reason or 'not asked for'}{skipped}"


def target_lines(target: PortTarget, record: PortRecord) -> Iterator[str]:
    """Yield what readers should know of a target: errors, losses, what will not launch, constants to try."""
    if target.error:
        yield f"refused: {target.error}"
    if target.lacks:
        yield f"lacks {', '.join(target.lacks)}{'' if target.losses else '; the version uses none'}"
    yield from (f"loses {loss}" for loss in target.losses)
    for kernel in target.kernels:
        if kernel.own.obstacle:
            yield f"{_kernel_name(kernel)} {kernel.own.obstacle}"
    for kernel in target.kernels:
        # From the figures, not the record's words: the rule may be younger than the record.
        advices = advise_constants(kernel.own, kernel.changed, target.most_warps)
        yield from (f"try at {_kernel_name(kernel)}: {advice}" for advice in advices)
    if target.warp_size == 64 != record.origin.warp_size and target.kernels:
        yield "a wave has 64 threads: num_warps 4 are 256 threads; half the version's num_warps keeps its threads"
    yield from (f"look: {note}" for note in target.notes)


def head_line(record: PortRecord) -> str:
    """Return what was compiled, and that nothing was timed."""
    standing = f"accepted on {record.accepted_on}" if record.accepted_on else "accepted nowhere"
    return f"{record.definition} {record.solution}, {standing}: compiled without a device; UNTIMED"


def port_page(record: PortRecord) -> str:
    """Render the page of a port, `port.md`."""
    return fill_template(
        "port",
        port=record,
        language=languages.get(record.solution.split("/")[0]).title,
        head=head_line(record),
        numerics=numerics_line(record),
        checked=", ".join(record.numerics.workloads),
        columns=_row(COLUMNS),
        rules=Md("|".join("---" for _ in COLUMNS)),
        rows=[_row(map(_cell, cells)) for cells in target_rows(record)],
        sections=[
            {
                "title": _title(target),
                "lines": list(target_lines(target, record)),
                "columns": _row(_KERNEL_COLUMNS),
                "rules": Md("|".join("---" for _ in _KERNEL_COLUMNS)),
                "rows": [_row(map(_cell, _kernel_row(kernel, target))) for kernel in target.kernels],
            }
            for target in _devices(record)
        ],
    )


def write_port(project: Project, record: PortRecord) -> Path:
    """Write a port with its page atomically; return its folder under `devlog/<op>/ports/`."""
    folder = store.next_port_folder(project, record.definition)
    content: dict[str, str | bytes] = {
        store.RECORD: record.model_dump_json(indent=1) + "\n",
        store.PAGE: port_page(record),
    }
    files.publish_folder(content, folder)
    return folder


def render_ports(project: Project, op: str) -> dict[Path, str]:
    """Render the page of every port of an operator; a port with an invalid record keeps its own."""
    pages = {}
    for path in store.list_port_records(project, op):
        record = store.read_port(path)
        if isinstance(record, PortRecord):
            pages[path.with_name(store.PAGE)] = port_page(record)
    return pages


def _devices(record: PortRecord) -> list[PortTarget]:
    """Return the origin, unless it is a target too, and the targets."""
    return [*(() if record.origin in record.targets else (record.origin,)), *record.targets]


def _target_row(target: PortTarget) -> tuple[str, ...]:
    own = [kernel.own for kernel in target.kernels]
    return (
        target.target or format.ABSENT,
        target.arch,
        target.outcome,
        str(len(own)) if own else format.ABSENT,
        _span(figures.registers for figures in own),
        _span(figures.spill_bytes for figures in own),
        _span(figures.shared_bytes for figures in own),
        _warps(own, target.most_warps),
    )


def _kernel_row(kernel: PortedKernel, target: PortTarget) -> tuple[str, ...]:
    own = kernel.own
    matrix = [f"{count.kind} x{count.count}" for count in kernel.counts if count.group in _MATRIX_GROUPS]
    warps = _warps([own], target.most_warps)
    return (
        kernel.name,
        ", ".join(kernel.workloads),
        str(own.num_warps),
        str(own.registers),
        str(own.spill_bytes),
        str(own.shared_bytes),
        f"{warps}, by {own.limit}" if own.limit else warps,
        f"{own.load_bits} bits" if own.load_bits else format.ABSENT,
        str(kernel.instructions),
        ", ".join(matrix) or format.ABSENT,
    )


def _span(values: Iterable[int]) -> str:
    numbers = sorted(values)
    if not numbers:
        return format.ABSENT
    return str(numbers[0]) if numbers[0] == numbers[-1] else f"{numbers[0]} to {numbers[-1]}"


def _warps(figures: Sequence[LaunchFigures], most: int | None) -> str:
    resident = [each.resident_warps for each in figures if each.resident_warps is not None]
    return f"{_span(resident)} of {most}" if resident and most else format.ABSENT


def _title(target: PortTarget) -> str:
    return f"{target.arch}, as on {target.target}" if target.target else target.arch


def _kernel_name(kernel: PortedKernel) -> str:
    more = f" and {len(kernel.workloads) - 1} more" if len(kernel.workloads) > 1 else ""
    return f"{kernel.name} ({kernel.workloads[0]}{more})"


def _cell(text: str) -> str:
    return text if text == format.ABSENT else format.inline(text)


def _row(cells: Iterable[str]) -> Md:
    return Md(" | ".join(cells))
