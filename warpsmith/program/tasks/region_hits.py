"""Task: the calls of a region's kernel in a program's compiled step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.program.compiled import recording, replacement
from warpsmith.program.operators import region_override
from warpsmith.program.process import profile_steps
from warpsmith.program.process.profile_steps import Steps

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram

_WARM_UP_STEPS = 2


def main(_program: LoadedProgram, *, op: str, steps: int) -> Steps[dict[str, int]]:
    """Return `hits`, the calls of the kernel in `steps` steps, and `places`, where it was put in the graphs.

    The step is compiled anew, because graphs from a cache do not say what was replaced in them.
    """
    places = replacement.replaced_places().get(op, 0)
    with recording.record_graphs():
        for _ in range(_WARM_UP_STEPS):
            yield
        hits = region_override.region_hits(op)
        for _ in range(steps):
            yield
        profile_steps.synchronize_device()
    return {
        "hits": region_override.region_hits(op) - hits,
        "places": replacement.replaced_places().get(op, 0) - places,
    }
