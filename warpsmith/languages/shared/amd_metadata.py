"""Registers and scratch memory of a kernel, from the metadata at the end of AMD's assembly."""

from __future__ import annotations

import re
from typing import NamedTuple

_FIGURE = re.compile(r"^ +(?:- )?\.(\w+): +(\d+)$", re.MULTILINE)


class RegisterUse(NamedTuple):
    """Registers and scratch memory of a kernel, by the metadata at the end of its assembly."""

    vector: int
    """Vector registers (VGPRs) of a lane, accumulators included."""
    accumulator: int
    """Accumulators (AGPRs) among them."""
    scalar: int
    """Scalar registers (SGPRs) of a wave."""
    vector_spills: int
    """Vector registers that did not fit."""
    scalar_spills: int
    """Scalar registers that did not fit."""
    scratch_bytes: int
    """Scratch memory of a lane, in bytes."""
    lds_bytes: int
    """LDS of a block that the kernel declares, in bytes; a launch may ask for more."""


def read_register_use(text: str) -> RegisterUse:
    """Read registers, spills and scratch memory from the metadata of an assembly with one kernel."""
    figures = {name: int(value) for name, value in _FIGURE.findall(text)}
    return RegisterUse(
        vector=figures["vgpr_count"],
        accumulator=figures["agpr_count"],
        scalar=figures["sgpr_count"],
        vector_spills=figures["vgpr_spill_count"],
        scalar_spills=figures["sgpr_spill_count"],
        scratch_bytes=figures["private_segment_fixed_size"],
        lds_bytes=figures["group_segment_fixed_size"],
    )


def describe_registers(use: RegisterUse) -> str:
    """Describe the registers in one line: `100 VGPRs (16 of them AGPRs), 26 SGPRs, spilled 0 and 0`."""
    vector = f"{use.vector} VGPRs ({use.accumulator} of them AGPRs)"
    return f"{vector}, {use.scalar} SGPRs, spilled {use.vector_spills} and {use.scalar_spills}"
