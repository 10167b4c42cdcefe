"""In the program's process: leaves of a step's value by path, summaries of tensors, and the program's modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

_MOST_DEPTH, _MOST_ITEMS = 4, 1000
"""Limits of the search for modules: depth of containers, and their length."""


def list_leaves(value: object, path: str = "value") -> Iterator[tuple[str, Any]]:
    """Yield the numbers and tensors of a value with their paths; other objects are left out."""
    import torch

    if isinstance(value, torch.Tensor | bool | int | float):
        yield path, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from list_leaves(part, f"{path}.{key}")
    elif isinstance(value, tuple | list):
        for index, part in enumerate(value):
            yield from list_leaves(part, f"{path}.{index}")


def copy_leaves(value: object, *, whole: bool) -> dict[str, Any]:
    """Copy a value's leaves, so that no later step changes them; without `whole`, only figures of tensors.

    The copies are queued on the device without a wait, before the next step writes to a static output.
    """
    import torch

    return {
        path: (leaf.detach().clone() if whole or leaf.numel() == 1 else _tensor_figures(leaf.detach()))
        if isinstance(leaf, torch.Tensor)
        else float(leaf)
        for path, leaf in list_leaves(value)
    }


def summarize_leaves(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return copied leaves as JSON for `StepValues`; wait for the device."""
    return {path: _summarize_leaf(leaf) for path, leaf in values.items()}


def summarize_state(outermost: Mapping[str, nn.Module]) -> dict[str, Any]:
    """Summarize every parameter and buffer of these modules by name, shared tensors once.

    Names leave out the wrapper of a compiled module.
    """
    figures: dict[str, Any] = {}
    visited: set[int] = set()
    for name, module in outermost.items():
        for path, tensor in (*module.named_parameters(name), *module.named_buffers(name)):
            if id(tensor) not in visited:
                visited.add(id(tensor))
                figures[path.replace("_orig_mod.", "")] = _tensor_figures(tensor.detach())
    return {path: _format_summary(*fields) for path, fields in figures.items()}


def find_modules(globals_: Mapping[str, Any], setup_result: object) -> dict[str, nn.Module]:
    """Find the outermost modules in the program's globals and its setup's result, by name.

    The search covers tuples, lists, dicts and attributes of the program's own objects. If it finds none, all
    modules of the process are taken.
    """
    reachable: dict[str, nn.Module] = {}
    for name, value in (*globals_.items(), ("setup", setup_result)):
        if not name.startswith("__"):
            _collect_modules(name, value, globals_.get("__name__"), reachable, set(), _MOST_DEPTH)
    modules = reachable or {f"{type(item).__name__}.{index}": item for index, item in enumerate(_live_modules())}
    inner = {id(part) for module in modules.values() for part in module.modules() if part is not module}
    visited: set[int] = set()
    outermost = {}
    for name, module in modules.items():
        if id(module) not in inner | visited:
            visited.add(id(module))
            outermost[name] = module
    return outermost


def _live_modules() -> Iterator[nn.Module]:
    import gc

    from torch import nn

    return (item for item in gc.get_objects() if issubclass(type(item), nn.Module))


def _collect_modules(
    name: str,
    value: object,
    home: str | None,
    modules: dict[str, nn.Module],
    visited: set[int],
    depth: int,
) -> None:
    """Add the modules in a value to `modules`; objects are searched if their class is from the module `home`."""
    from torch import nn

    if depth < 0 or id(value) in visited:
        return
    visited.add(id(value))
    if issubclass(type(value), nn.Module):
        modules[name] = value  # type: ignore[assignment]
        return
    if isinstance(value, dict) and len(value) <= _MOST_ITEMS:
        parts = [(str(key), part) for key, part in value.items()]
    elif isinstance(value, tuple | list) and len(value) <= _MOST_ITEMS:
        parts = [(str(index), part) for index, part in enumerate(value)]
    elif type(value).__module__ == home:
        parts = list(getattr(value, "__dict__", {}).items())
    else:
        return
    for key, part in parts:
        _collect_modules(f"{name}.{key}", part, home, modules, visited, depth - 1)


_TensorFigures = tuple[tuple[int, ...], str, "Tensor | None", "Tensor | None"]


def _tensor_figures(tensor: Tensor) -> _TensorFigures:
    """Return shape, dtype, norm and mean of a tensor; the device may still compute them."""
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
