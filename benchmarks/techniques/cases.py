"""The techniques, each beside its plain alternative: inputs, a check against float64, calls to time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from benchmarks.techniques.device import KernelFile, chain, event_times, graph_times

TOLERANCE = 1e-3
"""Largest norm of the error over the norm of the result."""
RESIDENT_TILES = 1024
"""Tiles of 256 threads that an H100 or H200 runs at once, so that each may wait for all others."""


@dataclass(frozen=True)
class Timing:
    """The times of one variant of a technique."""

    case: str
    """Sizes and inputs."""
    variant: str
    """Name, as in predictions.yaml."""
    times: list[float]
    """Microseconds of a call, one a replay."""
    error: float | None = None
    """Norm of the error over the norm of the float64 result."""
    bytes: int | None = None
    """Bytes that a call must move at least."""


def floors() -> Iterator[Timing]:
    """Time launches that do nothing, and barriers over a grid."""
    kernels = KernelFile("floors")
    null = kernels.call("null_kernel", 132, 128)
    yield Timing("launch", "eager", [time / 200 for time in event_times(chain(*[null] * 200))])
    yield Timing("launch", "graph", graph_times([null], 100))
    yield Timing("launch", "graph early", graph_times([kernels.call("null_early", 132, 128, early=True)], 100))
    yield Timing("launch", "graph cluster 8", graph_times([kernels.call("null_kernel", 128, 128, cluster=8)], 100))
    for blocks in (132, 264):
        count, error = _zeros(1, torch.int32), _zeros(1, torch.int32)
        few, many = (
            graph_times([chain(count.zero_, kernels.call("grid_barriers", blocks, 128, count, rounds, error))], 4)
            for rounds in (1, 101)
        )
        _refuse_expired(error)
        yield Timing("grid barrier", f"{blocks} blocks", [(b - a) / 100 for a, b in zip(few, many, strict=True)])


def pdl() -> Iterator[Timing]:
    """Time a chain of kernels of which each adds 1 to the same array."""
    kernels = KernelFile("floors")
    for size, blocks in (("64 KB", 16), ("1 MB", 256), ("16 MB", 4096)):
        for variant in ("plain", "early"):
            y = _zeros(blocks * 1024, torch.float32)
            call = kernels.call(f"step_{variant}", blocks, 256, y, early=variant == "early")
            times = graph_times([call], 50)
            steps = 1 + 50 * (5 + len(times))
            yield Timing(size, variant, times, _error(y, torch.full_like(y, steps)), 8 * y.numel())


def int4() -> Iterator[Timing]:
    """Time a 4-bit linear layer for one token; the weights of six copies are read in turn."""
    kernels = KernelFile("int4")
    for k, n, copies in ((4096, 11008, 6), (8192, 28672, 2)):
        x = torch.randn(k, device="cuda").bfloat16()
        words = [torch.randint(-(2**31), 2**31 - 1, (n, k // 8), device="cuda").int() for _ in range(copies)]
        scale = torch.rand(n, k // 128, device="cuda") + 0.5
        shifts = torch.arange(0, 32, 4, device="cuda", dtype=torch.int32)
        weight = (((words[-1][:, :, None] >> shifts) & 15) - 8).view(n, k // 128, 128) * scale[:, :, None]
        dense = weight.view(n, k)
        exact = torch.cat([part.double() @ x.double() for part in dense.split(1024)])
        size, moved = f"{k} to {n}", n * k // 2 + n * k // 32 + 2 * k + 4 * n
        for variant, shared in (("shift", 5 * k // 2), ("magic", 5 * k // 2), ("tensor", 2 * k), ("bytes", 2 * k)):
            y = torch.full((n,), torch.nan, device="cuda")
            calls = [
                kernels.call(f"int4_{variant}", n // 16, 256, q, scale, x, y, k, shared=shared) for q in words
            ]
            times = graph_times(calls, 12 // copies)
            yield Timing(size, variant, times, _error(y, exact), moved)
        half, out = [dense.bfloat16() for _ in range(2)], torch.empty(1, n, device="cuda", dtype=torch.bfloat16)
        peers = [_product(x[None], one, out) for one in half]
        yield Timing(size, "torch bf16", graph_times(peers, 4), None, 2 * n * k)


def gemv() -> Iterator[Timing]:
    """Time a bf16 linear layer of few tokens on CUDA cores and on tensor cores; two copies of 90 MB in turn."""
    kernels, n, k = KernelFile("gemv"), 11008, 4096
    weights = [torch.randn(n, k, device="cuda").bfloat16() for _ in range(2)]
    for m in (1, 4, 8, 16):
        x = torch.randn(m, k, device="cuda").bfloat16()
        exact, moved = x.double() @ weights[-1].double().T, 2 * n * k + 2 * m * k + 4 * m * n
        for variant in ("scalar", "tensor"):
            y = torch.full((m, n), torch.nan, device="cuda")
            calls = [kernels.call(f"{variant}_{m}", n // 16, 256, w, x, y, n, k) for w in weights]
            times = graph_times(calls, 5)
            yield Timing(f"m {m}", variant, times, _error(y, exact), moved)
        out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        yield Timing(f"m {m}", "torch", graph_times([_product(x, w, out) for w in weights], 5), None, moved)


def split() -> Iterator[Timing]:
    """Time one token, long k and few rows with the k loop split; five copies of 34 MB in turn."""
    kernels, n, k = KernelFile("gemv"), 1024, 16384
    weights = [torch.randn(n, k, device="cuda").bfloat16() for _ in range(5)]
    x = torch.randn(1, k, device="cuda").bfloat16()
    exact, moved = (x.double() @ weights[-1].double().T)[0], 2 * n * k + 2 * k + 4 * n
    work, count = _zeros(16 * n, torch.float32), _zeros(n // 16, torch.int32)
    case = f"{k} to {n}"

    def timing(variant: str, make: Callable[[torch.Tensor, torch.Tensor], Callable[[], None]]) -> Timing:
        y = torch.full((n,), torch.nan, device="cuda")
        times = graph_times([make(w, y) for w in weights], 2)
        return Timing(case, variant, times, _error(y, exact), moved)

    for splits in (1, 2, 4, 8, 16):
        grid = (n // 16, splits)
        yield timing(
            str(splits),
            lambda w, y, grid=grid: kernels.call("split_semaphore", grid, 256, w, x, work, y, count, n, k),
        )
    grid = (n // 16, 8)
    yield timing(
        "8 second kernel",
        lambda w, y: chain(
            kernels.call("split_store", grid, 256, w, x, work, n, k),
            kernels.call("split_sum", n // 128, 128, work, y, n, 8),
        ),
    )
    yield timing("8 atomics", lambda w, y: chain(y.zero_, kernels.call("split_atomic", grid, 256, w, x, y, n, k)))
    out = torch.empty(1, n, device="cuda", dtype=torch.bfloat16)
    yield Timing(case, "torch", graph_times([_product(x, w, out) for w in weights], 2), None, moved)


def scan() -> Iterator[Timing]:
    """Time prefix sums of fp32 values of 0 and 1, whose sums are exact."""
    kernels = KernelFile("scan")
    for case, size in (("16M", 2**24), ("4M", 2**22), ("1M", 2**20)):
        x, tiles = torch.randint(0, 2, (size,), device="cuda").float(), size // 4096
        exact, moved = x.double().cumsum(0), 8 * size
        y = torch.full_like(x, torch.nan)
        state, error, sums = _zeros(tiles + 1, torch.int64), _zeros(1, torch.int32), _zeros(tiles, torch.float32)
        one = chain(state.zero_, kernels.call("lookback", tiles, 256, x, y, state, state[tiles:], error))
        times = graph_times([one], 8)
        _refuse_expired(error)
        yield Timing(case, "look-back", times, _error(y, exact), moved)
        y.fill_(torch.nan)
        three = chain(
            kernels.call("tile_sums", tiles, 256, x, sums),
            kernels.call("scan_sums", 1, 256, sums, tiles),
            kernels.call("tile_scans", tiles, 256, x, y, sums),
        )
        times = graph_times([three], 8)
        yield Timing(case, "three kernels", times, _error(y, exact), moved)
        if tiles <= RESIDENT_TILES:
            y.fill_(torch.nan)
            words = _zeros(tiles, torch.int64)
            times = graph_times([kernels.call("all_sums", tiles, 256, x, y, words, error)], 8)
            _refuse_expired(error)
            yield Timing(case, "all sums", times, _error(y, exact), moved)
        times = graph_times([lambda x=x, y=y: torch.cumsum(x, 0, out=y)], 8)
        yield Timing(case, "torch.cumsum", times, _error(y, exact), moved)


def rows() -> Iterator[Timing]:
    """Time short bf16 rows over their norm, whose length 16 bytes divide, or do not; two copies in turn."""
    kernels, count = KernelFile("rows"), 2**17
    for cols in (128, 129):
        inputs = [torch.randn(count, cols, device="cuda").bfloat16() for _ in range(2)]
        wide = inputs[-1].double()
        exact = (wide / wide.norm(dim=1, keepdim=True)).bfloat16()
        for variant, block_rows, shared in (("narrow", 8, 0), ("window", 8, 0), ("flat", 64, 128 * cols)):
            outputs = [torch.full_like(x, torch.nan) for x in inputs]
            calls = [
                kernels.call(f"rows_{variant}", count // block_rows, 256, x, y, count, cols, shared=shared)
                for x, y in zip(inputs, outputs, strict=True)
            ]
            times = graph_times(calls, 4)
            yield Timing(f"{cols} columns", variant, times, _error(outputs[-1], exact), 4 * count * cols)


def bulk() -> Iterator[Timing]:
    """Time bulk copies of 64 KB into shared memory by the size of their pieces and the threads that issue them."""
    kernels, stage = KernelFile("bulk"), 2**16
    x = torch.randn(132 * 16 * stage // 4, device="cuda")
    exact = x.view(132, 16, stage // 4)[:, -1, ::128].flatten()
    for lanes in (1, 32):
        for piece in (64, 256, 1024):
            y = torch.full((132 * 128,), torch.nan, device="cuda")
            call = kernels.call("bulk_pieces", 132, 128, x, y, piece, lanes, shared=stage)
            case = "1 thread" if lanes == 1 else f"{lanes} threads"
            yield Timing(case, f"{piece} bytes", graph_times([call], 4), _error(y, exact), 4 * x.numel())


def ragged() -> Iterator[Timing]:
    """Time sums over rows of very different lengths; 8M integers in fp32, so that every sum is exact."""
    kernels, total = KernelFile("ragged"), 2**23
    values = [torch.randint(-8, 9, (total,), device="cuda").float() for _ in range(4)]
    rows = 2**21
    spread = torch.zeros(rows, device="cuda", dtype=torch.int64)
    spread[::8] = total // (rows // 8)
    cases = {
        "zipf 65536 rows": _zipf(65536, total),
        "2M rows, 7 of 8 empty, spread": spread,
        "2M rows, 7 of 8 empty, one run": spread.sort(stable=True).values,
    }
    for case, lengths in cases.items():
        count = lengths.numel()
        ends = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        sums = torch.cat([ends.new_zeros(1).double(), values[-1].double().cumsum(0)])
        exact, ptr, moved = sums[ends[1:]] - sums[ends[:-1]], ends.int(), 4 * total + 8 * count
        out = torch.full((count,), torch.nan, device="cuda")
        variants: dict[str, Callable[[torch.Tensor], Callable[[], None]]] = {
            "block a row": lambda v, c=count, p=ptr, o=out: kernels.call("block_per_row", c, 256, v, p, o),
            "warp a row": lambda v, c=count, p=ptr, o=out: kernels.call(
                "warp_per_row", (c + 7) // 8, 256, v, p, o, c
            ),
            "chunks": lambda v, c=count, p=ptr, o=out: chain(
                o.zero_, kernels.call("chunks", total // 4096, 256, v, p, o, c)
            ),
        }
        for variant, make in variants.items():
            out.fill_(torch.nan)
            times = graph_times([make(v) for v in values], 2)
            yield Timing(case, variant, times, _error(out, exact), moved)


def cluster() -> Iterator[Timing]:
    """Time rows of 131072 fp32 values over their norm; four copies in turn, so 64 rows are not in L2."""
    kernels = KernelFile("exchange")
    for rows in (64, 8):
        inputs = [torch.randn(rows, 131072, device="cuda") for _ in range(4)]
        y, sums = torch.empty_like(inputs[0]), _zeros(rows * 8, torch.float32)
        exact = inputs[-1].double() / inputs[-1].double().norm(dim=1, keepdim=True)
        calls = [kernels.call("row_cluster", rows * 8, 512, x, y, cluster=8) for x in inputs]
        yield _exchange(f"{rows} rows", "cluster", calls, y, exact)
        calls = [
            chain(
                kernels.call("row_parts", rows * 8, 512, x, sums),
                kernels.call("row_scale", rows * 8, 512, x, y, sums),
            )
            for x in inputs
        ]
        yield _exchange(f"{rows} rows", "two kernels", calls, y, exact)


def epoch() -> Iterator[Timing]:
    """Time an array of 8.6 MB over its norm by 132 blocks; the data stay in L2."""
    kernels = KernelFile("exchange")
    x = torch.randn(132 * 16384, device="cuda")
    y, error, exact = torch.empty_like(x), _zeros(1, torch.int32), x.double() / x.double().norm()
    words, sums = _zeros(132, torch.int64), _zeros(132, torch.float32)
    counters = _zeros(2, torch.int32)
    variants = {
        "epoch": kernels.call("all_epoch", 132, 512, x, y, words, error),
        "memset and counter": chain(
            counters.zero_, kernels.call("all_counter", 132, 512, x, y, counters, counters[1:], error)
        ),
        "two kernels": chain(
            kernels.call("row_parts", 132, 512, x, sums), kernels.call("all_scale", 132, 512, x, y, sums)
        ),
    }
    for variant, call in variants.items():
        timing = _exchange("132 blocks", variant, [call] * 10, y, exact)
        _refuse_expired(error)
        yield timing


TECHNIQUES = {
    run.__name__: run for run in (floors, pdl, int4, gemv, split, scan, rows, bulk, ragged, cluster, epoch)
}
"""Function of each technique by its name."""
SOURCES = {"pdl": "floors", "split": "gemv", "cluster": "exchange", "epoch": "exchange"}
"""File of a technique's kernels where its name is another."""


def _exchange(
    case: str, variant: str, calls: list[Callable[[], None]], y: torch.Tensor, exact: torch.Tensor
) -> Timing:
    y.fill_(torch.nan)
    times = graph_times(calls, 3)
    return Timing(case, variant, times, _error(y, exact), 8 * y.numel())


def _product(x: torch.Tensor, weight: torch.Tensor, out: torch.Tensor) -> Callable[[], object]:
    return lambda: torch.mm(x, weight.T, out=out)


def _zeros(size: int, kind: torch.dtype) -> torch.Tensor:
    return torch.zeros(size, device="cuda", dtype=kind)


def _zipf(rows: int, total: int) -> torch.Tensor:
    """Return shuffled lengths, int64, whose sum is `total`; the i-th longest row is about 1 / i of the longest."""
    share = 1 / torch.arange(1, rows + 1, dtype=torch.float64)
    lengths = (share / share.sum() * total).long()
    lengths[0] += total - int(lengths.sum())
    return lengths[torch.randperm(rows, generator=torch.Generator().manual_seed(1))].cuda()


def _error(result: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the norm of the error over the norm of the result; raise RuntimeError above the tolerance."""
    error = float((result.double() - exact.double()).norm() / exact.double().norm())
    if not error <= TOLERANCE:
        raise RuntimeError(f"relative error {error:.3g} is above {TOLERANCE}")
    return error


def _refuse_expired(error: torch.Tensor) -> None:
    """Raise RuntimeError if a wait in a kernel gave up."""
    if int(error.item()):
        raise RuntimeError("a wait between blocks gave up")
