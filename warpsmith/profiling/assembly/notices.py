"""Notices: suspicious patterns in a kernel's instruction
counts, each with the knowledge entry that explains it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from warpsmith import languages
from warpsmith.core.definition import Definition
from warpsmith.languages.base import LanguageNotice, Listing
from warpsmith.profiling.assembly import amdgcn as assembly_amdgcn
from warpsmith.profiling.assembly import ptx as assembly_ptx
from warpsmith.profiling.assembly import sass as assembly_sass
from warpsmith.profiling.assembly.models import CompiledKernel, Loop, Notice

_WIDE_BITS = 128
_MANY_BARRIERS = 2
_CHAIN_LENGTH = 4
_FEW_INSTRUCTIONS = 8
_BARRIER = ("BAR.", "s_barrier")
_FLOAT_ATOMIC = re.compile(r"\.B?F(?:16|32|64)|atomic_\w+_b?f(?:16|32|64)$")
_DOUBLE = re.compile(r"2[ps]d$|(?:add|sub|mul|div)sd$")


class KernelContext(NamedTuple):
    """A kernel with the facts that it was compiled from."""

    kernel: CompiledKernel
    listing: Listing
    language: str
    arch: str
    definition: Definition

    def language_entry(self, notice: LanguageNotice) -> str | None:
        """Return the knowledge entry with the language's own remedy for a notice; None if it has none."""
        return languages.get(self.language).notice_entries.get(notice)

    @property
    def double(self) -> bool:
        """True if an argument is float64, so that fp64 arithmetic is expected."""
        specs = [*self.definition.tensor_inputs.values(), *self.definition.outputs.values()]
        return any(
            self.definition.dtype(spec, workload) == "float64"
            for workload in self.definition.workloads
            if workload.name in self.kernel.workloads
            for spec in specs
        )


NoticeText = tuple[str, str]
"""Sentence of a notice, and the id of its knowledge entry."""


def find_notices(kernels: Sequence[KernelContext]) -> tuple[Notice, ...]:
    """Return the notices, one for all kernels that it is true of."""
    kernels_by_notice: dict[NoticeText, list[int]] = {}
    for number, context in enumerate(kernels, 1):
        for rule in _RULES[context.kernel.isa]:
            if notice := rule(context):
                kernels_by_notice.setdefault(notice, []).append(number)
    return tuple(
        Notice(kernels=tuple(places), text=text, entry=entry)
        for (text, entry), places in kernels_by_notice.items()
    )


def access_widths(kernel: CompiledKernel, group: str) -> Counter[int]:
    """Return the accesses of a group by the bits that each moves for a thread; async copies are loads."""
    access_bits = assembly_amdgcn.amdgcn_access_bits if kernel.isa == "amdgcn" else assembly_sass.access_bits
    widths: Counter[int] = Counter()
    for count in kernel.counts:
        if count.group == group or (group == "global loads" and count.kind.startswith("LDGSTS")):
            widths[access_bits(count.kind)] += count.count
    return widths


def _narrow(group: str, words: str) -> Callable[[KernelContext], NoticeText | None]:
    def rule(context: KernelContext) -> NoticeText | None:
        widths = access_widths(context.kernel, group)
        if any(count.kind.startswith(("UTMALDG", "UBLKCP")) for count in context.kernel.counts):
            return None  # tiles come as bulk copies; the other loads are of scalars
        narrow = Counter({bits: count for bits, count in widths.items() if bits < _WIDE_BITS})
        if 2 * narrow.total() <= widths.total() or 3 * _total_bits(narrow) < _total_bits(widths):
            return None  # a few scalar accesses next to wide accesses to rows
        if group == "global stores" and narrow.total() <= 2:
            return None  # one or two results a block
        sentence = f"most {words} move {narrow.most_common(1)[0][0]} bits"
        entry = context.language_entry("unaligned")
        if entry and context.listing.unaligned:
            names = ", ".join(context.listing.unaligned)
            cause = f"rows or strides not provably aligned: {names} not known as a multiple of 16"
            return f"{sentence}: {cause}", entry
        cause = "fewer than 16 bytes a thread, or an index that is not contiguous"
        return f"{sentence}: {cause}", "vectorized-memory-access"

    return rule


def _total_bits(widths: Counter[int]) -> int:
    return sum(bits * count for bits, count in widths.items())


def _local_memory(context: KernelContext) -> NoticeText | None:
    if not (context.kernel.total("local memory", "scratch") or context.kernel.resources.spill_bytes):
        return None
    return "local memory: registers spill, or an array is indexed at run time", "register-spills"


def _no_tensor_cores(context: KernelContext) -> NoticeText | None:
    if not context.listing.matrix_product or context.kernel.total("tensor cores", "matrix cores"):
        return None
    return "no tensor-core instruction, although a matrix product is in the source", "tensor-core-use"


def _old_tensor_cores(context: KernelContext) -> NoticeText | None:
    kinds = [count.kind for count in context.kernel.counts if count.group == "tensor cores"]
    if not kinds or context.arch != "sm_90a" or not all(kind.startswith("HMMA") for kind in kinds):
        return None
    return (
        "HMMA on Hopper: only HGMMA, by a warpgroup of 4 warps and 64 rows, reaches the full rate",
        "tensor-core-use",
    )


def _tf32(context: KernelContext) -> NoticeText | None:
    entry = context.language_entry("tf32")
    if entry is None or not any("TF32" in count.kind for count in context.kernel.counts):
        return None
    return "TF32 tensor-core instructions: float32 operands are rounded to 10 bits", entry


def _not_pipelined(context: KernelContext) -> NoticeText | None:
    if context.kernel.total("async copies"):
        return None
    if not any(loop.total("tensor cores") and loop.total("global loads") for loop in context.kernel.loops):
        return None
    entry = context.language_entry("unpipelined") or "software-pipelining-async-copy"
    return "tiles pass through registers in the loop of the tensor cores: no asynchronous copy", entry


def _bare_latency(context: KernelContext) -> NoticeText | None:
    """Report loops that wait for a load right after it was issued, whatever may stay in flight."""
    near = [wait for wait in context.kernel.waits if wait.in_loop and wait.distance < _FEW_INSTRUCTIONS]
    waits = [wait for wait in near if wait.youngest == "load"]
    if not waits:
        return None
    lines = sorted({wait.line for wait in waits if wait.line is not None})
    where = f" at line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}" if lines else ""
    entry = context.language_entry("unpipelined") or "software-pipelining-async-copy"
    return f"a loop waits for its loads right after it issues them{where}: nothing hides the latency", entry


def _double(context: KernelContext) -> NoticeText | None:
    if context.double or not context.kernel.total("fp64"):
        return None
    return "fp64 instructions, although no argument is float64", "fp64-by-accident"


def _atomics_in_loop(context: KernelContext) -> NoticeText | None:
    if not any(loop.total("atomics") for loop in context.kernel.loops):
        return None
    return "atomics in a loop", "atomics-contention-single-address"


def _float_atomics(context: KernelContext) -> NoticeText | None:
    kinds = [count.kind for count in context.kernel.counts if count.group == "atomics"]
    entry = context.language_entry("float atomics")
    if entry is None or not any(_FLOAT_ATOMIC.search(kind) for kind in kinds):
        return None
    return "floating-point atomics: the order of additions differs between runs", entry


def _barriers_in_loop(context: KernelContext) -> NoticeText | None:
    for loop in context.kernel.loops:
        barriers = sum(count.count for count in loop.counts if count.kind.startswith(_BARRIER))
        if loop.innermost and barriers > _MANY_BARRIERS:
            sentence = f"{barriers} block barriers in the loop{_lines_text([loop])}"
            entry = context.language_entry("block reductions")
            if entry and loop.total("shuffles", "lane moves"):
                return f"{sentence}: each pass ends in a reduction over the block", entry
            return sentence, "excess-synchronization"
    return None


def _exponentials(context: KernelContext) -> NoticeText | None:
    ptx = context.listing.ptx.read_text(errors="replace") if context.listing.ptx else ""
    entry = context.language_entry("slow exponentials")
    if entry is None or not assembly_ptx.count_slow_exponentials(ptx):
        return None
    return "exponentials with a range test and two multiplications each", entry


def _integer_division(context: KernelContext) -> NoticeText | None:
    """Report a reciprocal between two conversions, which is how an integer is divided."""
    loops = [loop for loop in context.kernel.loops if loop.innermost and _divisions(loop)]
    if not loops:
        return None
    count = sum(map(_divisions, loops))
    sentence = f"{count} integer division{'s' if count > 1 else ''} in the innermost loop{_lines_text(loops)}"
    return (
        f"{sentence}: each is a conversion, a reciprocal and a conversion back",
        "fewer-instructions-per-element",
    )


def _divisions(loop: Loop) -> int:
    """Return the integer divisions of a loop: conversions rounded up, reciprocals and truncations go together."""

    def count(kinds: str) -> int:
        return sum(item.count for item in loop.counts if re.fullmatch(kinds, item.kind))

    return min(count(r"I2F(?:\.\w+)*\.RP"), count(r"MUFU\.RCP(?:64H)?"), count(r"F2I(?:\.\w+)*\.TRUNC(?:\.\w+)*"))


def _scalar_loops(context: KernelContext) -> NoticeText | None:
    inner = [loop for loop in context.kernel.loops if loop.innermost]
    packed = {loop.line for loop in inner if loop.packed}
    scalar = [loop for loop in inner if _scalar(loop) and loop.line not in packed]
    if not scalar:
        return None
    return f"scalar arithmetic alone in the innermost loop{_lines_text(scalar)}", "simd-vectorization"


def _serial_chain(context: KernelContext) -> NoticeText | None:
    """Report a vectorized loop that still adds scalars one after another; the compiler calls it vectorized."""
    chains = [loop for loop in context.kernel.loops if loop.packed and loop.serial_operations >= _CHAIN_LENGTH]
    entry = context.language_entry("serial additions")
    if entry is None or not chains:
        return None
    return f"packed operations, then scalar additions in order, in the loop{_lines_text(chains)}", entry


def _calls_in_loop(context: KernelContext) -> NoticeText | None:
    calling = [loop for loop in context.kernel.loops if loop.innermost and loop.total("calls")]
    if not calling:
        return None
    names = sorted({count.kind for loop in calling for count in loop.counts if count.group == "calls"})
    return f"calls of {', '.join(names[:3])} in the innermost loop{_lines_text(calling)}", "simd-vectorization"


def _double_in_loop(context: KernelContext) -> NoticeText | None:
    inner = [loop for loop in context.kernel.loops if loop.innermost]
    double = [loop for loop in inner if any(_DOUBLE.search(count.kind) for count in loop.counts)]
    if context.double or not double:
        return None
    sentence = f"double precision in the innermost loop{_lines_text(double)}, although no argument is float64"
    return sentence, "fp64-by-accident"


def _scalar(loop: Loop) -> int:
    fused = sum(c.count for c in loop.counts if c.group == "multiply-add" and c.kind == "scalar")
    return 0 if loop.packed else fused + loop.total("scalar arithmetic")


def _lines_text(loops: Iterable[Loop]) -> str:
    lines = sorted({loop.line for loop in loops if loop.line is not None})
    return f" at line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}" if lines else ""


_RULES: dict[str, tuple[Callable[[KernelContext], NoticeText | None], ...]] = {
    "sass": (
        _local_memory, _no_tensor_cores, _old_tensor_cores, _not_pipelined,
        _narrow("global loads", "global loads"), _narrow("global stores", "global stores"),
        _double, _integer_division, _barriers_in_loop, _atomics_in_loop, _float_atomics, _tf32, _exponentials,
    ),
    "amdgcn": (
        _local_memory, _no_tensor_cores, _bare_latency,
        _narrow("global loads", "global loads"), _narrow("global stores", "global stores"),
        _double, _barriers_in_loop, _atomics_in_loop, _float_atomics,
    ),
    "x86": (_serial_chain, _scalar_loops, _calls_in_loop, _double_in_loop),
}  # fmt: skip
