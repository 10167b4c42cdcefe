"""Task: run steps on a GPU in which the named modules are CUDA graphs, forward and backward."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from warpsmith.program.capture import module_times, replay

if TYPE_CHECKING:
    from torch import nn

    from warpsmith.program.process.loaded_program import LoadedProgram


def main(
    program: LoadedProgram, folders: list[str], names: list[str], warm: int, steps: int, moving: bool = True
) -> dict[str, Any]:
    """Capture the modules `names` after the warm-up, then run steps; answer as the task `graph_capture` does."""
    inputs = replay.StepInputs(program, moving=moving)
    replay.warm_up(program.step, inputs, warm - 1)
    modules = module_times.list_modules(program.modules())
    missing = [name for name in names if name not in modules]
    if missing:
        return {"captured": False, "error": f"there is no module {missing[0]} in this process"}
    calls: list[_ModuleCall] = []
    with ExitStack() as stack:
        for name in names:
            hook = modules[name].register_forward_pre_hook(lambda *call: calls.append(_ModuleCall(*call)))
            stack.callback(hook.remove)
        replay.warm_up(program.step, inputs, 1)
    first_calls = {id(call.module): call for call in reversed(calls)}
    try:
        with replay.restore_state(program):
            for call in reversed(first_calls.values()):
                call.capture()
    except Exception as error:
        return replay.answer_failure(error, folders)
    return replay.answer_replays(program, inputs, program.step, steps, program.step)


class _ModuleCall:
    """One call of a module: copies of its arguments, and the modes of autograd and autocast."""

    def __init__(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        import torch
        from torch.utils import _pytree

        self.module = module
        self.arguments = _pytree.tree_map(
            lambda tensor: tensor.detach().clone().requires_grad_(tensor.requires_grad), arguments
        )
        self._autocast = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None
        self._grad, self._inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    def capture(self) -> None:
        """Capture the module: from now on its calls replay a graph."""
        import torch

        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode(self._inference))
            if not self._inference:
                stack.enter_context(torch.set_grad_enabled(self._grad))
            if self._autocast is not None:
                stack.enter_context(torch.autocast("cuda", self._autocast, cache_enabled=False))
            torch.cuda.make_graphed_callables(self.module, self.arguments, allow_unused_input=True)
