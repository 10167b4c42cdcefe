"""Observation of the PyTorch operators that run on this thread."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

OperatorCallback = Callable[[str, Any, Any], None]
"""Callback with an operator's name (`aten.empty_like`), its arguments and its result."""


def observe_operators(report: OperatorCallback) -> AbstractContextManager[Any]:
    """Return a context that calls `report` after each operator; operators that `report` runs itself are not
    observed."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class DispatchObserver(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return (
                "torch._dynamo" in sys.modules
            )  # Nothing compiles before it is imported, and the import takes two seconds.

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            result = function(*args, **(kwargs or {}))
            report(f"{function.namespace}.{function._schema.name.partition('::')[2]}", (args, kwargs), result)
            return result

    return DispatchObserver()  # type: ignore[no-untyped-call]
