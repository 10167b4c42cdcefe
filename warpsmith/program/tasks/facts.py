"""What the program is made of, and what a step of it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.program.process import gather, profiled

if TYPE_CHECKING:
    from warpsmith.program.process.child import Child


def main(child: Child, *, observe: bool = False) -> dict[str, Any]:
    """The fields of `core.program.Facts`; with `observe` three steps are run."""
    observed = profiled.observe(child.step) if observe else None
    return {**gather.facts(), "observed": observed}
