"""Dispatch: PyTorch's operators on this thread, told one by one after they ran."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

OperatorCallback = Callable[[str, Any, Any], None]
"""An operator's name (`aten.empty_like`), its arguments, and what it returned."""


def observe_operators(tell: OperatorCallback) -> AbstractContextManager[Any]:
    """While it is entered, `tell` is called after each operator; what `tell` runs itself is not told."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Listening(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return "torch._dynamo" in sys.modules  # nothing compiles without it, and its import takes two seconds

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            result = function(*args, **(kwargs or {}))
            tell(f"{function.namespace}.{function._schema.name.partition('::')[2]}", (args, kwargs), result)
            return result

    return Listening()  # type: ignore[no-untyped-call]
