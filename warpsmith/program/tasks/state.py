"""Parameters and buffers of the program's modules in a few figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.program.process import values

if TYPE_CHECKING:
    from warpsmith.program.process.child import Child


def main(child: Child) -> dict[str, Any]:
    """`core.program.TensorSummary` by name."""
    return values.state(child.modules())
