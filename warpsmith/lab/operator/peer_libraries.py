"""Compiled libraries that peers call: each is loaded once, and an error says how to install it."""

from __future__ import annotations

import functools
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

VLLM = "vllm==0.26.0"
"""Release that the peers are written for, which is the one for torch 2.11."""


@functools.cache
def vllm(namespace: str) -> Any:  # noqa: ANN401 - torch.ops has no better type
    """Return vLLM's operators of a namespace, such as `_C` or `_vllm_fa3_C`, without importing vLLM.

    A folder `vllm` on sys.path that holds the library is enough; several such folders are searched together.

    Raises:
        ImportError: the library is missing or does not load; the message says how to install it.
    """
    import torch

    operators: Any = torch.ops
    spec = find_spec("vllm")
    folders = (spec.submodule_search_locations or ()) if spec else ()
    parts = [part for folder in folders for part in (Path(folder), Path(folder) / "vllm_flash_attn")]
    libraries = sorted(path for part in parts for path in part.glob(f"{namespace}*.so"))
    remedy = f"pip install {VLLM}, or unpack vllm/{namespace}*.so of its wheel into a folder on PYTHONPATH"
    if not libraries:
        raise ImportError(f"vLLM's operators are missing: {remedy}.")
    try:
        for path in libraries:
            operators.load_library(path)
    except OSError as error:
        raise ImportError(f"vLLM's operators do not load ({error}): {remedy}.") from error
    return getattr(operators, namespace)


def deep_gemm() -> Any:  # noqa: ANN401 - a library without types
    """Return DeepGEMM: a package of its own, or the copy in vLLM's wheel, imported without vLLM itself.

    Raises:
        ImportError: it is missing; the message says how to install it.
    """
    if "deep_gemm" not in sys.modules and find_spec("deep_gemm") is None:
        spec = find_spec("vllm")
        folders = (spec.submodule_search_locations or ()) if spec else ()
        copies = [Path(folder) / "third_party" for folder in folders]
        copies = [folder for folder in copies if (folder / "deep_gemm" / "__init__.py").is_file()]
        if not copies:
            raise ImportError(
                f"DeepGEMM is missing: pip install {VLLM}, or unpack vllm/third_party/deep_gemm of its wheel into "
                "a folder on PYTHONPATH."
            )
        sys.path.append(str(copies[0]))
    return import_module("deep_gemm")
