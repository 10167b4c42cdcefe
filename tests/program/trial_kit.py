"""Trials without processes: a runner inside the test process, and programs that trials edit."""

from __future__ import annotations

import gc
import importlib
import itertools
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import torch

from warpsmith.errors import SolutionFailed
from warpsmith.program.models import ObservedStep, OptimizerFacts, ProgramFacts, StepsRun, TensorSummary
from warpsmith.program.process import gather, profile_steps, values
from warpsmith.program.process.loaded_program import LoadedProgram
from warpsmith.program.process.program import Program

TRAIN = """
import torch
from torch import nn
import torch.nn.functional as F
from pause import PAUSE, pause

model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

def batch():
    return torch.randn(32, 12), torch.randint(0, 5, (32,))

def train_step():
    x, y = batch()
    pause(PAUSE)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
"""
"""A training step that takes as long as `pause.py` says."""

PAUSE = """
from trial_kit import pause
PAUSE = 0.004
"""
_paused = [0.0]


def pause(seconds: float) -> None:
    """Advance the clock of `InProcess`: nobody waits, and other load on the machine does not count."""
    _paused[0] += seconds


def clock() -> float:
    """Read that clock; each reading takes 10 us, so that a pause of zero takes time too."""
    pause(1e-5)
    return _paused[0]


FASTER = ("pause(PAUSE)", "pause(PAUSE / 2)")
"""An honest gain: a part of the program, and its replacement."""


OBSERVED = ObservedStep.model_construct(
    operators={}, products={"float32": 6}, backwards=1, optimizer_steps=1, graph_launches=0, autocast=(),
    shapes_vary=False,
)  # fmt: skip
FACTS = ProgramFacts.model_construct(
    device="cpu", gpu=False, gpu_at_hand=False, torch="2.11", python="3.12", modules={"Linear": 3}, parameters=9,
    parameter_dtypes={"float32": 9}, channels_last=False, optimizers=(), loaders=(), tf32_products=False,
    tf32_convolutions=True, compiled=(), cuda_graphs=0, world=1, observed=OBSERVED,
)  # fmt: skip
"""Facts of a training step on a CPU."""


class InProcess:
    """Stand-in for `Runner` in this process, which already has PyTorch; only pauses advance its clock."""

    def __init__(
        self,
        program: Program,
        original: Mapping[Path, Path] | None = None,
        *,
        seed: int = 0,
        timeout: float = 0,
        env: Mapping[str, str] | None = None,
        log: Path | None = None,
    ) -> None:
        self.program = program
        self._message = {
            "path": str(program.path), "folder": str(program.folder), "module": program.module,
            "step": program.step, "setup": program.setup, "args": list(program.args), "label": program.label,
            "seed": seed,
            "original": {str(path): str(copy) for path, copy in (original or {}).items()},
        }  # fmt: skip
        self._numbers = itertools.count()

    def __enter__(self) -> InProcess:
        self._saved = sys.argv[:], sys.path[:], sys.meta_path[:], set(sys.modules), torch.compile
        gather.compile_modes.clear()
        return self

    def __exit__(self, *_: object) -> None:
        sys.argv[:], sys.path[:], sys.meta_path[:], modules, torch.compile = self._saved
        for name in set(sys.modules) - modules:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(self.program.folder)):
                del sys.modules[name]
        importlib.invalidate_caches()
        self.child = None

    def start(self) -> None:
        gc.collect()
        gc.freeze()  # objects from before the program are not among its facts
        torch.set_num_threads(1)
        self.child: Any = LoadedProgram(self._message)
        try:
            self.child.load()
        except Exception as error:
            raise SolutionFailed(f"{self.program.label}: its import or setup fails: {error}.") from error

    def observe(self) -> ProgramFacts:
        text = self.program.path.read_text()
        observed = {"optimizer_steps": int("optimizer.step()" in text), "returns": "return None" not in text}
        optimizers = tuple(OptimizerFacts.model_validate(fields) for fields in gather.list_optimizers())
        return FACTS.model_copy(
            update={"observed": OBSERVED.model_copy(update=observed), "optimizers": optimizers}
        )

    def run(self, count: int, *, values: bool = True, keep: bool = False) -> StepsRun:
        first, begin = self.child.next_step, _paused[0]
        returned = []
        for _ in range(count):
            try:
                returned.append(_copy_values(self.child.step(), keep))
            except Exception as error:
                raise SolutionFailed(f"{self.program.label}: its step fails: {error}.") from error
        seconds = _paused[0] - begin or 1e-9
        saved: tuple[str, ...] = ()
        if keep:
            saved = (str(self.program.folder / f"saved-{next(self._numbers)}.pt"),)
            torch.save(returned, saved[0])
        summaries = tuple(map(_summarize, returned)) if values or keep else ()
        return StepsRun(first=first, count=count, seconds=seconds, values=summaries, saved=saved)

    def call_ranks(self, task: str, **args: object) -> list[Any]:
        return [self.call(task, **args)]

    def call(self, task: str, **args: object) -> Any:
        answer = importlib.import_module(f"warpsmith.program.tasks.{task}").main(self.child, **args)
        return profile_steps.run_steps(answer, self.child.step) if isinstance(answer, Generator) else answer


def _copy_values(value: object, keep: bool) -> dict[str, Any]:
    return values.copy_leaves(value, whole=keep)


def _summarize(step: Mapping[str, Any]) -> dict[str, Any]:
    return {
        path: TensorSummary.model_validate(leaf) if isinstance(leaf, dict) else leaf
        for path, leaf in values.summarize_leaves(step).items()
    }


def changed(text: str, *edits: tuple[str, str]) -> str:
    """Return the text with each first part replaced by its second; each must occur."""
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text
