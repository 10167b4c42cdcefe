"""Rates: how much a GPU moves or computes a second, by the device's own events."""

from __future__ import annotations

from collections.abc import Callable


def measure_rates(amount: float, work: Callable[[], object], repetitions: int, warm_ups: int = 0) -> list[float]:
    """Billions of bytes or operations a second, one a repetition, on a stream that is idle at first.

    Args:
        amount: the bytes or operations of one `work`.
        work: puts one piece of work on the current stream.
        repetitions: times that it is timed.
        warm_ups: times that it runs before.
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
