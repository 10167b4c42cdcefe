"""Calls of a definition's functions: the reference and its hooks, as they are and in float64 throughout."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

from warpsmith.core.definition import Workload
from warpsmith.errors import BadDefinition
from warpsmith.lab.operator.definition_file import DefinitionFile

if TYPE_CHECKING:
    import torch


def run_wide(
    file: DefinitionFile,
    function: Any,  # noqa: ANN401
    workload: Workload,
    wide: dict[str, torch.Tensor],
) -> dict[str, Any]:
    """Call a function of the definition in float64 throughout."""
    with warnings.catch_warnings(), float64_mode()():
        warnings.simplefilter("ignore", UserWarning)  # of nothing to take a mean of, where an axis is empty
        result = call_function(file, function, workload, wide)
        return {name: t.double() if t.is_floating_point() else t for name, t in result.items()}


def call_function(
    file: DefinitionFile,
    function: Any,  # noqa: ANN401
    workload: Workload,
    inputs: dict[str, torch.Tensor],
) -> dict[str, Any]:
    """Call a function of the definition and return its outputs by name.

    Raises:
        BadDefinition: the function fails.
    """
    import torch

    try:
        with torch.no_grad():
            results = file.outputs(function(*file.arguments(workload, inputs)))
        strange = [name for name, value in results.items() if not isinstance(value, torch.Tensor)]
        if strange:
            raise TypeError(f"{', '.join(strange)} is no tensor")
        return results
    except BadDefinition:
        raise
    except Exception as error:
        message = " ".join(str(error).split())[:300]
        raise BadDefinition(
            f"{file.path}: {function.__name__}() fails at {workload.name}: {type(error).__name__}: {message}"
        ) from error


@functools.cache
def float64_mode() -> Any:  # noqa: ANN401 - a class of torch, which is imported late
    """Return the context in which conversions to a narrower floating type inside a reference stay float64."""
    import torch
    from torch.overrides import TorchFunctionMode

    conversions = {"float", "half", "bfloat16"}

    def widen(value: object) -> object:
        return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value

    class Float64Mode(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            if getattr(function, "__name__", "") in conversions and len(args) == 1:
                return args[0].double()
            kwargs = {key: widen(value) for key, value in (kwargs or {}).items()}
            return function(*(widen(value) for value in args), **kwargs)

    return Float64Mode
