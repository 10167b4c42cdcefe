"""The untrusted side: loads one implementation and calls it when told. Nothing it says is a verdict.

It gets inputs in shared memory and leaves outputs there; it never holds a reference value, a tolerance or
a result file. The names it times with are bound before an implementation is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpsmith import languages
from warpsmith.core.definition import Definition
from warpsmith.core.evaluation import COMPILED, REFERENCE
from warpsmith.lab.arena import Place, open_handle
from warpsmith.lab.channel import Channel, Message
from warpsmith.languages.base import Build

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

_FLUSH_BYTES = 256 << 20


@dataclass
class Bench:
    """One workload's tensors, slot by slot, and what the last calls returned."""

    arguments: list[list[Any]]
    """Inputs of every slot, and the given outputs where the definition gives them."""
    landing: list[list[torch.Tensor]]
    """Where the grader looks for the outputs, slot by slot."""
    returned: dict[int, list[Any]] = field(default_factory=dict)
    """What calls returned, until it is delivered."""


class Worker:
    """State of one worker process."""

    def __init__(self) -> None:
        self.run: Callable[..., Any] = lambda *_: None
        self.definition: Definition
        self.language: str | None = None
        self.device = "cpu"
        self.memory: list[torch.Tensor] = []
        self.bench = Bench([], [])
        self.flush: torch.Tensor | None = None
        self.renew: Callable[[], Callable[..., Any]] | None = None
        self.event: Callable[..., Any]
        self.synchronize: Callable[[], None] = lambda: None

    def load(self, message: Message, files: list[int]) -> Message:
        """Open the arenas, then load the implementation."""
        import torch

        self.device = message["device"]
        if message["threads"]:
            _limit_threads(message["threads"])
        self.memory = [
            open_handle(handle, [file] if "file" in handle else [])
            for handle, file in zip(message["arenas"], [*files, 0, 0], strict=False)
        ]
        self.definition = Definition.model_validate(message["definition"])
        if self.device != "cpu":
            self.event, self.synchronize = torch.cuda.Event, torch.cuda.synchronize
            self.flush = torch.ones(_FLUSH_BYTES // 4, dtype=torch.int32, device=self.device)
            torch.cuda.synchronize()
        side = message["side"]
        if "language" in side:
            self.language = side["language"]
            build = Build(Path(side["source"]), Path(side["artifact"]), ())
            self.run = languages.get(side["language"]).load(build, self.definition)
        else:
            self._load_trusted(Path(side["definition"]), side["peer"])
        return {}

    def workload(self, message: Message) -> Message:
        """Lay the slots of one workload over the arenas."""
        scalars = message["scalars"]
        names = list(self.definition.inputs)
        arguments, landing = [], []
        for slot in message["slots"]:
            tensors = {name: _place(place).view(self.memory[0]) for name, place in slot["inputs"].items()}
            outputs = [_place(place).view(self.memory[1]) for place in slot["outputs"]]
            values = [tensors[name] if name in tensors else scalars[name] for name in names]
            arguments.append(values + (outputs if self.gives else []))
            landing.append(outputs)
        self.bench = Bench(arguments, landing)
        if self.renew is not None:
            self.run = self.renew()
        return {}

    @property
    def gives(self) -> bool:
        """Whether the implementation writes into given outputs; the reference always returns its own."""
        return self.definition.outputs_are == "given" and self.language is not None

    def call(self, message: Message) -> Message:
        """Run once on one slot; the results stay here until they are asked for."""
        slot = message["slot"]
        self.bench.returned.clear()
        with _poisoned(message.get("poison", False)):
            result = self.run(*self.bench.arguments[slot])
            self._settle()
        self.bench.returned[slot] = self._outputs(slot, result)
        return {}

    def burst(self, message: Message) -> Message:
        """Run every slot named, one after the other, and wait once: for the grader's wall clock."""
        self.bench.returned.clear()
        results = {slot: self.run(*self.bench.arguments[slot]) for slot in message["slots"]}
        self._settle()
        self.bench.returned.update({slot: self._outputs(slot, result) for slot, result in results.items()})
        return {}

    def events(self, message: Message) -> Message:
        """Run every slot named behind a cache flush each, timed by the device's events: seconds a slot."""
        assert self.flush is not None
        self.bench.returned.clear()
        results, marks = {}, []
        for slot in message["slots"]:
            start, end = self.event(enable_timing=True), self.event(enable_timing=True)
            self.flush.sum()  # a read: lines left dirty would be written back inside the timed call
            start.record()
            results[slot] = self.run(*self.bench.arguments[slot])
            end.record()
            marks.append((start, end))
        self.synchronize()
        self.bench.returned.update({slot: self._outputs(slot, result) for slot, result in results.items()})
        return {"seconds": [start.elapsed_time(end) * 1e-3 for start, end in marks]}

    def deliver(self, message: Message) -> Message:
        """Copy one slot's results to where the grader looks, and say what they were."""
        slot = message["slot"]
        landing, outputs = self.bench.landing[slot], self.bench.returned.pop(slot)
        kinds = [
            {"type": type(output).__name__, "shape": list(getattr(output, "shape", ())),
             "dtype": str(getattr(output, "dtype", "")).removeprefix("torch.")}
            for output in outputs
        ]  # fmt: skip
        expected = [
            {"type": "Tensor", "shape": list(place.shape), "dtype": str(place.dtype).removeprefix("torch.")}
            for place in landing
        ]
        if kinds == expected:
            for place, output in zip(landing, outputs, strict=True):
                if output.data_ptr() != place.data_ptr():
                    place.copy_(output)
        self._settle()
        return {"outputs": kinds}

    def resources(self, message: Message) -> Message:
        """The compiler's report after the calls."""
        if self.language is None:
            return {"resources": []}
        found = languages.get(self.language).resources(self.run)
        return {"resources": [resource.model_dump(mode="json") for resource in found]}

    def _outputs(self, slot: int, result: Any) -> list[Any]:  # noqa: ANN401 - whatever was returned
        if self.gives:
            return list(self.bench.landing[slot])
        return list(result) if isinstance(result, tuple | list) else [result]

    def _load_trusted(self, path: Path, peer: str) -> None:
        """The reference or a peer of the definition: the project's own code."""
        from warpsmith.lab import definition_file

        file = definition_file.load(path)
        if peer == COMPILED:
            self.renew = lambda: _compiled(file.reference)
        else:
            self.run = file.reference if peer == REFERENCE else file.peers[peer]

    def _settle(self) -> None:
        """Wait for the device; on a CPU there is nothing to wait for."""
        self.synchronize()


def serve(channel: Channel) -> None:
    """Answer the grader until it hangs up."""
    worker = Worker()
    verbs: dict[str, Callable[[Message], Message]] = {
        "workload": worker.workload,
        "call": worker.call,
        "burst": worker.burst,
        "events": worker.events,
        "deliver": worker.deliver,
        "resources": worker.resources,
    }
    while True:
        message, files = channel.receive(files=2)
        try:
            verb = message["do"]
            answer = worker.load(message, files) if verb == "load" else verbs[verb](message)
            channel.send({"ok": True, **answer})
        except Exception as error:
            text = " ".join(str(error).split())[:600]
            channel.send({"ok": False, "error": type(error).__name__, "message": text})


def _limit_threads(count: int) -> None:
    """Use so many cores, whichever OpenMP runtime the implementation brings."""
    import torch

    os.environ["OMP_NUM_THREADS"] = str(count)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    torch.set_num_threads(count)


def _compiled(reference: Callable[..., Any]) -> Callable[..., Any]:
    """torch.compile anew: guards of other workloads would slow its calls."""
    import torch

    torch._dynamo.reset()
    compiled: Callable[..., Any] = torch.compile(reference, dynamic=False)
    return compiled


def _place(parts: list[Any]) -> Place:
    return Place(parts[0], tuple(parts[1]), parts[2])


@contextmanager
def _poisoned(wanted: bool) -> Iterator[None]:
    """Fresh memory holds NaN inside: what was not written cannot pass by luck."""
    if not wanted:
        yield
        return
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
