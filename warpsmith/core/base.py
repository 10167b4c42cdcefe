"""The one base class of all models: frozen, closed, described by its attribute docstrings."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Model(BaseModel):
    """A record's part: unknown fields are errors, and the docstring of a field is its schema text."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )


Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=80)]
"""A name that is also a folder and a Python identifier: `rmsnorm`, `rmsnorm_quant_fp8`."""

Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=120)]
"""A name that is also a file stem: `single-pass-online-reduction`, `softmax-triton-h200-20261121`."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A content hash in hexadecimal."""

Minute = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}$")]
"""A time in UTC to the minute: `2026-11-21 14:05`."""


def this_minute() -> str:
    """The time in UTC as a `Minute`."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M")


Positive = Annotated[float, Field(gt=0)]
"""A finite number above zero."""
