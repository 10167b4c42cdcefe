"""The untrusted side: loads one implementation and calls it when told. Nothing it says is a verdict.

It gets inputs in shared memory and leaves outputs there; it never holds a reference value, a tolerance or
a result file. The names it times with are bound before an implementation is loaded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpsmith import languages
from warpsmith.core.definition import Definition
from warpsmith.core.evaluation import COMPILED, REFERENCE
from warpsmith.errors import MachineFailed
from warpsmith.lab.workers import fresh_memory, late_inputs
from warpsmith.lab.workers.arena import TensorPlacement, open_arena
from warpsmith.lab.workers.channel import Channel, Message
from warpsmith.lab.workers.fresh_memory import FreshContent
from warpsmith.languages.base import Build, HoldsBack
from warpsmith.languages.triton import toolchain_key as triton_key

if TYPE_CHECKING:
    import torch

_WARM_UPS = 2


@dataclass
class WorkloadTensors:
    """One workload's tensors, slot by slot, and what the last calls returned."""

    arguments: list[list[Any]]
    """Inputs of every slot, and the given outputs where the definition gives them."""
    landing: list[list[torch.Tensor]]
    """Where the grader looks for the outputs, slot by slot."""
    returned: dict[int, list[Any]] = field(default_factory=dict)
    """What calls returned, until it is delivered."""
    graph: Any = None
    """The captured block of calls, and what they return at every replay."""


class Worker:
    """State of one worker process."""

    def __init__(self) -> None:
        self.run: Callable[..., Any] = lambda *_: None
        self.definition: Definition
        self.language: str | None = None
        self.device = "cpu"
        self.memory: list[torch.Tensor] = []
        self.bench = WorkloadTensors([], [])
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
            open_arena(handle, [file] if "file" in handle else [])
            for handle, file in zip(message["arenas"], [*files, 0, 0], strict=False)
        ]
        self.definition = Definition.model_validate(message["definition"])
        if self.device != "cpu":
            self.event, self.synchronize = torch.cuda.Event, torch.cuda.synchronize
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
            tensors = {
                name: _parse_placement(place).view(self.memory[0]) for name, place in slot["inputs"].items()
            }
            outputs = [_parse_placement(place).view(self.memory[1]) for place in slot["outputs"]]
            values = [tensors[name] if name in tensors else scalars[name] for name in names]
            arguments.append(values + (outputs if self.gives else []))
            landing.append(outputs)
        self.bench = WorkloadTensors(arguments, landing)
        if self.renew is not None:
            self.run = self.renew()
        return {}

    @property
    def gives(self) -> bool:
        """Whether the implementation writes into given outputs; the reference always returns its own."""
        return self.definition.outputs_are == "given" and self.language is not None

    def call(self, message: Message) -> Message:
        """Run once on one slot and say where the results are; they stay here until the next call."""
        slot = message["slot"]
        fresh = _fresh_content(message.get("fresh", ""), self.bench.returned.get(slot, []))
        if not message.get("keep"):
            self.bench.returned.clear()
        with fresh:
            result = self.run(*self.bench.arguments[slot])
            self._settle()
        self.bench.returned[slot] = outputs = self._outputs(slot, result)
        return {"outputs": [_describe_output(output) for output in outputs]}

    def late(self, message: Message) -> Message:
        """Run once on a slot while another slot's tensors are still being copied over its own, in a CUDA graph or
        without one; `why` says what stood against the graph, `broken` against the copy."""
        slot, source = message["slot"], message["source"]
        self.bench.returned.clear()
        try:
            write = late_inputs.prepare_late_copy(self._pairs(source, slot))
            if not message["captured"]:
                write()
        except MachineFailed as error:
            return {"broken": str(error)}
        if message["captured"]:
            if why := self._record([slot], write):
                return {"why": why}
            graph, [(_, result)] = self.bench.graph
            graph.replay()
        else:
            result = self.run(*self.bench.arguments[slot])
        self._settle()
        self.bench.returned[slot] = outputs = self._outputs(slot, result)
        return {"outputs": [_describe_output(output) for output in outputs]}

    def capture(self, message: Message) -> Message:
        """Warm up, then record a call of every slot named in a CUDA graph; `why` says what stood against it."""
        self.bench.graph = None
        self.bench.returned.clear()
        for slot in message["slots"][:_WARM_UPS]:
            self.run(*self.bench.arguments[slot])
        self.synchronize()
        return {"why": self._record(message["slots"])}

    def block(self, message: Message) -> Message:
        """A call of every slot named, or the captured ones (`times` over): seconds by the device's events."""
        self.bench.returned.clear()
        start, end = self.event(enable_timing=True), self.event(enable_timing=True)
        if message["graph"]:
            graph, results = self.bench.graph
            start.record()
            for _ in range(message.get("times", 1)):
                graph.replay()
            end.record()
        else:
            start.record()
            results = [(slot, self.run(*self.bench.arguments[slot])) for slot in message["slots"]]
            end.record()
        self.synchronize()
        self.bench.returned.update({slot: self._outputs(slot, result) for slot, result in results})
        return {"seconds": start.elapsed_time(end) * 1e-3}

    def audit(self, message: Message) -> Message:
        """One call with PyTorch's operators written down: name to the elements that went through it."""
        from warpsmith.lab.workers import audit

        with audit.record_operators() as heard:
            self.run(*self.bench.arguments[message["slot"]])
            self._settle()
        return {"operators": heard}

    def ghost(self, message: Message) -> Message:
        """One call with the launches of the solution's own kernels held back, where its language can do that."""
        language: object = languages.get(self.language or "")
        if not isinstance(language, HoldsBack):
            return {"stubbed": False}
        slot = message["slot"]
        self.bench.returned.clear()
        with fresh_memory.poisoned_memory(), language.held_back():
            result = self.run(*self.bench.arguments[slot])
            self._settle()
        self.bench.returned[slot] = outputs = self._outputs(slot, result)
        return {"stubbed": True, "outputs": [_describe_output(output) for output in outputs]}

    def nothing(self, message: Message) -> Message:
        """What handing over to and fro costs."""
        return {}

    def warm(self, message: Message) -> Message:
        """Make the device's context ahead of time."""
        import torch

        if message["device"] != "cpu":
            torch.empty(1, device=message["device"])
        return {}

    def deliver(self, message: Message) -> Message:
        """Copy one slot's results to where the grader looks, and say what they were."""
        slot = message["slot"]
        landing, outputs = self.bench.landing[slot], self.bench.returned[slot]
        kinds = [_describe_output(output) for output in outputs]
        fits = [
            {**_describe_output(place), "address": kind["address"]}
            for place, kind in zip(landing, kinds, strict=False)
        ]
        if kinds == fits:
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

    def _record(self, slots: list[int], ahead: Callable[[], None] = lambda: None) -> str:
        """Capture what is to be launched ahead and a call of every slot; what stood against it, empty: nothing."""
        import torch

        self.bench.graph = None
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                ahead()
                results = [(slot, self.run(*self.bench.arguments[slot])) for slot in slots]
        except Exception as error:
            torch.cuda.synchronize()
            return f"{type(error).__name__}: {_short(error, 200)}"
        self.bench.graph = (graph, results)
        return ""

    def _pairs(self, source: int, target: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The tensors of two slots, one by one: inputs, and the outputs that are given."""
        import torch

        slots = (self.bench.arguments[source], self.bench.arguments[target])
        return [pair for pair in zip(*slots, strict=True) if isinstance(pair[0], torch.Tensor)]

    def _outputs(self, slot: int, result: Any) -> list[Any]:  # noqa: ANN401 - whatever was returned
        if self.gives:
            return list(self.bench.landing[slot])
        return list(result) if isinstance(result, tuple | list) else [result]

    def _load_trusted(self, path: Path, peer: str) -> None:
        """The reference or a peer of the definition: the project's own code."""
        from warpsmith.lab.operator import definition_file

        file = definition_file.load_definition(path)
        if peer == COMPILED:
            self.renew = lambda: _compile_afresh(_with_contiguous_results(file.reference))
        else:
            self.run = _with_contiguous_results(file.reference) if peer == REFERENCE else file.peers[peer]

    def _settle(self) -> None:
        """Wait for the device; on a CPU there is nothing to wait for."""
        self.synchronize()


def prepare_workers() -> None:
    """Import and build, in the process that workers are forked from, what each of them needs."""
    for name in languages.names():
        languages.get(name)
    Definition.model_rebuild()
    if "triton" in sys.modules and os.environ.get("TRITON_INTERPRET") != "1":
        triton_key.make()


def serve_grader(channel: Channel) -> None:
    """Answer the grader until it hangs up."""
    worker = Worker()
    verbs: dict[str, Callable[[Message], Message]] = {
        "workload": worker.workload,
        "warm": worker.warm,
        "call": worker.call,
        "capture": worker.capture,
        "block": worker.block,
        "audit": worker.audit,
        "ghost": worker.ghost,
        "late": worker.late,
        "nothing": worker.nothing,
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
            channel.send({"ok": False, "error": type(error).__name__, "message": _short(error, 600)})


def _limit_threads(count: int) -> None:
    """Use so many cores, whichever OpenMP runtime the implementation brings."""
    import torch

    os.environ["OMP_NUM_THREADS"] = str(count)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    torch.set_num_threads(count)


def _with_contiguous_results(reference: Callable[..., Any]) -> Callable[..., Any]:
    """The reference with contiguous results, as versions owe them: it may return a view, and pays for its copy."""
    import torch

    def run(*arguments: Any) -> Any:  # noqa: ANN401 - whatever the reference takes and returns
        result = reference(*arguments)
        if isinstance(result, tuple | list):
            return [value.contiguous() if isinstance(value, torch.Tensor) else value for value in result]
        return result.contiguous() if isinstance(result, torch.Tensor) else result

    return run


def _compile_afresh(reference: Callable[..., Any]) -> Callable[..., Any]:
    """torch.compile anew: guards of other workloads would slow its calls."""
    import torch

    torch._dynamo.reset()
    compiled: Callable[..., Any] = torch.compile(reference, dynamic=False)
    return compiled


def _parse_placement(parts: list[Any]) -> TensorPlacement:
    offset, shape, dtype, strides = parts
    return TensorPlacement(offset, tuple(shape), dtype, None if strides is None else tuple(strides))


def _describe_output(output: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever was returned
    """What a result is and where it lies, for the grader to look at."""
    import torch

    if type(output) is not torch.Tensor:
        return {"type": type(output).__name__, "shape": [], "dtype": "", "strides": [], "address": 0}
    return {
        "type": "Tensor",
        "shape": list(output.shape),
        "dtype": str(output.dtype).removeprefix("torch."),
        "strides": list(output.stride()),
        "address": output.data_ptr(),
    }


def _short(error: BaseException, most: int) -> str:
    return " ".join(str(error).split())[:most]


def _fresh_content(how: FreshContent, earlier: list[Any]) -> AbstractContextManager[None]:
    """What the worker's own memory holds where a call allocates it."""
    if how == "poison":
        return fresh_memory.poisoned_memory()
    return fresh_memory.prefilled_memory(earlier) if how == "earlier" else nullcontext()
