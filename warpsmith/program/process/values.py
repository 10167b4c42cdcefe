"""In the program's process: what steps return and modules hold, as leaves with paths and in a few figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

_MOST_DEPTH, _MOST_ITEMS = 4, 1000
"""How far modules are looked for: containers in containers, and their length."""


def list_leaves(value: object, path: str = "value") -> Iterator[tuple[str, Any]]:
    """Numbers and tensors of a value with their paths; anything else is passed over."""
    import torch

    if isinstance(value, torch.Tensor | bool | int | float):
        yield path, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from list_leaves(part, f"{path}.{key}")
    elif isinstance(value, tuple | list):
        for place, part in enumerate(value):
            yield from list_leaves(part, f"{path}.{place}")


def copy_leaves(value: object, *, whole: bool) -> dict[str, Any]:
    """A value's leaves, safe from what later steps do to them; without `whole` only figures of large tensors.

    Nothing waits for the device: a step that returns the static output of a CUDA graph is copied in time.
    """
    import torch

    return {
        path: (leaf.detach().clone() if whole or leaf.numel() == 1 else _tensor_figures(leaf.detach()))
        if isinstance(leaf, torch.Tensor)
        else float(leaf)
        for path, leaf in list_leaves(value)
    }


def summarize_leaves(values: Mapping[str, Any]) -> dict[str, Any]:
    """The leaves as `core.program.Values` wants them; waits for the device."""
    return {path: _summarize_leaf(leaf) for path, leaf in values.items()}


def summarize_state(named: Mapping[str, nn.Module]) -> dict[str, Any]:
    """Every parameter and buffer of these modules, by name; one that is shared comes once.

    A compiled module's are named as the module's own.
    """
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for name, module in named.items():
        for path, tensor in (*module.named_parameters(name), *module.named_buffers(name)):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                found[path.replace("_orig_mod.", "")] = _tensor_figures(tensor.detach())
    return {path: _format_summary(*figures) for path, figures in found.items()}


def find_modules(globals_: Mapping[str, Any], given: object) -> dict[str, nn.Module]:
    """The outermost modules that the program's globals or its setup's result hold, by name.

    Looked for in tuples, lists, dicts and in the attributes of the program's own objects; where there is none, all
    modules of the process.
    """
    found: dict[str, nn.Module] = {}
    for name, value in (*globals_.items(), ("setup", given)):
        if not name.startswith("__"):
            _collect_modules(name, value, globals_.get("__name__"), found, set(), _MOST_DEPTH)
    everything = found or {f"{type(each).__name__}.{place}": each for place, each in enumerate(_live_modules())}
    inner = {id(part) for each in everything.values() for part in each.modules() if part is not each}
    seen: set[int] = set()
    outer = {}
    for name, each in everything.items():
        if id(each) not in inner | seen:
            seen.add(id(each))
            outer[name] = each
    return outer


def _live_modules() -> Iterator[nn.Module]:
    import gc

    from torch import nn

    return (each for each in gc.get_objects() if issubclass(type(each), nn.Module))


def _collect_modules(
    name: str, value: object, home: str | None, found: dict[str, nn.Module], seen: set[int], depth: int
) -> None:
    from torch import nn

    if depth < 0 or id(value) in seen:
        return
    seen.add(id(value))
    if issubclass(type(value), nn.Module):
        found[name] = value  # type: ignore[assignment]
        return
    if isinstance(value, dict) and len(value) <= _MOST_ITEMS:
        parts = [(str(key), part) for key, part in value.items()]
    elif isinstance(value, tuple | list) and len(value) <= _MOST_ITEMS:
        parts = [(str(place), part) for place, part in enumerate(value)]
    elif type(value).__module__ == home:
        parts = list(getattr(value, "__dict__", {}).items())
    else:
        return
    for key, part in parts:
        _collect_modules(f"{name}.{key}", part, home, found, seen, depth - 1)


_TensorFigures = tuple[tuple[int, ...], str, "Tensor | None", "Tensor | None"]


def _tensor_figures(tensor: Tensor) -> _TensorFigures:
    """Shape, dtype, norm and mean; the device has not computed them yet."""
    import torch

    shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
    if tensor.numel() == 0 or tensor.is_meta or tensor.is_quantized:
        return shape, dtype, None, None
    dense = tensor.to_dense() if tensor.layout != torch.strided else tensor
    real = torch.view_as_real(dense.resolve_conj()) if dense.is_complex() else dense
    flat = real.double()
    return shape, dtype, torch.linalg.vector_norm(flat), flat.mean()


def _summarize_leaf(leaf: Any) -> Any:  # noqa: ANN401 - a number, a tensor or figures
    import torch

    if isinstance(leaf, float):
        return leaf
    if isinstance(leaf, torch.Tensor):
        if leaf.numel() == 1 and not leaf.is_complex():
            return float(leaf)
        leaf = _tensor_figures(leaf)
    return _format_summary(*leaf)


def _format_summary(
    shape: tuple[int, ...], dtype: str, norm: Tensor | None, mean: Tensor | None
) -> dict[str, Any]:
    import math

    figures = [None if figure is None else float(figure) for figure in (norm, mean)]
    fine = [figure is not None and math.isfinite(figure) for figure in figures]
    return {
        "shape": shape,
        "dtype": dtype,
        "norm": figures[0] if fine[0] else None,
        "mean": figures[1] if fine[1] else None,
        "finite": norm is None or all(fine),
    }
