"""What the program is made of, and what a step of it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.program.process import gather, profile_steps

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram


def main(child: LoadedProgram, *, observe: bool = False) -> dict[str, Any]:
    """The fields of `core.program.Facts`; with `observe` three steps are run."""
    observed = profile_steps.observe_step(child.step) if observe else None
    return {**gather.gather_facts(), "observed": observed}
