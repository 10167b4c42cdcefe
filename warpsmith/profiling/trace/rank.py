"""Class of the bottleneck of a traced script, and Amdahl's ranking of its possible improvements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from warpsmith.profiling.trace import names as trace_names
from warpsmith.profiling.trace.models import Attackable, Bound, Copies, Family, Gaps, Parts, TracedKernel
from warpsmith.profiling.trace.slices import Slice

MAX_ROWS = 12
"""Largest number of rows of the ranking."""

LEAST_SHARE = 0.01
"""Share of the wall time below which an improvement gets no row."""

_ATTACK: dict[Family, str] = {
    "matrix-product": "precision, shapes, layout; fuse what follows",
    "convolution": "channels-last, precision; fuse what follows",
    "attention": "one fused kernel for this shape and mask",
    "normalisation": "one pass over the row, fused with its neighbours",
    "softmax": "one pass over the row, fused with its neighbours",
    "elementwise": "fuse into the kernel before or after",
    "reduction": "fuse with what produces its input",
    "optimizer": "a fused optimizer (fused=True)",
    "indexing": "fuse with the reader, or another data layout",
    "copy": "avoid the copy: layout, views, in-place",
    "memset": "let the kernel that follows write everything",
    "other": "a kernel of its own",
}
_WORDS = {
    "kernels_seconds": "kernels",
    "communication_seconds": "exposed communication",
    "copies_seconds": "exposed copies",
    "launches_seconds": "idle in short gaps (launches)",
    "host_seconds": "idle in longer gaps (host)",
}
_CPU_WORDS = {
    "kernels_seconds": "in PyTorch's operators",
    "communication_seconds": "exposed communication",
    "host_seconds": "outside of them",
}


def classify_bound(parts: Parts, on_device: bool) -> tuple[Bound, str]:
    """Return the class of the largest part, and the shares in words; all idle time counts as one part first."""
    idle = parts.launches_seconds + parts.host_seconds
    groups: dict[Bound, float] = {
        "kernel-bound": parts.kernels_seconds,
        "communication-bound": parts.communication_seconds,
        "copy-bound": parts.copies_seconds,
        "launch-bound" if parts.launches_seconds > parts.host_seconds else "host-bound": idle,
    }
    wall, words = _wall(parts), _WORDS if on_device else _CPU_WORDS
    shares = [f"{words[name]} {seconds / wall:.0%}" for name, seconds in parts if seconds]
    return max(groups, key=lambda name: groups[name]), ", ".join(shares)


def _wall(parts: Parts) -> float:
    return float(sum(seconds for _, seconds in parts))


def rank_attackable(
    slices: Iterable[Slice],
    kernels: Sequence[TracedKernel],
    parts: Parts,
    gaps: Gaps,
    copies: Sequence[Copies],
) -> tuple[Attackable, ...]:
    """Return the possible improvements, the largest share first."""
    wall = _wall(parts)
    rows = [*_kernels(kernels, wall), *_fusable(slices, wall), *_waiting(parts, gaps, copies, wall)]
    worthwhile = [row for row in rows if row.share >= LEAST_SHARE]
    return tuple(sorted(worthwhile, key=lambda row: (-row.share, row.name))[:MAX_ROWS])


def fusable_runs(slices: Iterable[Slice]) -> list[list[Slice]]:
    """Return runs of two or more consecutive elementwise kernels on one stream."""
    lanes: defaultdict[tuple[str, str], list[Slice]] = defaultdict(list)
    for piece in sorted(slices, key=lambda piece: (piece.begin, piece.end)):
        lanes[piece.event.lane].append(piece)
    return [
        run
        for lane in lanes.values()
        for family, group in groupby(lane, key=lambda piece: trace_names.kernel_family(piece.event.name))
        if family == "elementwise" and len(run := list(group)) > 1
    ]


def _row(name: str, kind: str, seconds: float, wall: float, attack: str) -> Attackable:
    share = min(1.0, seconds / wall)
    return Attackable.model_validate(
        {
            "name": name,
            "kind": kind,
            "seconds": seconds,
            "share": share,
            "ceiling": 1 / (1 - share) if share < 1 else None,
            "attack": attack,
        }
    )


def _kernels(kernels: Iterable[TracedKernel], wall: float) -> Iterator[Attackable]:
    for kernel in kernels:
        talks = kernel.family == "communication" or kernel.name in trace_names.HOST_COPIES
        if not talks:
            yield _row(kernel.name, "kernel", kernel.alone_seconds, wall, _ATTACK[kernel.family])


def _fusable(slices: Iterable[Slice], wall: float) -> Iterator[Attackable]:
    runs = fusable_runs(slices)
    if not runs:
        return
    times = [[each.end - each.begin for each in run] for run in runs]
    saved = sum(sum(run) - max(run) for run in times) / 1e9
    longest = max(len(run) for run in runs)
    yield _row(
        "elementwise kernels in a row",
        "fusable",
        saved,
        wall,
        f"fuse each of {len(runs)} runs (up to {longest}) into one: torch.compile, Triton",
    )


def _waiting(parts: Parts, gaps: Gaps, copies: Sequence[Copies], wall: float) -> Iterator[Attackable]:
    yield _row(
        "launch gaps",
        "launches",
        parts.launches_seconds,
        wall,
        'CUDA graphs, torch.compile(mode="reduce-overhead")',
    )
    yield _row("waiting for the host", "host", parts.host_seconds, wall, _host(gaps))
    yield _row(
        "exposed communication",
        "communication",
        parts.communication_seconds,
        wall,
        "start collectives earlier, send fewer bytes",
    )
    pageable = any(kind.pageable for kind in copies)
    advice = "pin the host's memory, non_blocking=True" if pageable else "copy on a stream of its own"
    yield _row("exposed copies", "copies", parts.copies_seconds, wall, advice)


def _host(gaps: Gaps) -> str:
    doing = gaps.largest[0].host if gaps.largest else None
    return f"in the largest gap: {doing}" if doing else "no operator in the largest gap: Python, data loading, I/O"
