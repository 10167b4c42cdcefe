"""Task: steps watched operator by operator, for what a CUDA graph could not hold; and the modules they call."""

from __future__ import annotations

import hashlib
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from warpsmith.program.capture import events, spans, watch
from warpsmith.program.capture.recorder import Recorder

if TYPE_CHECKING:
    from warpsmith.program.process.child import Child


def main(child: Child, folders: list[str], steps: int, warm: int) -> dict[str, Any]:
    """Findings and modules. Runs `warm` steps unwatched, `steps` watched, and one in which modules are timed.

    Modules are looked for after the first step: it may make them.
    """
    with _eager():
        for _ in range(warm):
            child.step()
    with _eager():
        named = spans.named(child.modules())
        recorder = Recorder(folders, named)
        with watch.watching(recorder):
            for _ in range(steps):
                recorder.step(child.step)
        found = recorder.settle(events.compare(recorder.events))
        modules = spans.Spans(named).run(child.step)
    for module in modules:
        if module["name"] in recorder.varying:
            module["reason"] = module["reason"] or "its inputs differ from step to step"
        module["alike"] = hashlib.sha256(module["alike"].encode()).hexdigest()[:12]
    return {"findings": [asdict(finding) for finding in found], "modules": modules}


def _eager() -> AbstractContextManager[object]:
    """Compiled functions run eagerly in this block; PyTorch's compiler is not loaded for it where nothing is."""
    import torch

    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()
