"""Screenplays on a whole program: a small training step, edits of it, and roles that do what commands print."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from messages_api import Actor, Block, Call, bash, saying, text, tool
from screenplay import spawn

PROGRAM = saying("You are Warpsmith's program specialist.")
RANKS = saying("You are Warpsmith's distributed specialist.")

TRAIN = '''"""Attention written out, then many small experts; trained on random tokens."""

import torch
from torch.nn import functional as F

torch.set_num_threads(1)
WIDTH, LENGTH = 16, 128
mix = torch.nn.Linear(WIDTH, 3 * WIDTH)
experts = torch.nn.ParameterList([torch.randn(WIDTH, WIDTH) / WIDTH for _ in range(192)])
optimizer = torch.optim.AdamW([*mix.parameters(), *experts], lr=1e-3)


def attend(q, k, v):
    scores = q @ k.transpose(-2, -1) * WIDTH**-0.5
    return torch.softmax(scores, dim=-1) @ v


def train_step():
    x = torch.randn(8, LENGTH, WIDTH)
    x = attend(*mix(x).chunk(3, dim=-1))
    loss = (x @ torch.stack(list(experts)).mean(0)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()
'''

TRAIN_RANKS = '''"""Two ranks that reduce their gradients in each of two micro-batches."""

import contextlib

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.set_num_threads(1)
torch.manual_seed(0)
layers = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.GELU()) for _ in range(3)])
model = nn.parallel.DistributedDataParallel(layers)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
data = torch.Generator().manual_seed(dist.get_rank())

for step in range(100_000):
    for part in range(2):
        x = torch.randn(4, 16, generator=data)
        with contextlib.nullcontext():
            (model(x) - x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
'''

Edit = tuple[str, str]
"""What a text has, and what stands in its place."""

FUSED: Edit = ("lr=1e-3)", "lr=1e-3, fused=True)")
_BY_HAND = TRAIN[TRAIN.index("    scores") : TRAIN.index("def train_step")]
CAUSAL: Edit = (_BY_HAND, "    return F.scaled_dot_product_attention(q, k, v, is_causal=True)\n\n\n")
"""A mask that the original has not."""
NEVER_REDUCED: Edit = ("contextlib.nullcontext()", "model.no_sync()")
"""Not one backward pass reduces: the ranks train apart."""
ROW_BY_ROW: Edit = (
    _BY_HAND,
    "    rows = q.split(1, dim=-2)\n"
    "    return torch.cat([F.scaled_dot_product_attention(row, k, v) for row in rows], dim=-2)\n\n\n",
)
"""The same numbers by many small calls."""


def make_program(folder: Path, text: str = TRAIN) -> Path:
    """A project with the program."""
    folder.mkdir()
    (folder / "train.py").write_text(text)
    (folder / "warpsmith.toml").write_text("")
    return folder


def measuring(command: str) -> Block:
    """A command that runs the program."""
    return tool("Bash", command=command, description="as scripted", timeout=600000)


def specialist(edits: dict[str, Edit], *, checks: bool, matches: Callable[[Call], bool] = PROGRAM) -> Actor:
    """Makes the edit of the entry that its task names; `checks`: and runs a few steps of it."""

    def turn(call: Call) -> Sequence[Block]:
        named = r"train\.py --step \w+|--command '[^']+'"
        command = re.search(rf"warpsmith program apply (\S+) ({named})", call.said_by("user"))
        assert command, call.said_by("user")
        old, new = edits[command[1]]
        turns = [
            [bash(f"warpsmith knowledge show {command[1]}")],
            [tool("Read", file_path="train.py")],
            [tool("Edit", file_path="train.py", old_string=old, new_string=new)],
            [measuring(f"warpsmith program check {command[1]} {command[2]}")],
        ]
        left = turns[len(call.results) : None if checks else -1]
        return left[0] if left else [text(f"train.py: the edit is made. {call.last}")]

    return Actor("specialist", matches, [turn], loop=True)


@dataclass
class Pilot:
    """Does what `warpsmith program next` says, and takes each trial to its verdict."""

    opening: list[Sequence[Block]] = field(default_factory=list)
    """Turns before the loop."""
    trials: int = 1
    """Verdicts after which the user wanted a report."""
    ending: str = "MARK-DONE"
    """What is run, or said, after the last of them."""
    log: list[str] = field(default_factory=list)
    """Each verdict and each thing that was due."""
    opened: str = ""
    """The command that opened the trial at work."""
    printed: str = ""
    """What it printed."""
    waiting: bool = False
    """Whether the specialist was sent off."""

    def __call__(self, call: Call) -> Sequence[Block]:
        if self.opening:
            turn = self.opening.pop(0)
            self.opened = str(turn[0]["input"].get("command", ""))
            return turn
        last = call.last
        if self.waiting:
            self.waiting = False
            assert "train.py: the edit is made." in last, last
            return [measuring("warpsmith program verify")]
        if verdict := re.search(r"^(KEPT|RESTORED): ", last, re.MULTILINE):
            self.log.append(verdict[1])
            return self._next()
        if entry := re.match(r"The trial of (\S+) on \S+ is open\.", last):
            self.printed = last
            return [bash(f"warpsmith route --task {entry[1]}")]
        if agent := re.match(r"1\. (warpsmith:[\w-]+): ", last):
            self.waiting = True
            return [spawn(agent[1], f"{self.opened}\n\n{self.printed}")]
        if due := re.match(r"train\.train_step: (\w+)\nwhy: .*\ncommand: (.*)", last):
            self.log.append(due[1])
            self.opened = f"{due[2]} --predict 1.1" if due[1] == "apply" else due[2]
            return [measuring(self.opened)]
        if "Page: " in last:
            return [text("MARK-DONE")]
        return [bash("warpsmith program next")]

    def _next(self) -> Sequence[Block]:
        ended = sum(one in ("KEPT", "RESTORED") for one in self.log) == self.trials
        if not ended:
            return [bash("warpsmith program next")]
        return [measuring(self.ending)] if self.ending.startswith("warpsmith ") else [text(self.ending)]
