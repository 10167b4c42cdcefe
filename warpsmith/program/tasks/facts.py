"""Task: facts about the program, and the operators that one step calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.program.process import gather, profile_steps
from warpsmith.program.process.profile_steps import Steps

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram


def main(_program: LoadedProgram, *, observe: bool = False) -> Steps[dict[str, Any]]:
    """Return the fields of `ProgramFacts`; with `observe` run three steps to observe one."""
    observed = (yield from profile_steps.observe_step()) if observe else None
    return {**gather.gather_facts(), "observed": observed}
