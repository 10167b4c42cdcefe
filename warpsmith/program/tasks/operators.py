"""Task: steps watched operator by operator, backward passes too."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from warpsmith.program.process import gather, operator_values, operator_watcher, profile_steps, profiler_recording

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram


def main(child: LoadedProgram, *, steps: int, wanted: str = "") -> dict[str, Any]:
    """What is called in `steps` steps; of `wanted`, an operator with or without overload, every signature.

    Returns:
        `rows`: calls, seconds and refusal by operator, of all steps. `signatures`: those of `wanted` by operator.
        `composites`: the operators that consist of others. `known`: whether there is
        an operator of that name at all.
    """
    import torch

    packet, device = wanted.partition(".")[0], "cuda" if gather.gpu_initialized() else "cpu"
    parameters = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Parameter)]
    watch = operator_watcher.OperatorWatcher([packet], parameters)
    with operator_watcher.watch_operators(watch, _composite_operators(packet, device)):
        for _ in range(steps):
            child.step()
        profile_steps.synchronize_device()
    return {
        "rows": {
            name: {
                "calls": sum(one.count for one in calls.values()),
                "seconds": sum(one.seconds for one in calls.values()),
                "refusal": operator_values.operator_refusal(operator_values.find_operator(name)),
            }
            for name, calls in watch.found.items()
        },
        "signatures": {
            name: [
                {
                    "arguments": one.arguments, "outputs": one.outputs, "calls": one.count,
                    "seconds": one.seconds, "gradients": one.gradients,
                }
                for one in calls.values()
            ]
            for name, calls in watch.found.items()
            if wanted in (name, packet) and name.partition(".")[0] == packet
        },
        "composites": [
            name for name in watch.found if operator_values.is_composite(operator_values.find_operator(name), device)
        ],
        "known": not wanted or bool(operator_values.list_overloads(wanted)),
    }  # fmt: skip


def _composite_operators(packet: str, device: str) -> list[Any]:
    """The composite operators that are noted as a whole: what is asked for, and those that are worth it."""
    names = dict.fromkeys(name for name in (packet, *profiler_recording.WHOLE_OPERATORS) if name.startswith("aten::"))
    return [
        one
        for name in names
        for one in operator_values.list_overloads(name)
        if operator_values.is_composite(one, device) and not operator_values.operator_refusal(one)
    ]
