"""Task: a summary of each parameter and buffer of the program's modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.program.process import values

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram


def main(program: LoadedProgram) -> dict[str, Any]:
    """Return the fields of a `TensorSummary` for each tensor, by name."""
    return values.summarize_state(program.modules())
