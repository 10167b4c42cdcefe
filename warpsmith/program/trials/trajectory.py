"""Trajectory: the values of a program in its first steps, and the movement of its parameters and buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

    from warpsmith.program.process.runner import Runner

HORIZONS = (2, 4, 8)
"""Numbers of steps after which parameters are compared; the last is the number of steps that run. Rounding errors
grow from step to step: they may dominate after eight steps and not after two."""


@dataclass(frozen=True)
class StateTensor:
    """A parameter or buffer before and after the steps."""

    name: str
    """Name of the tensor."""
    shape: tuple[int, ...]
    """Shape of the tensor."""
    floating: bool
    """True if it holds floating-point numbers."""
    start: numpy.ndarray
    """Sketch of the tensor before the first step."""
    ends: tuple[numpy.ndarray, ...]
    """Sketch of the tensor at each horizon."""

    def displacement(self, horizon: int = -1) -> numpy.ndarray:
        """Return the sketch of the displacement from the start to a horizon, given by its index."""
        difference: numpy.ndarray = self.ends[horizon] - self.start
        return difference


@dataclass(frozen=True)
class Trajectory:
    """Values, parameters and buffers of one process."""

    values: tuple[Mapping[str, numpy.ndarray], ...]
    """Values that each step returned, by path: float64, or integers."""
    parameters: tuple[StateTensor, ...]
    """Parameters, in the order of the program."""
    buffers: tuple[StateTensor, ...] = ()
    """Buffers, in the order of the program."""

    @property
    def sizes(self) -> dict[str, float]:
        """Value to its largest norm over the steps."""
        import numpy as np

        steps = [(path, float(np.linalg.norm(value))) for step in self.values for path, value in step.items()]
        return {path: max(size for name, size in steps if name == path) for path, _ in steps}


def record_trajectories(
    runner: Runner, horizons: Sequence[int] = HORIZONS, jitter: float = 0.0
) -> tuple[Trajectory, ...]:
    """Run the first steps of a started program and record each rank's trajectory; raises as the runner does."""
    sketches = [runner.call_ranks("sketch", jitter=jitter)]
    values: list[tuple[dict[str, numpy.ndarray], ...]] = [() for _ in sketches[0]]
    for horizon in horizons:
        result = runner.run(horizon - len(values[0]), keep=True)
        values = [steps + _load_values(Path(file)) for steps, file in zip(values, result.saved, strict=True)]
        sketches.append(runner.call_ranks("sketch"))
    return tuple(
        Trajectory(
            steps, *(_state_tensors([sketch[kind] for sketch in own]) for kind in ("parameters", "buffers"))
        )
        for steps, *own in zip(values, *sketches, strict=True)
    )


def rank_name(name: str, rank: int) -> str:
    """Return the name of a value or parameter of a rank among those of all."""
    return f"{name} of rank {rank}" if rank else name


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


def _state_tensors(sketches: Sequence[Sequence[Sequence[Any]]]) -> tuple[StateTensor, ...]:
    """Match the sketches at the start and at each horizon by name: a step may register new tensors."""
    import numpy as np

    start, *later = sketches
    ends = [{name: sketch for name, _, _, sketch, _ in sketched} for sketched in later]
    return tuple(
        StateTensor(name, tuple(shape), floating, np.asarray(sketch), tuple(np.asarray(end[name]) for end in ends))
        for name, shape, floating, sketch, _ in start
        if all(len(end.get(name, ())) == len(sketch) for end in ends)
    )
