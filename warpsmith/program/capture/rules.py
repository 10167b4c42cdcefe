"""What keeps a step from being a CUDA graph: every rule once, with why and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from warpsmith.program.capture.models import Certainty, Effect


class Rule(NamedTuple):
    """What a kind of blocker does to a graph."""

    effect: Effect
    """Whether the capture fails or the replay is wrong."""
    why: str
    """Why, in one phrase."""
    mend: str
    """How to mend it, in one phrase."""


RULES: dict[str, Rule] = {
    "host-read": Rule(
        "blocks", "the host waits for a value of the device", "keep it a tensor; read it after the replay"
    ),
    "truth": Rule(
        "blocks", "the host waits for the value to choose a branch", "torch.where, or decide outside the step"
    ),
    "print": Rule("blocks", "showing a tensor reads it", "return it, show it after the replay"),
    "to-host": Rule("blocks", "a copy to the host waits for the device", "copy it out after the replay"),
    "synchronize": Rule("blocks", "no wait is allowed in a capture", "take it out of the step"),
    "data-shape": Rule(
        "blocks",
        "only the device knows how many there are",
        "a fixed size: a mask, torch.where, topk, output_size=",
    ),
    "error-check": Rule(
        "blocks", "the host reads the device's error code", "the _ex variant with check_errors=False"
    ),
    "to-device": Rule(
        "blocks",
        "a copy from pageable memory is refused in a capture",
        "make it on the device, or fill a static buffer before the replay",
    ),
    "pinned-copy": Rule(
        "freezes",
        "each replay copies from the same host address",
        "fill that one pinned buffer, or copy before the replay",
    ),
    "host-compute": Rule("freezes", "work on the CPU runs at the capture only", "put these tensors on the device"),
    "changing-shape": Rule(
        "freezes", "a graph has the shapes of its capture", "pad to a fixed size, or one graph a bucket"
    ),
    "growing": Rule(
        "freezes",
        "it is longer and elsewhere at every step",
        "allocate the longest once, write in place (index_copy_)",
    ),
    "new-address": Rule(
        "freezes", "a replay reads the address of the capture", "copy_ it into a buffer that stays"
    ),
    "changing-number": Rule(
        "freezes",
        "a Python number is baked in at the capture",
        "hold it in a tensor on the device, update in place",
    ),
    "changing-path": Rule(
        "freezes", "a graph repeats the operators of its capture", "one graph a path, or torch.where"
    ),
    "state": Rule(
        "freezes", "Python does not run in a replay", "count in a tensor on the device (add_), or outside the step"
    ),
    "learning-rate": Rule(
        "freezes",
        "the rate is a Python number, baked in at the capture",
        "lr=torch.tensor(…) on the device, schedule outside the step",
    ),
    "optimizer": Rule("blocks", "its step count is on the host", "capturable=True"),
    "optimizer-host": Rule(
        "freezes",
        "this class counts its steps on the host",
        "Adam or AdamW with capturable=True, or step it outside",
    ),
    "scaler": Rule(
        "blocks",
        "the host reads whether gradients overflowed",
        "bfloat16 without a scaler, or fused=True optimizer, or step outside",
    ),
    "loader": Rule(
        "freezes",
        "data is fetched by Python, which a replay does not run",
        "fetch outside, copy_ into a static input",
    ),
    "python-random": Rule("freezes", "drawn once, at the capture", "torch's generator on the device"),
    "generator": Rule(
        "blocks",
        "the graph does not know this generator",
        "the default one, or graph.register_generator_state(generator)",
    ),
    "seed": Rule("blocks", "seeds and states of generators may not be set or read in a capture", "seed before it"),
    "clock": Rule("freezes", "read once, at the capture", "measure around the replay"),
    "output": Rule("freezes", "written at the capture only", "write after the replay"),
    "stream": Rule(
        "blocks",
        "another stream must fork from the capturing one and join it",
        "wait_stream both ways, or one stream",
    ),
    "allocator": Rule("blocks", "memory may not be given back in a capture", "take it out of the step"),
    "collective": Rule(
        "blocks",
        "only NCCL collectives can be captured, warmed up, on all ranks alike",
        "check the backend, warm up",
    ),
    "checkpoint": Rule(
        "blocks",
        "it saves and restores the state of the generators",
        "preserve_rng_state=False where nothing draws",
    ),
    "compiled": Rule(
        "blocks",
        "it may compile again or replay graphs of its own",
        "either it or a capture: not one in the other",
    ),
    "graphed": Rule("blocks", "it captures already; captures do not nest", "check the step without it"),
    "capture": Rule("blocks", "the capture failed here", "see the message"),
}
"""By kind."""


@dataclass(frozen=True)
class Finding:
    """A blocker before it is put together with others at its line."""

    kind: str
    """A key of `RULES`."""
    what: str
    """What the line does."""
    file: str
    """The file, absolute."""
    line: int
    """Its line."""
    certainty: Certainty
    """How sure."""
    function: str = ""
    """The function it is in."""
    module: str = ""
    """The module whose forward was running."""
