"""Report of a cuTile kernel, read from its cubin."""

from __future__ import annotations

import re
from pathlib import Path

from warpsmith.core.evaluation import Resources
from warpsmith.languages.shared.disassembly import disassemble, dump_cubin, summarise_instructions

_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
_THREADS = re.compile(r"EIATTR_REQNTID\s+Format:\s+\w+\s+Value:\s+0x([0-9a-f]+)")


def cubin_report(cubin: Path, kernel: str, note: str, sass: str | None = None) -> Resources:
    """Return registers, shared memory, spills, kinds of instruction and threads a block of a cubin's one kernel.

    Args:
        cubin: the file.
        kernel: the function's name in the source.
        note: the kernel's hints to the compiler.
        sass: its disassembly, if there is one already.
    """
    usage = _USAGE.search(dump_cubin(cubin, "-res-usage"))
    threads = _THREADS.search(dump_cubin(cubin, "-elf"))
    launch = f"{int(threads[1], 16)} threads a block, {note}" if threads else note
    return Resources(
        kernel=kernel,
        registers=int(usage[1]) if usage else None,
        shared_bytes=int(usage[3]) if usage else None,
        spill_bytes=int(usage[2]) + int(usage[4]) if usage else None,
        notes=(summarise_instructions(disassemble(cubin) if sass is None else sass), launch),
    )
