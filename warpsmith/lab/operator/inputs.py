"""Inputs that nobody saw before, drawn by the grader for every call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.core.dtype import DTYPES, is_floating
from warpsmith.core.expression import evaluate
from warpsmith.errors import BadDefinition
from warpsmith.lab.operator.definition_file import DefinitionFile

if TYPE_CHECKING:
    import torch

ADVERSARIAL = (
    "large", "tiny", "shifted", "lowered", "constant", "scaled_rows", "sorted", "denormal", "sparse", "one_hot",
    "near_tie",
)  # fmt: skip
"""Distributions that correctness is also judged at, where the reference itself holds its bound."""

DISTRIBUTIONS = ("normal", "uniform", "masked", "nonfinite", *ADVERSARIAL)
"""How floating-point inputs can be drawn; `masked` has minus infinity in the first half of the last axis,
`nonfinite` has NaN and infinities in some rows."""

INTEGERS = ("integers:<low>:<high>", "offsets:<total>", "zipf:<count>")
"""How integers can be drawn, each number being arithmetic over axes: evenly; cut points of groups; skewed ids."""

_BLOCK = 1_000_003
"""Values that a quick draw repeats: a prime, so that rows of no usual length begin alike."""

_AT_ONCE = 1 << 25
"""Values of an input up to which several draws are one."""

_EACH_ALONE = ("normal", "uniform", "large", "tiny", "shifted", "lowered")
"""Distributions whose values know nothing of each other: many tensors of them are one draw."""

_DENSE = 0.05
"""Share of the values that `sparse` keeps."""

_TIED_ULPS = 4
"""Units in the last place by which the values of a `near_tie` row differ at most from the common one."""


class Inputs:
    """Draws the inputs of one workload; each `draw` gives other values."""

    def __init__(self, file: DefinitionFile, workload: Workload, seed: int, device: str) -> None:
        import torch

        self._file = file
        self._definition: Definition = file.definition
        self._workload = workload
        self._device = device
        self._generator = torch.Generator(device=device).manual_seed(seed % 2**63)

    def draw(self, distribution: str | None = None, *, quick: bool = False) -> dict[str, torch.Tensor]:
        """One set of tensors by name, on the grader's device.

        Args:
            distribution: in place of the workload's.
            quick: large tensors on a CPU repeat a block of fresh values, each time scaled anew: timing needs
                contents that nobody saw before, and drawing them would cost more than the call that is timed.

        Raises:
            BadDefinition: the definition's own generator fails, or a distribution is unknown or cannot be.
        """
        if self._file.inputs is not None:
            return self._own(self._workload)
        return next(self._together(1, distribution, quick))

    def several(
        self, count: int, distribution: str | None = None, *, quick: bool = False
    ) -> Iterator[dict[str, torch.Tensor]]:
        """So many draws, as many at once as memory allows: a draw costs a GPU's host more than the GPU.

        Where the definition draws its own inputs, that takes an axis to draw along.

        Raises:
            BadDefinition: as `draw`.
        """
        own = self._file.inputs is not None
        if own and self._definition.drawn_along is None:
            yield from (self.draw() for _ in range(count))
            return
        specs = self._definition.tensor_inputs.values()
        largest = max((prod(self._definition.shape(spec, self._workload)) for spec in specs), default=0)
        most = max(_AT_ONCE // max(largest, 1), 1)  # an axis may be empty
        for first in range(0, count, most):
            now = min(most, count - first)
            yield from self._cut(now) if own else self._together(now, distribution, quick)

    def _together(self, count: int, distribution: str | None, quick: bool) -> Iterator[dict[str, torch.Tensor]]:
        specs = self._definition.tensor_inputs
        drawn = {name: self._tensors(spec, distribution, quick, count) for name, spec in specs.items()}
        yield from ({name: tensors[part] for name, tensors in drawn.items()} for part in range(count))

    def _cut(self, count: int) -> Iterator[dict[str, torch.Tensor]]:
        """A longer draw along the definition's axis, in parts."""
        axis = self._definition.drawn_along
        assert axis is not None
        length = self._workload.axes[axis]
        longer = {"axes": {**self._workload.axes, axis: length * count}}
        drawn = self._own(self._workload.model_copy(update=longer))
        specs = self._definition.tensor_inputs
        for part in range(count):
            yield {
                name: tensor.narrow(specs[name].shape.index(axis), part * length, length)
                if axis in specs[name].shape
                else tensor
                for name, tensor in drawn.items()
            }

    @property
    def adversarial(self) -> tuple[str, ...]:
        """The further distributions that apply: none where the definition draws its own inputs."""
        return () if self._file.inputs is not None else ADVERSARIAL

    def _own(self, workload: Workload) -> dict[str, torch.Tensor]:
        assert self._file.inputs is not None
        try:
            drawn: dict[str, torch.Tensor] = self._file.inputs(workload, self._generator, self._device)
        except Exception as error:
            raise BadDefinition(f"{self._file.path}: inputs() fails: {type(error).__name__}: {error}") from error
        if set(drawn) != set(self._definition.tensor_inputs):
            raise BadDefinition(f"{self._file.path}: inputs() must return {list(self._definition.tensor_inputs)}.")
        return drawn

    def _tensors(
        self, spec: TensorSpec, distribution: str | None, quick: bool, count: int
    ) -> Sequence[torch.Tensor]:
        """So many values of one input."""
        import torch

        shape = self._definition.shape(spec, self._workload)
        dtype = self._definition.dtype(spec, self._workload)
        how = self._workload.distribution if spec.distribution == "workload" else spec.distribution
        if not is_floating(dtype):
            return [self._integers(how, shape, dtype) for _ in range(count)]
        if distribution is not None and spec.distribution == "workload":
            how = distribution
        if how not in DISTRIBUTIONS:
            known = ", ".join(DISTRIBUTIONS)
            raise BadDefinition(f"{self._file.path}: unknown distribution `{how}`; known: {known}.")
        repeated = quick and self._device == "cpu"

        def drawn(shape: tuple[int, ...]) -> torch.Tensor:
            values = self._repeated(shape) if repeated else self._normal(shape)
            return _shape_values(how, values, dtype, self._generator).to(getattr(torch, dtype))

        if how in _EACH_ALONE and not repeated and count > 1:
            return drawn((count, *shape)).unbind()
        return [drawn(shape) for _ in range(count)]

    def _normal(self, shape: tuple[int, ...]) -> torch.Tensor:
        import torch

        return torch.randn(shape, generator=self._generator, device=self._device)

    def _repeated(self, shape: tuple[int, ...]) -> torch.Tensor:
        import torch

        if prod(shape) <= _BLOCK:
            return self._normal(shape)
        count = -(-prod(shape) // _BLOCK)
        scales = torch.rand((count, 1), generator=self._generator).add_(0.5)
        blocks = self._normal((1, _BLOCK)) * scales
        return blocks.flatten()[: prod(shape)].view(shape)

    def _integers(self, how: str, shape: tuple[int, ...], dtype: str) -> torch.Tensor:
        """As one of `INTEGERS` says; by default 0 to 127, booleans 0 to 1."""
        import torch

        kind, *texts = how.split(":")
        if not texts:
            kind, texts = "integers", ["0", "2" if dtype == "bool" else "128"]
        try:
            numbers = [int(evaluate(text, self._definition.sizes(self._workload))) for text in texts]
            drawn = self._drawn_integers(kind, numbers, shape)
        except (ValueError, RuntimeError) as error:
            known = ", ".join(INTEGERS)
            raise BadDefinition(
                f"{self._file.path}: integers cannot be drawn as `{how}` in the shape {shape}: {error}; "
                f"known: {known}."
            ) from error
        return drawn.to(getattr(torch, dtype))

    def _drawn_integers(self, kind: str, numbers: list[int], shape: tuple[int, ...]) -> torch.Tensor:
        import torch

        match kind, numbers:
            case "integers", [low, high]:
                return torch.randint(low, high, shape, generator=self._generator, device=self._device)
            case "offsets", [total] if len(shape) == 1 and total >= 0:
                return _offsets(shape[0], total, self._generator)
            case "zipf", [count] if count > 0:
                return _zipf(shape, count, self._generator)
            case _:
                raise ValueError("it is unknown, or its numbers do not fit")


def _offsets(length: int, total: int, generator: torch.Generator) -> torch.Tensor:
    """Cut points of `length - 1` groups from 0 to `total`; how skewed the groups are is drawn anew each time."""
    import torch

    where: dict[str, Any] = {"generator": generator, "device": generator.device}
    groups = max(length - 1, 0)
    if groups == 0:
        return torch.zeros(length, dtype=torch.int64, device=generator.device)
    weights = torch.rand(groups, dtype=torch.float64, **where).add_(0.5)
    match int(torch.randint(4, (), **where)):
        case 0:  # balanced, nearly
            weights = 1 + weights / 8
        case 1:
            ranks = torch.randperm(groups, **where).add_(1)
            weights /= ranks ** (1 + float(torch.rand((), **where)))
        case 2:  # one group with everything
            weights *= torch.arange(groups, device=generator.device) == torch.randint(groups, (), **where)
        case _:  # most groups are empty
            kept = torch.rand(groups, **where) < 0.1
            kept[torch.randint(groups, (), **where)] = True
            weights *= kept
    shares = weights.cumsum(0)
    cuts = (shares / shares[-1] * total).round().long().cummax(0).values.clamp_(max=total)
    cuts[-1] = total
    return torch.cat([cuts.new_zeros(1), cuts])


def _zipf(shape: tuple[int, ...], count: int, generator: torch.Generator) -> torch.Tensor:
    """Ids below `count`, a few of them most of the time; which ones and how much is drawn anew each time."""
    import torch

    where: dict[str, Any] = {"generator": generator, "device": generator.device}
    exponent = 0.8 + 0.7 * float(torch.rand((), **where))
    ranks = torch.arange(1, count + 1, dtype=torch.float64, device=generator.device)
    shares = (ranks**-exponent).cumsum(0)
    drawn = torch.rand(shape, dtype=torch.float64, **where) * shares[-1]
    found = torch.searchsorted(shares, drawn).clamp_(max=count - 1)
    return torch.randperm(count, **where)[found]


def _shape_values(how: str, values: torch.Tensor, dtype: str, generator: torch.Generator) -> torch.Tensor:
    """Normal values made into another distribution; `dtype` is the type that they are rounded to afterwards."""
    import torch

    where: dict[str, Any] = {"generator": generator, "device": values.device}
    match how:
        case "uniform":
            return torch.rand(values.shape, **where)
        case "large":
            return values * 50
        case "tiny":
            return values * 1e-3
        case "shifted":
            return values + 3
        case "lowered":  # where exponentials underflow that nobody shifted
            return values - 200
        case "constant":
            return torch.full_like(values, float(values.flatten()[0]) if values.numel() else 0.0)
        case "scaled_rows" if values.ndim:
            rows = (values.shape[0],) + (1,) * (values.ndim - 1)
            powers = torch.randint(-6, 6, rows, **where)
            return values * torch.exp2(powers.to(values.dtype))
        case "masked" if values.ndim:
            values[..., : values.shape[-1] // 2] = float("-inf")
            return values
        case "sorted" if values.ndim:
            return values.sort(dim=-1).values
        case "denormal":
            smallest = torch.finfo(getattr(torch, dtype)).tiny
            signed = torch.rand(values.shape, dtype=torch.float64, **where).mul_(2).sub_(1) * smallest
            return signed * torch.randint(2, values.shape, **where)
        case "sparse":
            return values * (torch.rand(values.shape, **where) < _DENSE)
        case "one_hot" if values.ndim and values.numel():
            hot = torch.randint(values.shape[-1], (*values.shape[:-1], 1), **where)
            return torch.zeros_like(values).scatter_(-1, hot, values.gather(-1, hot))
        case "near_tie" if values.ndim and values.numel():
            ulps = torch.randint(-_TIED_ULPS, _TIED_ULPS + 1, values.shape, **where)
            common = values[..., :1].to(getattr(torch, dtype)).double()
            return common * (1 + ulps * (2 * DTYPES[dtype].unit_roundoff))
        case "nonfinite" if values.ndim and values.numel():
            return _nonfinite(values, generator)
        case _:
            return values


def _nonfinite(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """NaN, infinity or minus infinity at one element of about three in eight rows, of one row at least; in a
    vector every element is a row."""
    import torch

    where: dict[str, Any] = {"generator": generator, "device": values.device}
    rows = values.view(-1, values.shape[-1] if values.ndim > 1 else 1)
    count = rows.shape[0]
    kinds = torch.randint(8, (count, 1), **where)
    kinds[torch.randint(count, (), **where)] = torch.randint(3, (1,), **where)
    odd = torch.tensor([float("nan"), float("inf"), float("-inf")], device=values.device)[kinds.clamp(max=2)]
    at = torch.randint(rows.shape[1], (count, 1), **where)
    rows.scatter_(1, at, torch.where(kinds < 3, odd, rows.gather(1, at)))
    return values
