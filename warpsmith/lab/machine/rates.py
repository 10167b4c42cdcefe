"""Rates at which a GPU moves or computes, measured with the device's own events."""

from __future__ import annotations

from collections.abc import Callable


def measure_rates(amount: float, work: Callable[[], object], repetitions: int, warm_ups: int = 0) -> list[float]:
    """Return billions of bytes or operations per second, one value per repetition, on a stream that is idle at
    first.

    Args:
        amount: bytes or operations of one call of `work`.
        work: puts one piece of work on the current stream.
        repetitions: number of timed calls.
        warm_ups: number of calls before them.
    """
    import torch

    for _ in range(warm_ups):
        work()
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repetitions)]  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    for start, end in events:
        start.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return [amount / (start.elapsed_time(end) * 1e-3) / 1e9 for start, end in events]
