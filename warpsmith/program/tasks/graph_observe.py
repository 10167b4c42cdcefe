"""Task: watch steps operator by operator for what a CUDA graph cannot hold, and time the modules they call."""

from __future__ import annotations

import hashlib
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from warpsmith.program.capture import events, hooks, module_times
from warpsmith.program.capture.watcher import StepWatcher

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram


def main(program: LoadedProgram, folders: list[str], steps: int, warm: int) -> dict[str, Any]:
    """Run `warm` steps unwatched, `steps` watched and one in which modules are timed.

    Returns observations, modules and files. Modules are listed after the first steps, which may create them.
    """
    with run_eagerly():
        for _ in range(warm):
            program.step()
    with run_eagerly():
        modules = module_times.list_modules(program.modules())
        watcher = StepWatcher(folders, modules)
        with hooks.watch_steps(watcher):
            for _ in range(steps):
                watcher.begin_step()
                program.step()
        observations = watcher.list_observations(events.compare_steps(watcher.events))
        called = module_times.ModuleTimer(modules).run(program.step)
    for module in called:
        if module["name"] in watcher.varying_modules:
            module["reason"] = module["reason"] or "its inputs differ from step to step"
        module["alike"] = hashlib.sha256(module["alike"].encode()).hexdigest()[:12]
    return {"observations": [asdict(item) for item in observations], "modules": called, "files": watcher.files}


def run_eagerly() -> AbstractContextManager[object]:
    """Run compiled functions eagerly in this block; PyTorch's compiler is not imported for it."""
    import torch

    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()
