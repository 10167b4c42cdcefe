"""Environment variables that a version's source names: a program that asks for one has it among its strings."""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r"""(?P<quote>["'])(?P<name>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?P=quote)""")
_ASKED = re.compile(r"""(?:getenv\(|environ\[|environ\.get\()\s*(?P<quote>["'])(?P<name>\w+)(?P=quote)""")

_LIBRARIES = (
    "CUDA_", "CUBLAS_", "CUDNN_", "CUTE_", "GOMP_", "HIP_", "HSA_", "KMP_", "LD_", "MALLOC_", "NCCL_", "NVIDIA_",
    "OMP_", "PYTHON", "PYTORCH_", "ROCR_", "TORCH_", "TRITON_", "XDG_",
)  # fmt: skip
"""Beginnings of names that libraries read: a value that they do not know stops them."""

_PLACES = ("DIR", "FILE", "FLAGS", "HOME", "PATH")
"""Ends of names whose values are places or texts; a number is neither."""


def read_variable_names(path: Path) -> frozenset[str]:
    """Return the strings of a source that are environment variables: those that it asks for, and others of capital
    letters with an underscore.

    Those of libraries, which no version has for itself, are left out, and those of places.
    """
    text = path.read_text(errors="replace")
    names = {match["name"] for pattern in (_NAME, _ASKED) for match in pattern.finditer(text)}
    return frozenset(name for name in names if not name.startswith(_LIBRARIES) and not name.endswith(_PLACES))
