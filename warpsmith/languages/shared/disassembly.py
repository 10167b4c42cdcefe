"""Reading cubins with the disassemblers that Triton's package brings: instructions, and early starts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from warpsmith.languages.shared import tool
from warpsmith.packages import install_command

NEVER_WAITS = "starts before the kernel ahead has ended and never waits for it"

_SECONDS = 60.0
_TOOLS = ("nvdisasm", "cuobjdump")
_OPCODE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
_ALWAYS = ("HGMMA", "UTMALDG", "LDL")
"""Kinds that the summary names even with a count of zero."""
_REPORTED = re.compile(
    r"[HQI]GMMA|UTC\w*MMA|[HIQD]MMA|UTMALDG|UTMASTG|UTMAREDG|LDGSTS|LDSM|STSM|LDL|STL|ATOMG?|REDG?"
)
_WIDTHS = {"64", "128", "256", "U8", "S8", "U16", "S16"}
_BLOCK_THREADS = 1024

_WAIT = re.compile(r"\bgriddepcontrol\.wait\b|\bACQBULK\b")
"""Waits for the kernel ahead, in PTX and in SASS."""


def missing_triton() -> str | None:
    """Say in one sentence that Triton, which brings the disassemblers, is not installed; None if it is."""
    if find_spec("triton") is None:
        return f"The disassemblers come with Triton, which is missing: run `{install_command('triton')}`."
    return None


def missing_disassembler() -> str | None:
    """Name in one sentence the disassembler that is missing; None if both are there."""
    if lack := missing_triton():
        return lack
    from triton import knobs

    for name in _TOOLS:
        try:
            getattr(knobs.nvidia, name)
        except RuntimeError:
            variable = f"TRITON_{name.upper()}_PATH"
            return f"Triton's compiler has no `{name}` next to it: install the CUDA toolkit and set {variable}."
    return None


def disassemble(cubin: Path, options: Sequence[str] = ("-c", "-g")) -> str:
    """Return what nvdisasm prints of a cubin, by default SASS with the source lines of its instructions."""
    return _run("nvdisasm", *options, cubin)


def dump_cubin(cubin: Path, option: str) -> str:
    """Return what cuobjdump prints of a cubin: `-res-usage` for its resources, `-elf` for its sections."""
    return _run("cuobjdump", option, cubin)


def summarise_instructions(sass: str) -> str:
    """Return the kinds of instruction worth knowing, with their counts: `LDG.E.128 x4, HGMMA x0, LDL x0`."""
    counts: Counter[str] = Counter()
    for opcode in _OPCODE.findall(sass):
        base, *rest = opcode.split(".")
        if base in ("LDG", "STG"):
            counts[".".join([base, "E", *(part for part in rest if part in _WIDTHS)])] += 1
        elif _REPORTED.fullmatch(base):
            counts[base] += 1
    kinds = [*(kind for kind in sorted(counts) if kind not in _ALWAYS), *_ALWAYS]
    return ", ".join(f"{kind} x{counts[kind]}" for kind in kinds)


def early_start_notes(early: bool, assembly: str) -> list[str]:
    """Say if a kernel that is launched early waits for the kernel ahead of it; empty if it is not launched early.

    With programmatic dependent launch a kernel may start before the one ahead has ended. Unless it waits, what it
    reads may not be written yet, and what it writes may still be read.
    """
    if not early:
        return []
    return ["starts early" if _WAIT.search(assembly) else NEVER_WAITS]


def shared_memory_notes(needed: int | None, available: int, arch: str) -> list[str]:
    """Say if a block needs more shared memory, in bytes, than the device has; empty if not, or if not known."""
    if needed is None or needed <= available:
        return []
    return [f"needs {needed} bytes of shared memory, {arch} has {available}: it will not launch"]


def thread_notes(threads: int, arch: str) -> list[str]:
    """Say if a block has more threads than any device of today launches; empty if not."""
    if threads <= _BLOCK_THREADS:
        return []
    return [f"has {threads} threads a block, {arch} takes {_BLOCK_THREADS}: it will not launch"]


def _run(name: str, *arguments: str | Path) -> str:
    from triton import knobs

    return tool.run_tool([getattr(knobs.nvidia, name).path, *arguments], _SECONDS).output
