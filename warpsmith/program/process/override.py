"""Override: another implementation of one of PyTorch's operators, that can fall back on PyTorch's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from warpsmith.errors import MachineLacks
from warpsmith.program.process import operator_values

if TYPE_CHECKING:
    import torch

OverrideHandler = Callable[[Any, Any, Any, Callable[[], Any]], Any]
"""Called with the operator, its arguments, those by name, and what runs PyTorch's own implementation."""


@contextmanager
def override_library() -> Iterator[torch.library.Library]:
    """A place for overrides that are gone when the block ends."""
    import torch

    with torch.library._scoped_library("aten", "IMPL") as found:
        yield found


def override_operator(
    library: torch.library.Library, operator: Any, handler: OverrideHandler, device: str = ""
) -> None:  # noqa: ANN401
    """Have `handler` called in place of an operator, on `device` (`cpu`, `cuda`) or wherever PyTorch runs.

    An operator that consists of others is replaced before autograd takes it apart; any other one below autograd,
    so that its gradient stays PyTorch's.

    Raises:
        MachineLacks: this PyTorch cannot hand out its own implementation.
    """
    import torch

    if not hasattr(torch.library, "get_kernel"):
        raise MachineLacks(f"PyTorch {torch.__version__} cannot put an operator's own kernel aside; update it.")
    devices = [device] if device else ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    keys = [
        f"{level}{one.upper()}"
        for one in devices
        for level in (("", "Autograd") if operator_values.is_composite(operator, one) else ("",))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # PyTorch's own, that something is overridden
        # All are asked for before the first is replaced: that changes what autograd's key would run.
        own = {key: torch.library.get_kernel(operator, key) for key in keys}
        for key, kernel in own.items():
            library.impl(operator, _implementation(operator, handler, kernel), key, with_keyset=True)  # type: ignore[no-untyped-call]


def _implementation(operator: Any, handler: OverrideHandler, own: Any) -> Callable[..., Any]:  # noqa: ANN401
    def run(keys: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return handler(operator, args, kwargs, lambda: own.call_boxed(keys, *args, **kwargs))

    return run
