"""Compiled libraries that peers call: found in one way, loaded once, and named with how to install them."""

from __future__ import annotations

import functools
from importlib.util import find_spec
from pathlib import Path
from typing import Any

VLLM = "vllm==0.26.0"
"""The release that peers are written for: the one for torch 2.11."""


@functools.cache
def vllm(namespace: str) -> Any:  # noqa: ANN401 - torch.ops has no better type
    """vLLM's operators of a namespace, `_C` or `_moe_C`, without importing vLLM: a folder `vllm` on sys.path that
    holds the library is enough, and several such folders are read as one.

    Raises:
        ImportError: it is not there, or does not load; with how to install it.
    """
    import torch

    operators: Any = torch.ops
    found = find_spec("vllm")
    places = (found.submodule_search_locations or ()) if found else ()
    libraries = sorted(path for place in places for path in Path(place).glob(f"{namespace}*.so"))
    how = f"pip install {VLLM}, or unpack vllm/{namespace}*.so of its wheel into a folder on PYTHONPATH"
    if not libraries:
        raise ImportError(f"vLLM's operators are missing: {how}.")
    try:
        for path in libraries:
            operators.load_library(path)
    except OSError as error:
        raise ImportError(f"vLLM's operators do not load ({error}): {how}.") from error
    return getattr(operators, namespace)
