"""Task: watch steps line by line for waits, loops of small operators and copies, and time the loops."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from warpsmith.program.capture import events, hooks, module_times
from warpsmith.program.lines.frames import CallSite, SourceLoop, list_running_loops
from warpsmith.program.lines.line_timer import LoopTimer
from warpsmith.program.lines.line_watcher import LineWatcher
from warpsmith.program.lines.raw_lines import MANY_CALLS
from warpsmith.program.process import profile_steps
from warpsmith.program.process.profile_steps import Steps
from warpsmith.program.tasks.graph_observe import run_eagerly

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram

_TIMED_STEPS = 3
_MOST_LOOPS = 12


def main(program: LoadedProgram, folders: list[str], steps: int) -> Steps[dict[str, Any]]:
    """Run one step unwatched, `steps` watched, and three in which loops are timed if there are any.

    Returns the fields of `WatchedLines`, with counts per step, and the observations for a CUDA graph. The loop
    whose body is a script's step is no loop of the step.
    """
    with run_eagerly():
        yield
        watcher = LineWatcher(folders, module_times.list_modules(program.modules()), whole=list_running_loops())
        with hooks.watch_steps(watcher):
            for _ in range(steps):
                watcher.begin_step()
                yield
        observations = watcher.list_observations(events.compare_steps(watcher.events))
        shares = yield from _time_loops(_list_long_loops(watcher, steps))
    sites = [
        {
            **_describe_site(site, shares),
            "operators": {name: count / steps for name, count in counts.operators.most_common()},
            "bytes": {name: counts.bytes[name] / counts.operators[name] for name in counts.operators},
            "copies": {name: count / steps for name, count in counts.copies.most_common()},
            "copied_bytes": counts.copied / steps,
            "depth": counts.depths[1] - counts.depths[0],
        }
        for site, counts in watcher.sites.items()
    ]
    waits = [
        {**_describe_site(site, {}), "kind": kind, "description": description, "count": count / steps}
        for (kind, description, site), count in watcher.waits.items()
    ]
    update = watcher.optimizer_site and _describe_site(watcher.optimizer_site, {})
    return {
        "observations": [asdict(item) for item in observations],
        "lines": {
            "sites": sites,
            "waits": waits,
            "update": update,
            "copied_bytes": watcher.copied / steps,
            "flops": watcher.flops / steps,
        },
    }


def _list_long_loops(watcher: LineWatcher, steps: int) -> list[SourceLoop]:
    """List the loops around a line that calls one operator many times, those with the most calls first."""
    calls: Counter[SourceLoop] = Counter()
    for site, counts in watcher.sites.items():
        if site.loop and max(counts.operators.values()) >= MANY_CALLS * steps:
            calls[site.loop] += counts.operators.total()
    return [loop for loop, _ in calls.most_common(_MOST_LOOPS)]


def _time_loops(loops: list[SourceLoop]) -> Steps[dict[SourceLoop, float]]:
    """Return the median share of a step in which each loop runs."""
    if not loops:
        return {}
    timer = LoopTimer(loops, profile_steps.synchronize_device)
    runs = []
    for _ in range(_TIMED_STEPS):
        runs.append((yield from timer.time_step()))
    return {loop: statistics.median(seconds[loop] / whole for whole, seconds in runs) for loop in loops}


def _describe_site(site: CallSite, shares: dict[SourceLoop, float]) -> dict[str, Any]:
    loop = site.loop
    return {
        "file": site.line.file,
        "line": site.line.line,
        "function": site.line.function,
        "package": site.package,
        "caller_file": site.caller.file if site.caller else "",
        "caller_line": site.caller.line if site.caller else 0,
        "loop": loop and {**loop._asdict(), "share": shares.get(loop)},
    }
