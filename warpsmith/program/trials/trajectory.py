"""Course: what a program computes in its first steps, and how its parameters and buffers move in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

    from warpsmith.program.process.runner import Runner

HORIZONS = (2, 4, 8)
"""Steps after which parameters are looked at; the last is how many are compared. Rounding grows from step to step:
where it decides after eight, it need not after two."""


@dataclass(frozen=True)
class StateTensor:
    """A parameter or buffer before and after the steps."""

    name: str
    """Its name."""
    shape: tuple[int, ...]
    """Its sizes."""
    floating: bool
    """Whether it holds floating-point numbers."""
    start: numpy.ndarray
    """Its sketch before the first step."""
    ends: tuple[numpy.ndarray, ...]
    """Its sketch at each horizon."""

    def way(self, horizon: int = -1) -> numpy.ndarray:
        """The sketch of how it moved until a horizon, by its place."""
        moved: numpy.ndarray = self.ends[horizon] - self.start
        return moved


@dataclass(frozen=True)
class Trajectory:
    """What one process computed."""

    values: tuple[Mapping[str, numpy.ndarray], ...]
    """What each step returned, by path: float64, or integers."""
    parameters: tuple[StateTensor, ...]
    """In their order."""
    buffers: tuple[StateTensor, ...] = ()
    """In their order."""


def record_trajectory(runner: Runner, horizons: Sequence[int] = HORIZONS, jitter: float = 0.0) -> Trajectory:
    """What a started program computes in its first steps; raises as the runner does."""
    told = [runner.call("sketch", jitter=jitter)]
    values: tuple[dict[str, numpy.ndarray], ...] = ()
    for horizon in horizons:
        ran = runner.run(horizon - len(values), keep=True)
        values += _load_values(Path(str(ran.saved)))
        told.append(runner.call("sketch"))
    return Trajectory(
        values, *(_state_tensors([each[kind] for each in told]) for kind in ("parameters", "buffers"))
    )


def _load_values(path: Path) -> tuple[dict[str, numpy.ndarray], ...]:
    import torch

    steps = torch.load(path, weights_only=True, map_location="cpu")
    path.unlink()
    return tuple({name: _to_array(leaf) for name, leaf in step.items()} for step in steps)


def _to_array(leaf: Any) -> numpy.ndarray:  # noqa: ANN401 - a number or a tensor
    import numpy as np
    import torch

    if not isinstance(leaf, torch.Tensor):
        return np.asarray(leaf, dtype=np.float64)
    if leaf.is_complex():
        leaf = torch.view_as_real(leaf.resolve_conj())
    dense = leaf.to_dense() if leaf.layout != torch.strided else leaf
    array: numpy.ndarray = dense.double().numpy() if dense.is_floating_point() else dense.numpy()
    return array


def _state_tensors(told: Sequence[Sequence[Sequence[Any]]]) -> tuple[StateTensor, ...]:
    """Sketches at the start and at each horizon, by name: a step may register what it had not."""
    import numpy as np

    start, *later = told
    ends = [{name: sketch for name, _, _, sketch in each} for each in later]
    return tuple(
        StateTensor(name, tuple(shape), floating, np.asarray(sketch), tuple(np.asarray(end[name]) for end in ends))
        for name, shape, floating, sketch in start
        if all(len(end.get(name, ())) == len(sketch) for end in ends)
    )
