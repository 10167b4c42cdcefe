"""In the program's process: steps with new content in their inputs, what they give and how long they take."""

from __future__ import annotations

import math
import statistics
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from warpsmith.program.capture.events import is_users
from warpsmith.program.process import values

if TYPE_CHECKING:
    from torch import Tensor

    from warpsmith.program.process.child import Child

Followed = Mapping[str, Sequence[float]]
"""Figures of what one step gave, by path."""

_SAMPLES = 64
"""Elements of a tensor that are compared; their sum and norm come on top."""

_ROUNDS, _ROUND_SECONDS, _MOST = 5, 0.2, 50

_LOST = ("device-side assert", "illegal memory access", "misaligned address", "unspecified launch failure")
"""What CUDA says of errors after which a process can use the device no more."""


class Inputs:
    """The program's plain tensors on the device: what its setup returned, and its globals.

    They stay where they are, as a graph needs it; `stir` moves their elements one further. So each step has new
    content of the old range. Integers of one dimension are left alone: they may be offsets or lengths.
    Where they are not `moving`, `stir` leaves all of them as they are.
    """

    def __init__(self, child: Child, *, moving: bool = True) -> None:
        import torch

        self._moving = moving
        held = {name: value for name, value in vars(child.module).items() if not name.startswith("__")}
        owned = {id(each) for _, each in _state(child)}
        leaves = (leaf for _, leaf in values.leaves((child.given, held)))
        found = {id(leaf): leaf for leaf in leaves if isinstance(leaf, torch.Tensor)}
        self.tensors: list[Tensor] = [
            leaf for key, leaf in found.items() if key not in owned and leaf.is_cuda and not leaf.requires_grad
        ]

    def stir(self) -> None:
        """Give each its next content."""
        import torch

        if not self._moving:
            return
        with torch.no_grad():
            for tensor in self.tensors:
                if tensor.is_floating_point() or tensor.dim() > 1:
                    tensor.copy_(tensor.flatten().roll(1).view_as(tensor))


def warm_up(step: Callable[[], object], inputs: Inputs, count: int) -> None:
    """Run steps on another stream, as a capture wants it."""
    import torch

    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(count):
            inputs.stir()
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()


def follow(
    child: Child, inputs: Inputs, run: Callable[[], object], steps: int, found: list[dict[str, list[float]]]
) -> None:
    """Put what each of `steps` runs gives into `found`; and last, what parameters, buffers and inputs hold then.

    The device has finished each run before the next: an error is told of the run that made it.
    """
    import torch

    for _ in range(steps):
        inputs.stir()
        value = run()
        torch.cuda.synchronize()
        found.append(_figures(values.leaves(value)))
    held = ((f"input.{place}", each) for place, each in enumerate(inputs.tensors))
    found.append(_figures((*_state(child), *held)))


def replayed(
    child: Child, inputs: Inputs, run: Callable[[], object], steps: int, timed: Callable[[], object]
) -> dict[str, Any]:
    """A task's answer after its capture: what `run` gives, and the seconds of `timed`; or which run fails."""
    found: list[dict[str, list[float]]] = []
    try:
        follow(child, inputs, run, steps, found)
    except Exception as error:
        traceback.print_exc()
        at = f"replay {len(found) + 1} of {steps}" if len(found) < steps else "reading what the replays left"
        return {"captured": True, "error": f"{at} fails: {_said(error)}"}
    return {"captured": True, "values": found, "seconds": seconds(timed)}


def seconds(run: Callable[[], object]) -> float | None:
    """Median seconds of a run, in rounds of several; None: it cannot be run that often."""
    try:
        count = max(1, min(_MOST, int(_ROUND_SECONDS / _round(run, 1))))
        return statistics.median(_round(run, count) for _ in range(_ROUNDS))
    except Exception:  # it has come to the end of its data
        return None


def _round(run: Callable[[], object], count: int) -> float:
    import torch

    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count


def failure(error: BaseException, folders: Sequence[str]) -> dict[str, Any]:
    """The first of a chain of errors, with the innermost line of the user's where it was raised."""
    while error.__context__ is not None:
        error = error.__context__
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename, folders)]
    return {
        "captured": False,
        "error": _said(error),
        "file": frames[-1].filename if frames else "",
        "line": frames[-1].lineno if frames else 0,
        "function": frames[-1].name if frames else "",
    }


def _said(error: BaseException) -> str:
    """Its class and first line; and what it means to its process, where that lost the device."""
    message = (str(error).strip().splitlines() or [""])[0]
    lost = "; its process ended with that" if any(words in message for words in _LOST) else ""
    return (f"{type(error).__name__}: {message}" if message else type(error).__name__)[:300] + lost


@contextmanager
def undisturbed(child: Child) -> Iterator[None]:
    """Random state and buffers are as before when the block ends."""
    import torch

    state = torch.cuda.get_rng_state()
    held = [(each, each.clone()) for module in child.modules().values() for each in module.buffers()]
    try:
        yield
    finally:
        torch.cuda.set_rng_state(state)
        with torch.no_grad():
            for buffer, before in held:
                buffer.copy_(before)


def difference(
    one: Sequence[Mapping[str, list[float]]], other: Sequence[Mapping[str, list[float]]]
) -> float | None:
    """Largest difference between two runs, over the size of what differs; None: they have nothing in common."""
    found = [
        _apart(mine[path], theirs[path])
        for mine, theirs in zip(one, other, strict=True)
        for path in mine.keys() & theirs.keys()
    ]
    return max(found, default=None)


def _state(child: Child) -> list[tuple[str, Tensor]]:
    """Parameters and buffers by name."""
    return [
        named
        for path, module in child.modules().items()
        for named in (*module.named_parameters(path), *module.named_buffers(path))
    ]


def _apart(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other) or any(math.isnan(a) != math.isnan(b) for a, b in zip(one, other, strict=True)):
        return math.inf
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a != b and not math.isnan(a)]
    size = max((abs(value) for value in one if math.isfinite(value)), default=0.0)
    if not all(math.isfinite(value) for pair in pairs for value in pair):
        return math.inf
    return max((abs(a - b) for a, b in pairs), default=0.0) / (size or 1.0)


def _figures(leaves: Any) -> dict[str, list[float]]:  # noqa: ANN401 - pairs of path and leaf
    import torch

    found: dict[str, list[float]] = {}
    for path, leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            found[path] = [float(leaf)]
            continue
        flat = leaf.detach().flatten().double() if not leaf.is_complex() else torch.view_as_real(leaf).flatten()
        if flat.numel() == 0:
            continue
        count = min(flat.numel(), _SAMPLES)  # integers: in float32 the last place of 2^24 is beyond the end
        places = torch.arange(count, device=flat.device) * (flat.numel() - 1) // max(1, count - 1)
        found[path] = torch.cat([flat[places], flat.sum()[None], flat.norm()[None]]).tolist()
    return found
