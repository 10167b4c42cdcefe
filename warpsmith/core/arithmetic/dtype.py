"""Data types by their names in PyTorch and FlashInfer-Trace, with the facts that error analysis needs."""

from __future__ import annotations

import re
from typing import NamedTuple


class DType(NamedTuple):
    """Facts about one data type."""

    bytes: int
    """Size of one element in bytes."""
    unit_roundoff: float
    """Half the distance from 1 to the next number; 0 for integers."""
    smallest_subnormal: float
    """Distance between the numbers next to zero; 0 for integers."""


DTYPES: dict[str, DType] = {
    "float64": DType(8, 2.0**-53, 2.0**-1074),
    "float32": DType(4, 2.0**-24, 2.0**-149),
    "float16": DType(2, 2.0**-11, 2.0**-24),
    "bfloat16": DType(2, 2.0**-8, 2.0**-133),
    "float8_e4m3fn": DType(1, 2.0**-4, 2.0**-9),
    "float8_e5m2": DType(1, 2.0**-3, 2.0**-16),
    "int64": DType(8, 0.0, 0.0),
    "int32": DType(4, 0.0, 0.0),
    "int16": DType(2, 0.0, 0.0),
    "int8": DType(1, 0.0, 0.0),
    "uint8": DType(1, 0.0, 0.0),
    "bool": DType(1, 0.0, 0.0),
}


_LONG_NAME = re.compile(r"(?<![A-Za-z0-9])(b?)float(16|32|64)(?![A-Za-z0-9])")


def shorten_dtype_names(text: str) -> str:
    """Replace data types in the name of a workload by their short forms: `4x8-bfloat16` becomes `4x8-bf16`."""
    return _LONG_NAME.sub(lambda match: f"{'bf' if match[1] else 'fp'}{match[2]}", text)


def is_floating(dtype: str) -> bool:
    """Return whether numbers of this type are rounded."""
    return DTYPES[dtype].unit_roundoff > 0
