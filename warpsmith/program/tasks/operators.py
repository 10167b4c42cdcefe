"""Task: watch steps operator by operator, backward passes included."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from warpsmith.program.process import gather, operator_values, operator_watcher, profile_steps, profiler_recording
from warpsmith.program.process.profile_steps import Steps

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram


def main(_program: LoadedProgram, *, steps: int, operator: str = "") -> Steps[dict[str, Any]]:
    """Watch `steps` steps; list all operators, and every signature of `operator`, named with or without overload.

    Returns:
        `rows`: calls, seconds and refusal of all steps by operator. `signatures`: calls of `operator` by overload.
        `composites`: the operators that consist of others. `known`: true if an operator of that name exists.
    """
    import torch

    packet, device = operator.partition(".")[0], "cuda" if gather.gpu_initialized() else "cpu"
    parameters = [item for item in gc.get_objects() if issubclass(type(item), torch.nn.Parameter)]
    watcher = operator_watcher.OperatorWatcher([packet], parameters)
    with operator_watcher.watch_operators(watcher, _composite_operators(packet, device)):
        for _ in range(steps):
            yield
        profile_steps.synchronize_device()
    return {
        "rows": {
            name: {
                "calls": sum(call.count for call in calls.values()),
                "seconds": sum(call.seconds for call in calls.values()),
                "refusal": operator_values.operator_refusal(operator_values.get_operator(name)),
            }
            for name, calls in watcher.calls.items()
        },
        "signatures": {
            name: [
                {
                    "arguments": call.arguments, "outputs": call.outputs, "calls": call.count,
                    "seconds": call.seconds, "gradients": call.gradients,
                }
                for call in calls.values()
            ]
            for name, calls in watcher.calls.items()
            if operator in (name, packet) and name.partition(".")[0] == packet
        },
        "composites": [
            name
            for name in watcher.calls
            if operator_values.is_composite(operator_values.get_operator(name), device)
        ],
        "known": not operator or bool(operator_values.list_overloads(operator)),
    }  # fmt: skip


def _composite_operators(packet: str, device: str) -> list[Any]:
    """List the composite operators to note as a whole: `packet`, and those that are worth one kernel."""
    candidates = (packet, *profiler_recording.WHOLE_OPERATORS)
    names = dict.fromkeys(name for name in candidates if name.startswith("aten::"))
    return [
        overload
        for name in names
        for overload in operator_values.list_overloads(name)
        if operator_values.is_composite(overload, device) and not operator_values.operator_refusal(overload)
    ]
