"""In a user's program: accepted kernels in place of PyTorch's operators, behind one switch.

`WARPSMITH_KERNELS=0` leaves every operator PyTorch's own. A program never fails for want of a kernel: then it is
warned, once, and runs as without.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpsmith.core.definition import Definition
from warpsmith.errors import WarpsmithError
from warpsmith.program.operators import extraction_file, layout
from warpsmith.program.operators.models import ArgumentSource, Extraction
from warpsmith.program.process import operator_values, override
from warpsmith.program.process.operator_values import OperatorArgument

if TYPE_CHECKING:
    import torch

SWITCH = "WARPSMITH_KERNELS"
"""The environment variable; `0` switches all kernels off."""

_libraries: dict[str, torch.library.Library] = {}
"""By operator; an override is there as long as its library is."""
_thread = threading.local()


def enabling_line(op: str) -> str:
    """What stands at the top of a program that uses a kernel."""
    return f'from warpsmith import enable; enable("{op}")  # {SWITCH}=0 switches it off'


def enable(op: str) -> bool:
    """Put the best accepted version of an operator in place of PyTorch's, for calls that its definition covers.

    The definition is that of the project which the calling file lies in. Returns whether it is in place.
    """
    if os.environ.get(SWITCH, "").strip() == "0" or op in _libraries:
        return op in _libraries
    folder = Path(str(sys._getframe(1).f_globals.get("__file__", "."))).resolve().parent
    try:
        with contextlib.chdir(folder):
            _install(op)
    except (WarpsmithError, OSError) as error:
        warnings.warn(f"{op}: {str(error).rstrip('.')}; PyTorch's own operator runs.", stacklevel=2)
    return op in _libraries


def disable() -> None:
    """Have all operators PyTorch's own again."""
    while _libraries:
        _libraries.popitem()[1]._destroy()  # type: ignore[no-untyped-call]


def _install(op: str) -> None:
    import torch

    from warpsmith.lab.operator import definition_file
    from warpsmith.use import choice
    from warpsmith.use.operator import best_accepted

    here = choice.find_owning_project(op)
    extraction = extraction_file.read_extraction(here, op)
    device = extraction_device(extraction)
    file = definition_file.load_definition(here.definition(op))
    function = best_accepted(here, file, device)
    operator = operator_values.find_operator(extraction.operator)
    library = torch.library.Library(extraction.operator.partition("::")[0], "IMPL")  # type: ignore[no-untyped-call]
    composite = operator_values.is_composite(operator, device)
    override.override_operator(
        library, operator, _make_handler(extraction, file.definition, function, composite), device
    )
    _libraries[op] = library


def extraction_device(extraction: Extraction) -> str:
    """`cpu` or `cuda`: where the operator was recorded."""
    return "cpu" if extraction.device == "cpu" else "cuda"


def _make_handler(
    extraction: Extraction, definition: Definition, function: Callable[..., Any], composite: bool
) -> override.OverrideHandler:
    import torch

    covered = CoveredCalls(extraction, definition)
    listed = operator_values.returns_tensor_list(operator_values.find_operator(extraction.operator))

    def handler(operator: Any, args: Any, kwargs: Any, run: Callable[[], Any]) -> Any:  # noqa: ANN401
        if getattr(_thread, "inside", False):
            return run()
        given = operator_values.bind_arguments(operator, args, kwargs)
        values = [one.value for one in given]
        if not covered(given) or (composite and _wants_gradient(values)):
            return run()
        _thread.inside = True
        try:
            with torch.no_grad():  # below autograd, which records PyTorch's own operator
                found = _operator_results(extraction, function(*_definition_inputs(extraction.slots, values)))
        finally:
            _thread.inside = False
        return found if listed else found[0] if len(found) == 1 else tuple(found)

    return handler


def _definition_inputs(slots: Sequence[ArgumentSource], values: Sequence[Any]) -> list[Any]:
    """The definition's inputs out of the operator's arguments."""
    return [
        value.permute(layout.inverse_order(slot.order)) if slot.order is not None else value
        for slot, value in zip(slots, values, strict=True)
        if slot.input is not None
    ]


def _operator_results(extraction: Extraction, found: Any) -> list[Any]:  # noqa: ANN401
    """The operator's results out of the definition's."""
    given = iter(found if isinstance(found, tuple | list) else (found,))
    return [None if one.output is None else _permuted(next(given), one.order) for one in extraction.results]


def _permuted(tensor: Any, order: Sequence[int] | None) -> Any:  # noqa: ANN401
    return tensor if order is None else tensor.permute(order)


def _wants_gradient(values: Sequence[Any]) -> bool:
    import torch

    return torch.is_grad_enabled() and any(isinstance(one, torch.Tensor) and one.requires_grad for one in values)


class CoveredCalls:
    """Whether calls are those that a definition was judged at: asked once for each way of calling."""

    def __init__(self, extraction: Extraction, definition: Definition) -> None:
        self._slots, self._definition = extraction.slots, definition
        self._device = extraction_device(extraction)
        self._workloads = [one for one in definition.workloads if one.timed]
        self._known: dict[tuple[Any, ...], bool] = {}

    def __call__(self, given: Sequence[OperatorArgument]) -> bool:
        """Whether the definition's workloads have such a call."""
        key = tuple((one.element, _call_key(one.value)) for one in given)
        try:
            return self._known[key]
        except KeyError:
            self._known[key] = found = self._covers(given)
            return found
        except TypeError:  # something that has no hash
            return False

    def _covers(self, given: Sequence[OperatorArgument]) -> bool:
        if [(one.argument, one.element) for one in given] != [(one.argument, one.element) for one in self._slots]:
            return False  # a list is longer or shorter
        pairs = [(slot, one.value) for slot, one in zip(self._slots, given, strict=True)]
        return all(self._is_like(slot, value) for slot, value in pairs) and self._has_workload(pairs)

    def _is_like(self, slot: ArgumentSource, value: object) -> bool:
        """Whether a value is of the sort that the definition has there, whatever its sizes."""
        import torch

        if slot.input is None:
            return not isinstance(value, torch.Tensor) and self._is_constant(slot, value)
        if slot.input in self._definition.tensor_inputs:
            return isinstance(value, torch.Tensor) and self._lies(slot, value)
        return isinstance(value, float)

    def _has_workload(self, pairs: Sequence[tuple[ArgumentSource, Any]]) -> bool:
        """Whether tensors have the sizes and types of a workload, all of them of the same one."""
        specs = self._definition.tensor_inputs
        tensors = [
            (
                specs[slot.input],
                layout.stored_shape(value.shape, slot.order),
                str(value.dtype).removeprefix("torch."),
            )
            for slot, value in pairs
            if slot.input in specs
        ]
        return any(
            all(
                list(self._definition.shape(spec, one)) == shape and self._definition.dtype(spec, one) == dtype
                for spec, shape, dtype in tensors
            )
            for one in self._workloads
        )

    def _lies(self, slot: ArgumentSource, value: torch.Tensor) -> bool:
        """Whether a plain tensor is on the device and lies in memory as the definition has it."""
        import torch

        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.device.type != self._device:
            return False
        if value.layout != torch.strided or value.is_conj() or value.is_neg():
            return False
        if self._definition.tensor_inputs[str(slot.input)].layout == "any":
            return True
        order = slot.order or tuple(range(value.dim()))
        if len(order) != value.dim():
            return False
        stored = value.permute(layout.inverse_order(order))
        return layout.is_contiguous(stored.shape, stored.stride())

    def _is_constant(self, slot: ArgumentSource, value: object) -> bool:
        if slot.trailing:
            return isinstance(value, list | tuple) and len(value) == slot.trailing
        try:
            return operator_values.argument_source(value) == slot.source
        except TypeError:
            return False


def _call_key(value: object) -> object:
    """What tells ways of calling apart."""
    import torch

    if isinstance(value, torch.Tensor):
        return (type(value), value.device.type, value.dtype, value.shape, value.stride())
    if isinstance(value, list | tuple):
        return tuple(value)
    return (type(value), value)
