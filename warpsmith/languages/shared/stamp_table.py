"""Table that GPU kernels store their stamps in; in the process of a version only."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from warpsmith.languages.shared import stamps

if TYPE_CHECKING:
    import torch


@cache
def stamp_table() -> torch.Tensor:
    """Return the table of the stamps of all versions here, int64 of (rows, phases, 3).

    It is on the GPU. Without one, kernels are only compiled, and its address is a number like any other.
    """
    import torch

    shape = (stamps.ROWS, stamps.MOST_PHASES, stamps.COLUMNS)
    return torch.zeros(shape, dtype=torch.int64, device="cuda" if torch.cuda.is_available() else "cpu")
