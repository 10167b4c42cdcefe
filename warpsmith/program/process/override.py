"""Overrides of PyTorch's operators, which can fall back on PyTorch's own implementation."""

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
"""Function of the operator, its positional and keyword arguments, and a call of PyTorch's implementation."""


@contextmanager
def override_library() -> Iterator[torch.library.Library]:
    """Yield a library for overrides, which are removed when the block ends."""
    import torch

    with torch.library._scoped_library("aten", "IMPL") as library:
        yield library


def override_operator(
    library: torch.library.Library,
    operator: Any,  # noqa: ANN401 - OpOverload
    handler: OverrideHandler,
    device: str = "",
) -> None:
    """Call `handler` in place of an operator, on `device` (`cpu` or `cuda`) or on all devices of this machine.

    A composite operator is replaced above autograd, any other operator below it, so that its gradient stays
    PyTorch's.

    Raises:
        MachineLacks: this version of PyTorch does not hand out its own implementation.
    """
    import torch

    if not hasattr(torch.library, "get_kernel"):
        raise MachineLacks(
            f"PyTorch {torch.__version__} does not hand out the kernels of its operators; update PyTorch."
        )
    devices = [device] if device else ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    keys = [
        f"{level}{name.upper()}"
        for name in devices
        for level in (("", "Autograd") if operator_values.is_composite(operator, name) else ("",))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # PyTorch warns of overrides
        # Get all kernels before the first is replaced: a replacement changes the one behind autograd's key.
        kernels = {key: torch.library.get_kernel(operator, key) for key in keys}
        for key, kernel in kernels.items():
            library.impl(operator, _implementation(operator, handler, kernel), key, with_keyset=True)  # type: ignore[no-untyped-call]


def _implementation(operator: Any, handler: OverrideHandler, kernel: Any) -> Callable[..., Any]:  # noqa: ANN401
    def run(keys: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return handler(operator, args, kwargs, lambda: kernel.call_boxed(keys, *args, **kwargs))

    return run
