"""What deserves a look in the counts of a kernel's instructions, each with the knowledge entry that says more."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from warpsmith.core.definition import Definition
from warpsmith.languages.base import Listing
from warpsmith.profiling.assembly import ptx as assembly_ptx
from warpsmith.profiling.assembly import sass as assembly_sass
from warpsmith.profiling.assembly.models import Count, Kernel, Loop, Notice

_WIDE = 128
_MANY_BARRIERS = 2
_CHAIN = 4
_DOUBLE = re.compile(r"2[ps]d$|(?:add|sub|mul|div)sd$")


class Seen(NamedTuple):
    """A kernel and what is known of how it was made."""

    kernel: Kernel
    listing: Listing
    language: str
    arch: str
    definition: Definition

    @property
    def triton(self) -> bool:
        """Whether it is written in Triton."""
        return self.language == "triton"

    @property
    def double(self) -> bool:
        """Whether an argument is in double precision, so that fp64 is no accident."""
        specs = [*self.definition.tensor_inputs.values(), *self.definition.outputs.values()]
        return any(
            self.definition.dtype(spec, workload) == "float64"
            for workload in self.definition.workloads
            if workload.name in self.kernel.workloads
            for spec in specs
        )


Found = tuple[str, str]
"""The sentence, and the entry's id."""


def notices(kernels: Sequence[Seen]) -> tuple[Notice, ...]:
    """What deserves a look, one notice for all kernels that it is true of."""
    found: dict[Found, list[int]] = {}
    for place, seen in enumerate(kernels, 1):
        for rule in _RULES[seen.kernel.isa]:
            if said := rule(seen):
                found.setdefault(said, []).append(place)
    return tuple(Notice(kernels=tuple(places), text=text, entry=entry) for (text, entry), places in found.items())


def _narrow(group: str, words: str) -> Callable[[Seen], Found | None]:
    def rule(seen: Seen) -> Found | None:
        widths: Counter[int] = Counter()
        for count in seen.kernel.counts:
            if count.group == group or (group == "global loads" and count.kind.startswith("LDGSTS")):
                widths[assembly_sass.width(count.kind)] += count.count
            if count.kind.startswith(("UTMALDG", "UBLKCP")):
                return None  # tiles come as bulk copies; what is left are scalars
        narrow = Counter({bits: count for bits, count in widths.items() if bits < _WIDE})
        if 2 * narrow.total() <= widths.total() or 3 * _moved(narrow) < _moved(widths):
            return None  # a few scalars beside rows in wide pieces
        if group == "global stores" and narrow.total() <= 2:
            return None  # a result or two a block
        said = f"most {words} move {narrow.most_common(1)[0][0]} bits"
        if seen.triton and seen.listing.unaligned:
            names = ", ".join(seen.listing.unaligned)
            why = f"rows or strides not provably aligned: {names} not known as a multiple of 16"
            return f"{said}: {why}", "triton-constexpr-specialisation-of-strides"
        why = "fewer than 16 bytes a thread, or an index that is not contiguous"
        return f"{said}: {why}", "vectorized-memory-access"

    return rule


def _moved(widths: Counter[int]) -> int:
    return sum(bits * count for bits, count in widths.items())


def _local_memory(seen: Seen) -> Found | None:
    if not (seen.kernel.total("local memory") or seen.kernel.resources.spill_bytes):
        return None
    return "local memory: registers spill, or an array is indexed at run time", "register-spills"


def _no_tensor_cores(seen: Seen) -> Found | None:
    if not seen.listing.matrix_product or seen.kernel.total("tensor cores"):
        return None
    return "no tensor-core instruction, although a matrix product is in the source", "tensor-core-use"


def _old_tensor_cores(seen: Seen) -> Found | None:
    kinds = [count.kind for count in seen.kernel.counts if count.group == "tensor cores"]
    if not kinds or seen.arch != "sm_90a" or not all(kind.startswith("HMMA") for kind in kinds):
        return None
    return (
        "HMMA on Hopper: only HGMMA, by a warpgroup of 4 warps and 64 rows, reaches the full rate",
        "tensor-core-use",
    )


def _tf32(seen: Seen) -> Found | None:
    if not seen.triton or not any("TF32" in count.kind for count in seen.kernel.counts):
        return None
    return "TF32 tensor-core instructions: float32 operands are rounded to 10 bits", "triton-default-tf32-dot"


def _not_pipelined(seen: Seen) -> Found | None:
    if _of(seen.kernel.counts, "async copies"):
        return None
    if not any(
        _of(loop.counts, "tensor cores") and _of(loop.counts, "global loads") for loop in seen.kernel.loops
    ):
        return None
    entry = "triton-num-stages-pipelining" if seen.triton else "software-pipelining-async-copy"
    return "tiles pass through registers in the loop of the tensor cores: no asynchronous copy", entry


def _double(seen: Seen) -> Found | None:
    if seen.double or not seen.kernel.total("fp64"):
        return None
    return "fp64 instructions, although no argument is float64", "fp64-by-accident"


def _atomics_in_loop(seen: Seen) -> Found | None:
    if not any(_of(loop.counts, "atomics") for loop in seen.kernel.loops):
        return None
    return "atomics in a loop", "atomics-contention-single-address"


def _float_atomics(seen: Seen) -> Found | None:
    kinds = [count.kind for count in seen.kernel.counts if count.group == "atomics"]
    if not seen.triton or not any(re.search(r"\.B?F(16|32|64)", kind) for kind in kinds):
        return None
    return (
        "floating-point atomics: the order of additions differs between runs",
        "triton-atomic-add-nondeterminism",
    )


def _barriers_in_loop(seen: Seen) -> Found | None:
    for loop in seen.kernel.loops:
        barriers = sum(count.count for count in loop.counts if count.kind.startswith("BAR."))
        if loop.innermost and barriers > _MANY_BARRIERS:
            where = f"{barriers} block barriers in the loop{_at([loop])}"
            if seen.triton and _of(loop.counts, "shuffles"):
                return f"{where}: each pass ends in a reduction over the block", "triton-accumulators-per-thread"
            return where, "excess-synchronization"
    return None


def _exponentials(seen: Seen) -> Found | None:
    ptx = seen.listing.ptx.read_text(errors="replace") if seen.listing.ptx else ""
    if not seen.triton or not assembly_ptx.slow_exponentials(ptx):
        return None
    return "exponentials with a range test and two multiplications each", "triton-exp2-instead-of-exp"


def _scalar_loops(seen: Seen) -> Found | None:
    inner = [loop for loop in seen.kernel.loops if loop.innermost]
    packed = {loop.line for loop in inner if _packed(loop)}
    scalar = [loop for loop in inner if _scalar(loop) and loop.line not in packed]
    if not scalar:
        return None
    return f"scalar arithmetic alone in the innermost loop{_at(scalar)}", "simd-vectorization"


def _serial_chain(seen: Seen) -> Found | None:
    """The compiler calls such a loop vectorised."""
    chains = [
        loop for loop in seen.kernel.loops
        if loop.innermost and _packed(loop)
        and sum(count.count for count in loop.counts if re.match(r"v?adds[sd]", count.kind)) >= _CHAIN
    ]  # fmt: skip
    if not chains:
        return None
    return (
        f"packed operations, then scalar additions in order, in the loop{_at(chains)}",
        "cpp-serial-float-reduction-chain",
    )


def _calls_in_loop(seen: Seen) -> Found | None:
    calling = [loop for loop in seen.kernel.loops if loop.innermost and _of(loop.counts, "calls")]
    if not calling:
        return None
    names = sorted({count.kind for loop in calling for count in loop.counts if count.group == "calls"})
    return f"calls of {', '.join(names[:3])} in the innermost loop{_at(calling)}", "simd-vectorization"


def _double_in_loop(seen: Seen) -> Found | None:
    inner = [loop for loop in seen.kernel.loops if loop.innermost]
    double = [loop for loop in inner if any(_DOUBLE.search(count.kind) for count in loop.counts)]
    if seen.double or not double:
        return None
    said = f"double precision in the innermost loop{_at(double)}, although no argument is float64"
    return said, "fp64-by-accident"


def _packed(loop: Loop) -> int:
    return _of(loop.counts, "packed arithmetic", "packed integer") + sum(
        count.count for count in loop.counts if count.group == "multiply-add" and count.kind != "scalar"
    )


def _scalar(loop: Loop) -> int:
    fused = sum(c.count for c in loop.counts if c.group == "multiply-add" and c.kind == "scalar")
    return 0 if _packed(loop) else fused + _of(loop.counts, "scalar arithmetic")


def _of(counts: Iterable[Count], *groups: str) -> int:
    return sum(count.count for count in counts if count.group in groups)


def _at(loops: Iterable[Loop]) -> str:
    lines = sorted({loop.line for loop in loops if loop.line is not None})
    return f" at line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}" if lines else ""


_RULES: dict[str, tuple[Callable[[Seen], Found | None], ...]] = {
    "sass": (
        _local_memory, _no_tensor_cores, _old_tensor_cores, _not_pipelined,
        _narrow("global loads", "global loads"), _narrow("global stores", "global stores"),
        _double, _barriers_in_loop, _atomics_in_loop, _float_atomics, _tf32, _exponentials,
    ),
    "x86": (_serial_chain, _scalar_loops, _calls_in_loop, _double_in_loop),
}  # fmt: skip
