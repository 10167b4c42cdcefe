"""Direct calls of the CUDA driver, for functions that PyTorch does not wrap."""

from __future__ import annotations

import ctypes
from functools import cache

from warpsmith.errors import MachineFailed


def call_driver(name: str, *arguments: object) -> None:
    """Call a function of the driver.

    Args:
        name: its name, such as `cuModuleLoadData`.
        arguments: ctypes arguments.

    Raises:
        MachineFailed: the driver returns an error.
    """
    code = getattr(_driver(), name)(*arguments)
    if code:
        raise MachineFailed(
            f"The CUDA driver refused {name} with error {code}; check whether the GPU is shared or in a bad state."
        )


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")
