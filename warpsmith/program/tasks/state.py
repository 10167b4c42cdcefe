"""Parameters and buffers of the program's modules in a few figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.program.process import values

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram


def main(child: LoadedProgram) -> dict[str, Any]:
    """`core.program.TensorSummary` by name."""
    return values.summarize_state(child.modules())
