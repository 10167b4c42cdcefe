"""Captured tensors: values of real calls in a file beside a definition, which workloads draw from.

A draw takes one call of the workload's shape: integers as they are, since they fit each other, and every
floating-point value times a random factor near 1, so that no call repeats. At any other shape floating-point rows
are drawn from those of all calls, and integers by their specs.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.errors import BadDefinition, MachineLacks, MissingInput
from warpsmith.packages import install_command

if TYPE_CHECKING:
    import torch

FILE = "captured.safetensors"
"""File of the tensors, next to the definition."""

_KIND, _DIGITS = "captured", 16
_CALLS = "calls"

_CHANGE = 1 / 16
"""Largest relative change of a captured value, so that no draw repeats: bfloat16 has 16 steps in it."""


def digest_form(data: bytes) -> str:
    """Return the distribution that draws from a file with these bytes: `captured:<16 digits of its SHA-256>`."""
    return f"{_KIND}:{hashlib.sha256(data).hexdigest()[:_DIGITS]}"


def split_form(distribution: str) -> str:
    """Return the digits of a distribution `captured:<digits>`; empty for any other distribution."""
    kind, _, digits = distribution.partition(":")
    return digits if kind == _KIND else ""


def require_safetensors(subject: str) -> None:
    """Check that safetensors is installed.

    Args:
        subject: what needs it, as the beginning of a sentence.

    Raises:
        MachineLacks: it is missing.
    """
    if find_spec("safetensors") is None:
        raise MachineLacks(f"{subject} needs safetensors, which is missing: run `{install_command('capture')}`.")


@dataclass(frozen=True)
class CapturedCall:
    """One call: its shape, and where its tensors are."""

    axes: dict[str, int]
    """Size of every variable axis."""
    keys: dict[str, str]
    """Key of a tensor in the file, by input. Calls share the tensors that are equal."""


@dataclass(frozen=True)
class CapturedCalls:
    """Calls of one file with their tensors on the CPU."""

    calls: tuple[CapturedCall, ...]
    """Calls in the order of the trace."""
    tensors: Mapping[str, torch.Tensor]
    """Tensors by key."""

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        from safetensors.torch import save

        calls = [{"axes": call.axes, "tensors": call.keys} for call in self.calls]
        content: bytes = save(dict(self.tensors), metadata={_CALLS: json.dumps(calls)})
        return content

    def choose_calls(self, axes: Mapping[str, int], count: int, generator: torch.Generator) -> list[int | None]:
        """Choose `count` calls of a shape by chance; None for each if there is no such call."""
        import torch

        fits = [number for number, call in enumerate(self.calls) if call.axes == dict(axes)]
        if not fits:
            return [None] * count
        picks = torch.randint(len(fits), (count,), generator=generator, device=generator.device)
        return [fits[pick] for pick in picks.tolist()]

    def draw_input(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        calls: Sequence[int | None],
        generator: torch.Generator,
    ) -> list[torch.Tensor] | None:
        """Draw one input for each of the chosen calls, on the generator's device; None if the file lacks it."""
        import torch

        torch_dtype = getattr(torch, dtype)
        drawn = []
        for number in calls:
            key = self.calls[number].keys.get(name) if number is not None else None
            if key is not None and tuple(self.tensors[key].shape) == shape:
                tensor = self.tensors[key].to(generator.device)
                drawn.append(_vary(tensor, generator) if is_floating(dtype) else tensor.clone())
            elif is_floating(dtype) and (keys := self._keys(name)):
                pick = int(torch.randint(len(keys), (), generator=generator, device=generator.device))
                tensor = self.tensors[keys[pick]].to(generator.device)
                drawn.append(_vary(_resample(tensor, shape, generator), generator))
            else:
                return None
        return [tensor.to(torch_dtype) for tensor in drawn]

    def _keys(self, name: str) -> list[str]:
        """List the tensors of one input that have values."""
        keys = dict.fromkeys(call.keys[name] for call in self.calls if name in call.keys)
        return [key for key in keys if self.tensors[key].numel()]


@functools.lru_cache(maxsize=4)
def load_calls(path: Path, digest: str) -> CapturedCalls:
    """Load the calls of a file.

    Args:
        path: the file.
        digest: the first digits of its SHA-256, as the definition has them.

    Raises:
        MissingInput: there is no such file.
        BadDefinition: its content is not the content that was captured.
        MachineLacks: safetensors is not installed.
    """
    if not path.is_file():
        raise MissingInput(f"{path} does not exist; restore it, or capture the operator again.")
    data = path.read_bytes()
    if not digest or not hashlib.sha256(data).hexdigest().startswith(digest):
        raise BadDefinition(
            f"{path} does not hold the tensors that were captured: its SHA-256 does not begin with {digest}; "
            "restore it, or capture the operator again."
        )
    require_safetensors(str(path))
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import load

    try:
        tensors = load(data)
        with safe_open(path, framework="pt") as file:
            calls: list[dict[str, Any]] = json.loads((file.metadata() or {})[_CALLS])
        return CapturedCalls(tuple(CapturedCall(call["axes"], call["tensors"]) for call in calls), tensors)
    except (SafetensorError, KeyError, ValueError) as error:
        raise BadDefinition(f"{path} is not a file of captured calls: {type(error).__name__}: {error}.") from error


def _vary(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Multiply every value by a random factor near 1; zeros, infinities and NaN stay."""
    import torch

    wide = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    factors = torch.rand(tensor.shape, generator=generator, device=tensor.device, dtype=wide)
    factors = factors.mul_(2).sub_(1).mul_(_CHANGE).add_(1)
    return factors.mul_(tensor.to(wide))


def _resample(tensor: torch.Tensor, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Fill a shape with rows of a tensor, or with single values if its rows have another shape."""
    import torch

    options: dict[str, Any] = {"generator": generator, "device": generator.device}
    if shape and tuple(tensor.shape[1:]) == shape[1:]:
        return tensor[torch.randint(tensor.shape[0], shape[:1], **options)]
    return tensor.flatten()[torch.randint(tensor.numel(), shape, **options)]
