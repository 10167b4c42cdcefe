"""In the program's process: steps with new content in their inputs, their values and their times."""

from __future__ import annotations

import math
import statistics
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from warpsmith.program.capture.events import is_user_file
from warpsmith.program.process import values

if TYPE_CHECKING:
    from torch import Tensor

    from warpsmith.program.process.loaded_program import LoadedProgram

StepFigures = dict[str, list[float]]
"""Figures of one step's values, by path."""

_SAMPLES = 64
"""Elements of a tensor that are compared, in addition to its sum and norm."""

_ROUNDS, _ROUND_SECONDS, _MOST_RUNS = 5, 0.2, 50

_DEVICE_LOST = (
    "device-side assert", "illegal memory access", "misaligned address", "unspecified launch failure"
)  # fmt: skip
"""Messages of CUDA after which a process cannot use the device any more."""


class StepInputs:
    """The program's plain tensors on the device: its globals, and those that its setup returned.

    They keep their addresses, as a graph requires. `rotate` moves their elements by one place, so that each step
    has new content of the same range. One-dimensional integers stay, because they may be offsets or lengths.
    Without `moving` every tensor keeps its content.
    """

    def __init__(self, program: LoadedProgram, *, moving: bool = True) -> None:
        import torch

        self._moving = moving
        variables = {name: value for name, value in vars(program.module).items() if not name.startswith("__")}
        owned = {id(tensor) for _, tensor in _list_state(program)}
        leaves = (leaf for _, leaf in values.list_leaves((program.setup_result, variables)))
        tensors = {id(leaf): leaf for leaf in leaves if isinstance(leaf, torch.Tensor)}
        self.tensors: list[Tensor] = [
            tensor
            for key, tensor in tensors.items()
            if key not in owned and tensor.is_cuda and not tensor.requires_grad
        ]

    def rotate(self) -> None:
        """Give each tensor its next content."""
        import torch

        if not self._moving:
            return
        with torch.no_grad():
            for tensor in self.tensors:
                if tensor.is_floating_point() or tensor.dim() > 1:
                    tensor.copy_(tensor.flatten().roll(1).view_as(tensor))


def warm_up(step: Callable[[], object], inputs: StepInputs, count: int) -> None:
    """Run `count` steps on a side stream, as a capture requires."""
    import torch

    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(count):
            inputs.rotate()
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()


def record_steps(
    program: LoadedProgram, inputs: StepInputs, run: Callable[[], object], steps: int, figures: list[StepFigures]
) -> None:
    """Append the values of each of `steps` runs to `figures`, then those of parameters, buffers and inputs.

    The device finishes each run before the next one, so that an error belongs to the run that caused it.
    """
    import torch

    for _ in range(steps):
        inputs.rotate()
        value = run()
        torch.cuda.synchronize()
        figures.append(_summarize(values.list_leaves(value)))
    contents = ((f"input.{number}", tensor) for number, tensor in enumerate(inputs.tensors))
    figures.append(_summarize((*_list_state(program), *contents)))


def answer_replays(
    program: LoadedProgram, inputs: StepInputs, run: Callable[[], object], steps: int, timed: Callable[[], object]
) -> dict[str, Any]:
    """Return a task's answer after its capture: values of `run` and seconds of `timed`, or the run that fails."""
    figures: list[StepFigures] = []
    try:
        record_steps(program, inputs, run, steps, figures)
    except Exception as error:
        traceback.print_exc()
        number = len(figures) + 1
        failed = f"replay {number} of {steps}" if number <= steps else "reading the state after the replays"
        return {"captured": True, "error": f"{failed} fails: {_describe_error(error)}"}
    return {"captured": True, "values": figures, "seconds": median_seconds(timed)}


def median_seconds(run: Callable[[], object]) -> float | None:
    """Return the median seconds of a run over several rounds, or None if it cannot run that often."""
    try:
        count = max(1, min(_MOST_RUNS, int(_ROUND_SECONDS / _time_round(run, 1))))
        return statistics.median(_time_round(run, count) for _ in range(_ROUNDS))
    except Exception:  # its data ends
        return None


def _time_round(run: Callable[[], object], count: int) -> float:
    import torch

    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count


def answer_failure(error: BaseException, folders: Sequence[str]) -> dict[str, Any]:
    """Return a task's answer after a failed capture: the first error of the chain, and the user's line."""
    while error.__context__ is not None:
        error = error.__context__
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if is_user_file(frame.filename, folders)
    ]
    return {
        "captured": False,
        "error": _describe_error(error),
        "file": frames[-1].filename if frames else "",
        "line": frames[-1].lineno if frames else 0,
        "function": frames[-1].name if frames else "",
    }


def _describe_error(error: BaseException) -> str:
    """Return the error's class and first line; add that its process ended if it lost the device."""
    message = (str(error).strip().splitlines() or [""])[0]
    ended = "; its process ended with that" if any(words in message for words in _DEVICE_LOST) else ""
    return (f"{type(error).__name__}: {message}" if message else type(error).__name__)[:300] + ended


@contextmanager
def restore_state(program: LoadedProgram) -> Iterator[None]:
    """Restore the GPU's random state and the modules' buffers when the block ends."""
    import torch

    state = torch.cuda.get_rng_state()
    copies = [(buffer, buffer.clone()) for module in program.modules().values() for buffer in module.buffers()]
    try:
        yield
    finally:
        torch.cuda.set_rng_state(state)
        with torch.no_grad():
            for buffer, copy in copies:
                buffer.copy_(copy)


def largest_difference(
    first: Sequence[Mapping[str, list[float]]], second: Sequence[Mapping[str, list[float]]]
) -> float | None:
    """Return the largest relative difference between two runs, or None if they have no value in common."""
    differences = [
        _relative_difference(own[path], other[path])
        for own, other in zip(first, second, strict=True)
        for path in own.keys() & other.keys()
    ]
    return max(differences, default=None)


def _list_state(program: LoadedProgram) -> list[tuple[str, Tensor]]:
    """List parameters and buffers by path."""
    return [
        pair
        for path, module in program.modules().items()
        for pair in (*module.named_parameters(path), *module.named_buffers(path))
    ]


def _relative_difference(first: Sequence[float], second: Sequence[float]) -> float:
    if len(first) != len(second):
        return math.inf
    if any(math.isnan(a) != math.isnan(b) for a, b in zip(first, second, strict=True)):
        return math.inf
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a != b and not math.isnan(a)]
    size = max((abs(value) for value in first if math.isfinite(value)), default=0.0)
    if not all(math.isfinite(value) for pair in pairs for value in pair):
        return math.inf
    return max((abs(a - b) for a, b in pairs), default=0.0) / (size or 1.0)


def _summarize(leaves: Iterable[tuple[str, Any]]) -> StepFigures:
    """Return numbers as they are, and samples, sum and norm of each tensor, by path."""
    import torch

    figures: StepFigures = {}
    for path, leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            figures[path] = [float(leaf)]
            continue
        flat = leaf.detach().flatten().double() if not leaf.is_complex() else torch.view_as_real(leaf).flatten()
        if flat.numel() == 0:
            continue
        count = min(flat.numel(), _SAMPLES)
        # Indices are integers: in float32 the last index of 2^24 elements rounds to one beyond the end.
        indices = torch.arange(count, device=flat.device) * (flat.numel() - 1) // max(1, count - 1)
        figures[path] = torch.cat([flat[indices], flat.sum()[None], flat.norm()[None]]).tolist()
    return figures
