"""Rules of the CUDA graph check: each kind of blocker with its effect, its reason and its repair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from warpsmith.program.capture.models import Certainty, Effect


class BlockerRule(NamedTuple):
    """Effect of one kind of blocker, and its repair."""

    effect: Effect
    """Effect on a graph: the capture fails, or replays are wrong."""
    why: str
    """Reason, in one phrase."""
    mend: str
    """Repair, in one phrase."""


RULES: dict[str, BlockerRule] = {
    "host-read": BlockerRule(
        "blocks", "the host waits for a value of the device", "keep it a tensor; read it after the replay"
    ),
    "truth": BlockerRule(
        "blocks", "the host waits for the value to choose a branch", "torch.where, or decide outside the step"
    ),
    "print": BlockerRule("blocks", "printing a tensor reads it", "return it, print it after the replay"),
    "to-host": BlockerRule("blocks", "a copy to the host waits for the device", "copy it out after the replay"),
    "synchronize": BlockerRule("blocks", "a capture allows no wait", "move it out of the step"),
    "data-shape": BlockerRule(
        "blocks",
        "only the device knows the number of elements",
        "a fixed size: a mask, torch.where, topk, output_size=",
    ),
    "error-check": BlockerRule(
        "blocks", "the host reads the device's error code", "the _ex variant with check_errors=False"
    ),
    "to-device": BlockerRule(
        "blocks",
        "a capture refuses copies from pageable memory",
        "create it on the device, or fill a static buffer before the replay",
    ),
    "pinned-copy": BlockerRule(
        "freezes",
        "each replay copies from the same host address",
        "fill that pinned buffer again, or copy before the replay",
    ),
    "host-compute": BlockerRule(
        "freezes", "work on the CPU runs only at the capture", "put these tensors on the device"
    ),
    "changing-shape": BlockerRule(
        "freezes", "a graph keeps the shapes of its capture", "pad to a fixed size, or one graph per bucket"
    ),
    "growing": BlockerRule(
        "freezes",
        "the tensor is longer and elsewhere at every step",
        "allocate the longest once, write in place (index_copy_)",
    ),
    "new-address": BlockerRule(
        "freezes", "a replay reads the address of the capture", "copy_ it into a buffer that stays"
    ),
    "changing-number": BlockerRule(
        "freezes",
        "the capture bakes in a Python number",
        "hold it in a tensor on the device, update in place",
    ),
    "changing-path": BlockerRule(
        "freezes", "a graph repeats the operators of its capture", "one graph per path, or torch.where"
    ),
    "learning-rate": BlockerRule(
        "freezes",
        "the capture bakes in the rate, a Python number",
        "lr=torch.tensor(…) on the device, schedule outside the step",
    ),
    "optimizer": BlockerRule("blocks", "its step count is on the host", "capturable=True"),
    "optimizer-host": BlockerRule(
        "freezes",
        "this class counts its steps on the host",
        "Adam or AdamW with capturable=True, or step it outside",
    ),
    "loader": BlockerRule(
        "freezes",
        "Python fetches the data, and a replay does not run Python",
        "fetch outside, copy_ into a static input",
    ),
    "generator": BlockerRule(
        "blocks",
        "the graph does not know this generator",
        "the default generator, or graph.register_generator_state(generator)",
    ),
    "seed": BlockerRule("blocks", "a capture allows no change of a generator's seed", "seed before the capture"),
    "allocator": BlockerRule("blocks", "a capture may not release memory", "move it out of the step"),
    "collective": BlockerRule(
        "blocks",
        "only NCCL collectives can be captured, warmed up, on all ranks alike",
        "check the backend, warm up",
    ),
    "capture": BlockerRule("blocks", "the capture failed here", "see the message"),
}
"""Rules by kind of blocker."""


@dataclass(frozen=True)
class Observation:
    """Evidence for a blocker: what a watched step or a failed capture showed at one line."""

    kind: str
    """Key of `RULES`."""
    description: str
    """Description of the operation."""
    file: str
    """Absolute path of the file."""
    line: int
    """Line number."""
    certainty: Certainty
    """Certainty of the effect."""
    function: str = ""
    """Qualified name of the function that contains the line."""
    module: str = ""
    """Path of the innermost module whose forward was running."""
