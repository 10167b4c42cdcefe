"""Untrusted side of one rank: it joins the other ranks, loads the version, and calls it on request."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpsmith.lab.operator.source_module import import_source
from warpsmith.lab.workers.arena import TensorPlacement, open_arena, poison_tensor
from warpsmith.lab.workers.channel import Channel, Message
from warpsmith.lab.workers.worker import describe_failure, describe_output

if TYPE_CHECKING:
    import torch


class Rank:
    """State of one rank's process, on a processor."""

    def __init__(self) -> None:
        self.run: Callable[..., Any] = lambda *_: None
        self.memory: list[torch.Tensor] = []
        self.staged: list[list[Any]] = []
        self.arguments: list[Any] = []
        self.destinations: list[list[list[torch.Tensor]]] = []

    def join(self, message: Message, files: list[int]) -> Message:
        """Open the arenas and join the process group; all ranks must be told so."""
        import torch

        torch.set_num_threads(message["threads"])
        self.memory = [open_arena(handle, [file]) for handle, file in zip(message["arenas"], files, strict=False)]
        os.environ |= {
            "RANK": str(message["rank"]),
            "LOCAL_RANK": str(message["rank"]),
            "WORLD_SIZE": str(message["ranks"]),
            "WARPSMITH_RANKS_FOLDER": message["folder"],
        }
        return self.connect(message | {"meeting": (Path(message["folder"]) / "store").as_uri()}, files)

    def load(self, message: Message) -> Message:
        """Import the version, which may meet the other ranks meanwhile."""
        self.run = import_source(f"warpsmith_solution_{message['name']}", Path(message["source"])).run
        return {}

    def connect(self, message: Message, files: list[int]) -> Message:
        """Join the process group; return what the record says of this rank's device."""
        import torch.distributed

        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        torch.distributed.init_process_group(
            "gloo", init_method=message["meeting"], rank=message["rank"], world_size=message["ranks"]
        )
        return {}

    def workload(self, message: Message) -> Message:
        """Lay out the slots of one workload in the arenas; each slot has `inputs`, with numbers among them, and
        two lists of `outputs`. The version gets copies of the inputs, in memory of this process alone."""
        import torch

        self.staged = [
            [self._view(value, 0) if isinstance(value, list) else value for value in slot["inputs"]]
            for slot in message["slots"]
        ]
        self.arguments = [
            torch.empty_like(value) if isinstance(value, torch.Tensor) else value for value in self.staged[0]
        ]
        self.destinations = [
            [[self._view(output, 1) for output in outputs] for outputs in slot["outputs"]]
            for slot in message["slots"]
        ]
        return {}

    def call_slots(self, message: Message) -> Message:
        """Call once on each slot, with a pause before each, on inputs that are copied after the pause.

        Results are delivered twice: right after their call, where one that comes later is missing, and after the
        last call, which they must survive. With `checked`, what the version left in its inputs goes back to their
        slot, and its memory is poisoned: who reads it before the next call begins finds NaN.
        """
        results = []
        for slot, pause in enumerate(message["pauses"]):
            if pause:
                time.sleep(pause)
            copy_inputs(self.staged[slot], self.arguments)
            result = self.run(*self.arguments)
            results.append(list(result) if isinstance(result, tuple | list) else [result])
            deliver_outputs(results[-1], self.destinations[slot][0])
            if message["checked"]:
                copy_inputs(self.arguments, self.staged[slot])
                for argument in self.arguments:
                    if not isinstance(argument, int | float):
                        poison_tensor(argument)
        described = [[describe_output(output) for output in outputs] for outputs in results]
        for outputs, destinations in zip(results, self.destinations, strict=True):
            deliver_outputs(outputs, destinations[1])
        return {"slots": described}

    def _view(self, placement: list[Any], arena: int) -> torch.Tensor:
        offset, shape, dtype = placement
        return TensorPlacement(offset, tuple(shape), dtype).view(self.memory[arena])


def serve_rank(channel: Channel) -> None:
    """Answer the grader until it closes the channel."""
    rank = Rank()
    channel.send({"ok": True})
    while True:
        message, files = channel.receive(files=3)
        try:
            match message["do"]:
                case "join":
                    rank = _make_rank(message["device"])
                    answer = rank.join(message, files)
                case "load":
                    answer = rank.load(message)
                case "workload":
                    answer = rank.workload(message)
                case _:
                    answer = rank.call_slots(message)
            channel.send({"ok": True, **answer})
        except Exception as error:
            channel.send(describe_failure(error))


def _make_rank(device: str) -> Rank:
    if device == "cpu":
        return Rank()
    from warpsmith.lab.ranks.gpu_rank import GpuRank

    return GpuRank()


def copy_inputs(sources: list[Any], targets: list[Any]) -> None:
    """Copy the tensors among the inputs of a call; numbers are the same in each."""
    for source, target in zip(sources, targets, strict=True):
        if not isinstance(source, int | float):
            target.copy_(source)


def deliver_outputs(outputs: list[Any], destinations: list[torch.Tensor]) -> None:
    """Copy results to their places in the arena, if they have the form that is asked for."""
    if same_form(outputs, destinations):
        for output, destination in zip(outputs, destinations, strict=True):
            destination.copy_(output)


def same_form(outputs: list[Any], destinations: list[torch.Tensor]) -> bool:
    """Return whether results can be delivered; the grader reads from their descriptions what is wrong if not."""
    import torch

    return len(outputs) == len(destinations) and all(
        type(output) is torch.Tensor and output.shape == destination.shape and output.dtype == destination.dtype
        for output, destination in zip(outputs, destinations, strict=True)
    )
