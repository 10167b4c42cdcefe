"""Small programs that tests write to disk."""

from __future__ import annotations

from pathlib import Path

from warpsmith.program.process.program import Program, resolve_step_program

TRAIN = """
import sys
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))

def train_step():
    loss = (model(torch.randn(2, 4)) - 1).square().mean()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
    return loss
"""
"""A training step without an optimizer, because importing one takes a second longer."""


def program(folder: Path, text: str = TRAIN, step: str = "train_step", **options: object) -> Program:
    """Write the text as `train.py` in the folder, and return the program."""
    path = folder / "train.py"
    path.write_text(text)
    return resolve_step_program(str(path), step, **options)  # type: ignore[arg-type]
