"""What a cubin says of its kernel, read with the tools beside Triton's compiler."""

from __future__ import annotations

import re
from pathlib import Path

from warpsmith.core.evaluation import Resources
from warpsmith.languages.shared import tool
from warpsmith.languages.triton.compile import instructions

_SECONDS = 60.0
_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
_THREADS = re.compile(r"EIATTR_REQNTID\s+Format:\s+\w+\s+Value:\s+0x([0-9a-f]+)")


def lacking() -> str | None:
    """The tool that is not there, in one sentence; None: both are."""
    for name in ("nvdisasm", "cuobjdump"):
        try:
            _tool(name)
        except (ImportError, RuntimeError):
            return f"`{name}` is not there: pip install 'warpsmith[triton]', whose compiler brings it."
    return None


def disassembled(cubin: Path) -> str:
    """Its SASS, with the places in the source that instructions come from."""
    return tool.run([_tool("nvdisasm"), "-c", "-g", cubin], _SECONDS).output


def report(cubin: Path, kernel: str, note: str, sass: str | None = None) -> Resources:
    """Registers, shared memory, spills, kinds of instruction and threads a block of its one kernel.

    Args:
        cubin: the file.
        kernel: the function's name in the source.
        note: what the compiler was told.
        sass: its disassembly, where it was made already.
    """
    usage = _USAGE.search(tool.run([_tool("cuobjdump"), "-res-usage", cubin], _SECONDS).output)
    threads = _THREADS.search(tool.run([_tool("cuobjdump"), "-elf", cubin], _SECONDS).output)
    launched = f"{int(threads[1], 16)} threads a block, {note}" if threads else note
    return Resources(
        kernel=kernel,
        registers=int(usage[1]) if usage else None,
        shared_bytes=int(usage[3]) if usage else None,
        spill_bytes=int(usage[2]) + int(usage[4]) if usage else None,
        notes=(instructions(disassembled(cubin) if sass is None else sass), launched),
    )


def _tool(name: str) -> str:
    from triton import knobs

    return str(getattr(knobs.nvidia, name).path)
