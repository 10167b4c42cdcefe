"""Inputs that nobody saw before, drawn by the grader for every call."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.core.dtype import is_floating
from warpsmith.core.expression import evaluate
from warpsmith.errors import BadDefinition
from warpsmith.lab.definition_file import DefinitionFile

if TYPE_CHECKING:
    import torch

ADVERSARIAL = ("large", "tiny", "shifted", "constant", "scaled_rows", "sorted")
"""Distributions that correctness is also judged at, where the reference itself holds its bound."""

DISTRIBUTIONS = ("normal", "uniform", "masked", *ADVERSARIAL)
"""How floating-point inputs can be drawn; `masked` has minus infinity in the first half of the last axis."""


_BLOCK = 1_000_003
"""Values that a quick draw repeats: a prime, so that rows of no usual length begin alike."""


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
            BadDefinition: the definition's own generator fails, or a distribution is unknown.
        """
        if self._file.inputs is not None:
            return self._own()
        specs = self._definition.tensor_inputs
        return {name: self._tensor(spec, distribution, quick) for name, spec in specs.items()}

    @property
    def adversarial(self) -> tuple[str, ...]:
        """The further distributions that apply: none where the definition draws its own inputs."""
        return () if self._file.inputs is not None else ADVERSARIAL

    def _own(self) -> dict[str, torch.Tensor]:
        assert self._file.inputs is not None
        try:
            drawn: dict[str, torch.Tensor] = self._file.inputs(self._workload, self._generator, self._device)
        except Exception as error:
            raise BadDefinition(f"{self._file.path}: inputs() fails: {type(error).__name__}: {error}") from error
        if set(drawn) != set(self._definition.tensor_inputs):
            raise BadDefinition(f"{self._file.path}: inputs() must return {list(self._definition.tensor_inputs)}.")
        return drawn

    def _tensor(self, spec: TensorSpec, distribution: str | None, quick: bool) -> torch.Tensor:
        import torch

        shape = self._definition.shape(spec, self._workload)
        dtype = self._definition.dtype(spec, self._workload)
        how = self._workload.distribution if spec.distribution == "workload" else spec.distribution
        if not is_floating(dtype):
            return self._integers(how, shape, dtype)
        if distribution is not None and spec.distribution == "workload":
            how = distribution
        if how not in DISTRIBUTIONS:
            known = ", ".join(DISTRIBUTIONS)
            raise BadDefinition(f"{self._file.path}: unknown distribution `{how}`; known: {known}.")
        normal = self._repeated if quick and self._device == "cpu" else self._normal
        values = normal(shape)
        return _shape_values(how, values, self._generator).to(getattr(torch, dtype))

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
        """`integers:<low>:<high>` with arithmetic over axes; by default 0 to 127, booleans 0 to 1."""
        import torch

        axes = self._definition.sizes(self._workload)
        bounds = how.split(":")[1:] if how.startswith("integers:") else ["0", "2" if dtype == "bool" else "128"]
        low, high = (int(evaluate(bound, axes)) for bound in bounds)
        drawn = torch.randint(low, high, shape, generator=self._generator, device=self._device)
        return drawn.to(getattr(torch, dtype))


def _shape_values(how: str, values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    import torch

    match how:
        case "uniform":
            return torch.rand(values.shape, generator=generator, device=values.device)
        case "large":
            return values * 50
        case "tiny":
            return values * 1e-3
        case "shifted":
            return values + 3
        case "constant":
            return torch.full_like(values, float(values.flatten()[0]) if values.numel() else 0.0)
        case "scaled_rows" if values.ndim:
            rows = (values.shape[0],) + (1,) * (values.ndim - 1)
            powers = torch.randint(-6, 6, rows, generator=generator, device=values.device)
            return values * torch.exp2(powers.to(values.dtype))
        case "masked" if values.ndim:
            values[..., : values.shape[-1] // 2] = float("-inf")
            return values
        case "sorted" if values.ndim:
            return values.sort(dim=-1).values
        case _:
            return values
