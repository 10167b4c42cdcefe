"""Task: facts about the program, and the operators that one step calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.program.process import gather, profile_steps

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram


def main(program: LoadedProgram, *, observe: bool = False) -> dict[str, Any]:
    """Return the fields of `ProgramFacts`; with `observe` run three steps to observe one."""
    observed = profile_steps.observe_step(program.step) if observe else None
    return {**gather.gather_facts(), "observed": observed}
