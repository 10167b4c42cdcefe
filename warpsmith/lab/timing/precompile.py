"""Compilation of versions before they are called: in parallel, in a worker that ends before theirs starts.

A tile compiler takes half a second for each mix of types and alignments, and a judgement has dozens of them. The
worker calls the version at every size of the judgement with its launches held back, so nothing is computed there
and nothing of it counts: its compiled kernels wait for the next worker of the same source.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from warpsmith import languages
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import BEST
from warpsmith.lab.grading import shapes
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.arenas import CHECKED_SLOTS, describe_slots, lay_out, list_dense_layouts, list_layouts
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.sides import Sides, load_side
from warpsmith.lab.workers.side import SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.languages.base import CompilesAhead

_MOST_THREADS = 16
"""Compilations at a time: each is some processes, of which a worker may have `gate_rules.MAX_PROCESSES`."""


def list_compiled_ahead(sides: Sides) -> list[str]:
    """Return the names of the sides whose languages compile ahead."""
    language_of = {name: sides.source(name).language for name in sides.names}
    return [name for name, each in language_of.items() if each and isinstance(languages.get(each), CompilesAhead)]


def compile_kernels(
    file: DefinitionFile, host: WorkerHost, sides: Sides, checked: Sequence[Workload], timed: Sequence[Workload]
) -> list[str]:
    """Compile what sides launch at their workloads, for their next workers; return why it failed, if it did.

    What is not compiled here is compiled when it is launched.

    Args:
        file: the definition.
        host: supplies the workers, and keeps what they compiled.
        sides: the sides, none of which runs.
        checked: sizes that the solution is called at, which its arenas have room for.
        timed: those at which the best version is called.
    """
    lengths = input_rules.CALL_PARTS[sides.device]
    parts = filter(None, (shapes.take_part(file, workload, part) for workload in checked for part in lengths))
    notes, workloads = [], {SOLUTION: [*checked, *parts], BEST: timed}
    for name in list_compiled_ahead(sides):
        calls = [
            call for workload in workloads.get(name, ()) for call in _list_calls(file, workload, sides.device)
        ]
        if not calls:
            continue
        source = sides.source(name)
        side = host.start_side(name, source.limits, trusted=source.trusted)
        try:
            load_side(side, file, source, sides.arenas, sides.device)
            threads = min(len(os.sched_getaffinity(0)), _MOST_THREADS)
            side.ask({"do": "compile_ahead", "workloads": calls, "threads": threads})
        except SideFailed as failure:
            notes.append(f"{name} compiles at its first calls: {failure.message}")
        finally:
            side.close()
    return notes


def _list_calls(file: DefinitionFile, workload: Workload, device: str) -> list[dict[str, Any]]:
    """Describe a call in every layout that a workload may be checked in, as `Session` does."""
    layouts = dict.fromkeys([*list_layouts(file, workload, device), *list_dense_layouts(file)])
    workloads = [workload] * CHECKED_SLOTS
    placements = (lay_out(file, workload, CHECKED_SLOTS, layout)[2] for layout in layouts)
    return [{"slots": describe_slots(file.definition, workloads, each)} for each in placements]
