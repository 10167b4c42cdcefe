"""Observation of the PyTorch operators that run on this thread."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

ALLOCATES = frozenset(("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"))
"""PyTorch's operators that return uninitialized memory."""

OperatorCallback = Callable[[str, Any, Any], None]
"""Callback with an operator's name (`aten.empty_like`), its arguments and its result."""


def allocates(name: str) -> bool:
    """Return True for an operator that returns uninitialized memory."""
    return name.removeprefix("aten.") in ALLOCATES


def observe_operators(report: OperatorCallback) -> AbstractContextManager[Any]:
    """Return a context that calls `report` after each operator; operators that `report` runs itself are not
    observed."""

    def keep(name: str, arguments: Any, result: Any) -> Any:  # noqa: ANN401
        report(name, arguments, result)
        return result

    return _dispatch_mode(keep)


def replace_results(replace: Callable[[str, Any], Any]) -> AbstractContextManager[Any]:
    """Return a context in which each operator gives what `replace` makes of its name and its result."""
    return _dispatch_mode(lambda name, _, result: replace(name, result))


def _dispatch_mode(result_of: Callable[[str, Any, Any], Any]) -> AbstractContextManager[Any]:
    from torch.utils._python_dispatch import TorchDispatchMode

    class DispatchObserver(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return (
                "torch._dynamo" in sys.modules
            )  # Nothing compiles before it is imported, and the import takes two seconds.

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            name = f"{function.namespace}.{function._schema.name.partition('::')[2]}"
            return result_of(name, (args, kwargs), function(*args, **(kwargs or {})))

    return DispatchObserver()  # type: ignore[no-untyped-call]
