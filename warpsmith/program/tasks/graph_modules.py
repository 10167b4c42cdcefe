"""Task: steps on a GPU in which the named modules run as CUDA graphs, forward and backward."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from warpsmith.program.capture import replay, spans

if TYPE_CHECKING:
    from torch import nn

    from warpsmith.program.process.child import Child


def main(
    child: Child, folders: list[str], names: list[str], warm: int, steps: int, moving: bool = True
) -> dict[str, Any]:
    """As the task `graph_capture`; the modules are captured after the warm-up."""
    inputs = replay.Inputs(child, moving=moving)
    replay.warm_up(child.step, inputs, warm - 1)
    named = spans.named(child.modules())
    missing = [name for name in names if name not in named]
    if missing:
        return {"captured": False, "error": f"there is no module {missing[0]} this time"}
    calls: list[_Call] = []
    with ExitStack() as stack:
        for name in names:
            stack.callback(named[name].register_forward_pre_hook(lambda *call: calls.append(_Call(*call))).remove)
        replay.warm_up(child.step, inputs, 1)
    first = {id(call.module): call for call in reversed(calls)}
    try:
        with replay.undisturbed(child):
            for call in reversed(first.values()):
                call.capture()
    except Exception as error:
        return replay.failure(error, folders)
    return replay.replayed(child, inputs, child.step, steps, child.step)


class _Call:
    """What a module was called with, and under which modes."""

    def __init__(self, module: nn.Module, given: tuple[Any, ...]) -> None:
        import torch
        from torch.utils import _pytree

        self.module = module
        self.given = _pytree.tree_map(lambda each: each.detach().clone().requires_grad_(each.requires_grad), given)
        self._autocast = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None
        self._grad, self._inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    def capture(self) -> None:
        """Make the module replay a graph from now on."""
        import torch

        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode(self._inference))
            if not self._inference:
                stack.enter_context(torch.set_grad_enabled(self._grad))
            if self._autocast is not None:
                stack.enter_context(torch.autocast("cuda", self._autocast, cache_enabled=False))
            torch.cuda.make_graphed_callables(self.module, self.given, allow_unused_input=True)
