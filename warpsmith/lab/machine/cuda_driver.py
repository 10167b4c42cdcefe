"""The CUDA driver's own functions, for what PyTorch has none."""

from __future__ import annotations

import ctypes
from functools import cache

from warpsmith.errors import MachineFailed


def call_driver(name: str, *arguments: object) -> None:
    """Call a function of the driver.

    Args:
        name: `cuModuleLoadData`.
        arguments: as ctypes takes them.

    Raises:
        MachineFailed: it refuses.
    """
    code = getattr(_driver(), name)(*arguments)
    if code:
        raise MachineFailed(
            f"The CUDA driver refused {name} with error {code}; is the GPU shared or in a bad state?"
        )


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")
