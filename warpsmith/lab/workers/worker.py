"""Untrusted side: it loads one implementation and calls it on request. Nothing it reports is a verdict.

It reads inputs from shared memory and leaves outputs there. It never holds a reference value, a tolerance or a
result file. The functions that it measures time with are bound before an implementation is loaded.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import itertools
import os
import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpsmith import languages
from warpsmith.core.definition import Definition
from warpsmith.core.evaluation import COMPILED, NULL, REFERENCE
from warpsmith.errors import MachineFailed
from warpsmith.lab.operator import peers
from warpsmith.lab.operator.peers import Peer, PreparedWeights
from warpsmith.lab.workers import phase_times, process_state
from warpsmith.lab.workers.arena import TensorPlacement, open_arena
from warpsmith.lab.workers.calls import fresh_memory, late_inputs, openmp_state, page_memory
from warpsmith.lab.workers.calls.caller_modes import flush_subnormals
from warpsmith.lab.workers.calls.timer_signals import send_timer_signals
from warpsmith.lab.workers.channel import Channel, Message
from warpsmith.languages.base import (
    Build,
    CompilesAhead,
    CountsLines,
    ReplaysLaunches,
    StoresStamps,
    SuppressesLaunches,
)

if TYPE_CHECKING:
    import torch

_WARM_UPS = 2
_PAUSE_SECONDS = 2e-4
"""Pause before a call that is made while others' threads come and go, so that these have Python to themselves."""


@dataclass
class WorkloadTensors:
    """Tensors of one workload, slot by slot, and the results of the latest calls."""

    arguments: list[list[Any]]
    """Inputs of every slot, followed by the outputs if the definition gives them."""
    destinations: list[list[torch.Tensor]]
    """Tensors in shared memory where the grader reads the outputs, slot by slot."""
    results: dict[int, list[Any]] = field(default_factory=dict)
    """Results of calls by slot, until they are delivered."""
    graph: Any = None
    """Captured block of calls, and the results that every replay writes."""
    drawn: list[list[Any]] = field(default_factory=list)
    """Inputs of every slot as they were drawn, for a peer that prepares some of them."""
    prepared: PreparedWeights | None = None
    """Weights in that peer's own form."""


class Worker:
    """State of one worker process."""

    def __init__(self) -> None:
        self.run: Callable[..., Any] = lambda *_: None
        self.definition: Definition
        self.build: Build
        self.language: str | None = None
        self.device = "cpu"
        self.memory: list[torch.Tensor] = []
        self.state: process_state.ProcessState = {}
        self.tensors = WorkloadTensors([], [])
        self.renew: Callable[[], Callable[..., Any]] | None = None
        self.peer: Peer | None = None
        self.threads: defaultdict[int, ThreadPoolExecutor] = defaultdict(lambda: ThreadPoolExecutor(1))
        self.trim: Callable[[], object] = functools.partial(ctypes.CDLL(None).malloc_trim, 0)
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
            self.build = Build(Path(side["source"]), Path(side["artifact"]), ())
            language = languages.get(side["language"])
            self.state = process_state.read_initial_state(self.device)
            recorded = message.get("recorded_for")
            if message.get("counted") and isinstance(language, CountsLines):
                language.begin_counts(self.build)
            if recorded and isinstance(language, ReplaysLaunches):
                language.record_launches(recorded)
            self.run = language.load(self.build, self.definition)
            if recorded:
                from warpsmith.lab.workers.calls import audit

                self.run = audit.without_library(self.run)
        else:
            self._load_trusted(Path(side["definition"]), side["peer"])
        return {}

    def set_environment(self, message: Message) -> Message:
        """Set variables, remove those with null, and replace the arguments; before anything is loaded."""
        for name, value in message["variables"].items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        sys.argv[:] = message["arguments"]
        return {}

    def workload(self, message: Message) -> Message:
        """Lay out the slots of one workload in the arenas."""
        names = list(self.definition.inputs)
        arguments, destinations = [], []
        for slot in message["slots"]:
            tensors = {
                name: _parse_placement(placement).view(self.memory[0])
                for name, placement in slot["inputs"].items()
            }
            outputs = [_parse_placement(placement).view(self.memory[1]) for placement in slot["outputs"]]
            values = [tensors[name] if name in tensors else slot["scalars"][name] for name in names]
            arguments.append(values + (outputs if self.writes_given_outputs else []))
            destinations.append(outputs)
        self.tensors = WorkloadTensors(arguments, destinations)
        if self.peer is not None and self.peer.prepare is not None:
            self.tensors.drawn, self.tensors.prepared = list(arguments), PreparedWeights(self.peer, names)
        if self.renew is not None:
            self.run = self.renew()
        return {}

    def prepare_weights(self, message: Message) -> Message:
        """Bring the weights of all slots into the form that a peer takes, as they were drawn last."""
        tensors = self.tensors
        assert tensors.prepared is not None
        for slot, inputs in enumerate(tensors.drawn):
            tensors.arguments[slot] = tensors.prepared.arguments_of_run(slot, inputs)
        self._settle()
        return {}

    @property
    def writes_given_outputs(self) -> bool:
        """Return whether the implementation writes into given outputs; the reference always returns its own."""
        return self.definition.outputs_are == "given" and self.language is not None

    def call(self, message: Message) -> Message:
        """Run once on one slot and describe the results, which stay in this process until the next call."""
        slot = message["slot"]
        fresh = fresh_memory.fill_new_memory(message.get("fresh", ""), self.tensors.results.get(slot, []))
        if not message.get("keep"):
            self.tensors.results.clear()
        with fresh:
            result = self.call_as(slot, **message.get("caller", {}))
            self._settle()
        return self._keep_result(message, result)

    def call_as(self, slot: int, placement: str = "", interval: float = 0, flush: int = 0, **caller: int) -> Any:  # noqa: ANN401
        """Return the results of a call.

        Args:
            slot: the slot.
            placement: its inputs are copied to pages of their own, and so placed there; not if it is empty.
            interval: seconds between signals of a timer that arrive meanwhile; 0 is none.
            flush: 1 if subnormal numbers count as zero for this thread.
            caller: arguments of `openmp_state.call_as`; without any, this thread calls.
        """
        arguments = self.tensors.arguments[slot]
        if placement:
            inputs = dict(zip(self.definition.inputs, arguments, strict=False))
            anywhere = [name for name, spec in self.definition.tensor_inputs.items() if spec.layout == "any"]
            copies = page_memory.copy_to_pages(inputs, placement, anywhere)
            arguments = [*copies, *arguments[len(inputs) :]]
        run = functools.partial(self.run, *arguments)
        with send_timer_signals(interval), flush_subnormals(flush):
            return openmp_state.call_as(run, **caller) if caller else run()

    def call_again(self, message: Message) -> Message:
        """Call up to `times` times on slots in turns, for up to `seconds`; earlier results stay alive.

        The C library gives back what is free, so that the process's size says what is in use.
        """
        arguments = itertools.cycle([self.tensors.arguments[slot] for slot in message["slots"]])
        started, calls = time.monotonic(), 0
        while calls < message["times"] and time.monotonic() - started < message["seconds"]:
            self.run(*next(arguments))
            calls += 1
        self._settle()
        self.trim()
        return {"calls": calls}

    def call_in_succession(self, message: Message) -> Message:
        """Run on a slot, copy another slot's tensors there, run again at once; describe the second results."""
        slot, source = message["slot"], message["source"]
        self.tensors.results.clear()
        self.run(*self.tensors.arguments[slot])
        for other, tensor in self._pairs(source, slot):  # outputs that are given are poisoned again
            tensor.copy_(other)
        result = self.run(*self.tensors.arguments[slot])
        self._settle()
        return self._keep_result(message, result)

    def call_at_once(self, message: Message) -> Message:
        """Run some times on each named slot, each in a thread of its own; describe the last results by slot.

        All begin at once. The thread of every other slot stays for later calls on that slot, and calls until the
        rest have ended, which have a new one for each call.

        Raises:
            Exception: that of the first call that fails.
        """
        self.tensors.results.clear()

        begin = threading.Barrier(len(message["slots"]))
        renewing = {slot for slot in message["slots"] if slot % 2}

        def run(slot: int) -> Any:  # noqa: ANN401 - whatever it returns
            call = functools.partial(self.run, *self.tensors.arguments[slot])
            begin.wait()
            result, renews = call(), slot in renewing
            try:
                for number in itertools.count(1):
                    if number >= message["times"] and (renews or not renewing):
                        return result
                    if number >= message["times"]:
                        time.sleep(_PAUSE_SECONDS)
                    result = openmp_state.call_as(call) if renews else call()
            finally:
                renewing.discard(slot)

        calls = {slot: self.threads[slot].submit(run, slot) for slot in message["slots"]}
        results = {slot: call.result() for slot, call in calls.items()}
        self.tensors.results.update({slot: self._outputs(slot, result) for slot, result in results.items()})
        return {"slots": [[describe_output(output) for output in self.tensors.results[slot]] for slot in results]}

    def call_with_late_inputs(self, message: Message) -> Message:
        """Run once on a slot while another slot's tensors are still being copied over its own, with or without a
        CUDA graph.

        The answer has `reason` if the call cannot be captured, and `driver_error` if the copy cannot be launched.
        """
        slot, source = message["slot"], message["source"]
        self.tensors.results.clear()
        try:
            launch_copy = late_inputs.prepare_late_copy(self._pairs(source, slot))
            if not message["captured"]:
                launch_copy()
        except MachineFailed as error:
            return {"driver_error": str(error)}
        if message["captured"]:
            if reason := self._record([slot], launch_copy):
                return {"reason": reason}
            graph, [(_, result)] = self.tensors.graph
            graph.replay()
        else:
            result = self.run(*self.tensors.arguments[slot])
        self._settle()
        return self._keep_result(message, result)

    def capture(self, message: Message) -> Message:
        """Warm up, then record a call on every named slot in a CUDA graph; `reason` says why that failed, or is
        empty."""
        self.tensors.graph = None
        self.tensors.results.clear()
        for slot in message["slots"][:_WARM_UPS]:
            self.run(*self.tensors.arguments[slot])
        self.synchronize()
        return {"reason": self._record(message["slots"])}

    def block(self, message: Message) -> Message:
        """Call every named slot, or replay the captured calls `times` times; return the seconds between the
        device's events, and those that the host took to issue the calls."""
        self.tensors.results.clear()
        start, end = self.event(enable_timing=True), self.event(enable_timing=True)
        answer = {}
        if message["graph"]:
            graph, results = self.tensors.graph
            start.record()
            for _ in range(message.get("times", 1)):
                graph.replay()
            end.record()
        else:
            start.record()
            begun = time.perf_counter()
            results = [(slot, self.run(*self.tensors.arguments[slot])) for slot in message["slots"]]
            answer["issue"] = time.perf_counter() - begun
            end.record()
        self.synchronize()
        self.tensors.results.update({slot: self._outputs(slot, result) for slot, result in results})
        return {"seconds": start.elapsed_time(end) * 1e-3, **answer}

    def compare_state(self, _: Message) -> Message:
        """Return what the version changed in this process since it was loaded."""
        after = process_state.read_process_state(self.device)
        return {"changes": process_state.describe_changes(self.state, after)}

    def audit(self, message: Message) -> Message:
        """Call twice and count the elements that go through each PyTorch operator in a call."""
        from warpsmith.lab.workers.calls import audit

        def call() -> None:
            self.run(*self.tensors.arguments[message["slot"]])
            self._settle()

        return {"operators": audit.operators_of_call(call)}

    def call_without_launches(self, message: Message) -> Message:
        """Call once with the launches of the solution's own kernels suppressed, if its language supports that."""
        language: object = languages.get(self.language or "")
        if not isinstance(language, SuppressesLaunches):
            return {"suppressed": False}
        slot = message["slot"]
        self.tensors.results.clear()
        with fresh_memory.poisoned_memory(), language.suppress_launches():
            result = self.run(*self.tensors.arguments[slot])
            self._settle()
        return {"suppressed": True, **self._keep_result(message, result)}

    def compile_ahead(self, message: Message) -> Message:
        """Compile what calls at these workloads would launch, in parallel; nothing is launched."""
        language: object = languages.get(self.language or "")
        if not isinstance(language, CompilesAhead):
            return {"kernels": 0}
        return {"kernels": language.compile_ahead(self._calls(message["workloads"]), message["threads"])}

    def _calls(self, workloads: list[Message]) -> Iterator[Callable[[], object]]:
        for workload in workloads:
            self.workload(workload)
            for arguments in self.tensors.arguments:
                yield functools.partial(self.run, *arguments)

    def phases(self, message: Message) -> Message:
        """Call a version that stores stamps several times on its slots; return the times of its phases, or
        `reason`."""
        import torch

        language: object = languages.get(self.language or "")
        if not isinstance(language, StoresStamps):
            return {"reason": f"{self.language} stores no stamps"}
        self.run(*self.tensors.arguments[0])  # compiles
        rows, calls = language.stamp_rows(self.build), []
        for slot in message["slots"]:
            rows.zero_()
            self._settle()
            self.run(*self.tensors.arguments[slot])
            self._settle()
            calls.append(rows.clone())
        try:
            times = phase_times.summarise_stamps(torch.cat(calls), message["names"])
        except ValueError as error:
            return {"reason": str(error)}
        return {"times": times.model_dump(mode="json")}

    def no_op(self, message: Message) -> Message:
        """Answer at once; the time of this message is the cost of handing over to the worker and back."""
        return {}

    def warm(self, message: Message) -> Message:
        """Create the device's context ahead of time."""
        import torch

        if message["device"] != "cpu":
            torch.empty(1, device=message["device"])
        return {}

    def deliver(self, message: Message) -> Message:
        """Copy one slot's results to where the grader reads them, and describe them."""
        return {"outputs": self._deliver(message["slot"])}

    def _keep_result(self, message: Message, result: Any) -> Message:  # noqa: ANN401 - whatever was returned
        """Keep the result of a call on a slot, deliver it if the message says so, and describe it."""
        slot = message["slot"]
        self.tensors.results[slot] = outputs = self._outputs(slot, result)
        deliver = message.get("deliver")
        return {"outputs": self._deliver(slot) if deliver else [describe_output(each) for each in outputs]}

    def _deliver(self, slot: int) -> list[dict[str, Any]]:
        destinations, outputs = self.tensors.destinations[slot], self.tensors.results[slot]
        descriptions = [describe_output(output) for output in outputs]
        expected = [
            {**describe_output(destination), **{key: description.get(key) for key in ("address", "storage")}}
            for destination, description in zip(destinations, descriptions, strict=False)
        ]
        if descriptions == expected:
            for destination, output in zip(destinations, outputs, strict=True):
                if output.data_ptr() != destination.data_ptr():
                    destination.copy_(output)
        self._settle()
        return descriptions

    def resources(self, message: Message) -> Message:
        """Return the compiler's report after the calls."""
        if self.language is None:
            return {"resources": []}
        report = languages.get(self.language).resources(self.run)
        return {"resources": [resource.model_dump(mode="json") for resource in report]}

    def take_counts(self, message: Message) -> Message:
        """Return the counters of lines, if the version was loaded to count them."""
        language: object = languages.get(self.language or "")
        return {"counts": language.take_counts(self.build) if isinstance(language, CountsLines) else ""}

    def call_recorded(self, message: Message) -> Message:
        """Call once, with the launches recorded and not interpreted; the result is dropped."""
        language: object = languages.get(self.language or "")
        if isinstance(language, ReplaysLaunches):
            with language.hold_launches():
                self.run(*self.tensors.arguments[message["slot"]])
        return {}

    def launches(self, message: Message) -> Message:
        """Return the launches since the last such message, if the version was loaded to record them."""
        language: object = languages.get(self.language or "")
        launches = language.take_launches() if isinstance(language, ReplaysLaunches) else []
        return {"launches": [launch.model_dump(mode="json") for launch in launches]}

    def _record(self, slots: list[int], launch_first: Callable[[], None] = lambda: None) -> str:
        """Capture what is to be launched first and a call of every slot in a CUDA graph.

        Returns the error that prevented it, or an empty string.
        """
        import torch

        self.tensors.graph = None
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        try:
            with torch.cuda.graph(graph):
                launch_first()
                results = [(slot, self.run(*self.tensors.arguments[slot])) for slot in slots]
        except Exception as error:
            torch.cuda.set_stream(stream)  # PyTorch leaves the stream of a capture that fails in place
            torch.cuda.synchronize()
            return f"{type(error).__name__}: {_short(error, 200)}"
        self.tensors.graph = (graph, results)
        return ""

    def _pairs(self, source: int, target: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Pair the tensors of two slots: inputs, and outputs that are given."""
        import torch

        slots = (self.tensors.arguments[source], self.tensors.arguments[target])
        return [pair for pair in zip(*slots, strict=True) if isinstance(pair[0], torch.Tensor)]

    def _outputs(self, slot: int, result: Any) -> list[Any]:  # noqa: ANN401 - whatever was returned
        if self.writes_given_outputs:
            return list(self.tensors.destinations[slot])
        return list(result) if isinstance(result, tuple | list) else [result]

    def _load_trusted(self, path: Path, peer: str) -> None:
        """Load the null kernel, or the reference or a peer of the definition: the project's own code."""
        from warpsmith.lab.operator import definition_file

        if peer == NULL:
            self.run = peers.null_kernel(self.device)
            return
        file = definition_file.load_definition(path)
        if peer == COMPILED:
            self.renew = lambda: peers.compile_afresh(peers.with_contiguous_results(file.reference))
        else:
            self.run = peers.with_contiguous_results(file.reference) if peer == REFERENCE else file.peers[peer]
            self.peer = self.run if isinstance(self.run, Peer) else None

    def _settle(self) -> None:
        """Wait for the device; a CPU needs no wait."""
        self.synchronize()


def prepare_workers() -> None:
    """Import and build what every worker needs, in the process that workers are forked from."""
    every = [languages.get(name) for name in languages.names()]
    Definition.model_rebuild()
    for language in every:
        language.prepare_fork()


def serve_grader(channel: Channel) -> None:
    """Answer the grader until it closes the channel, or leave that to the module that it names in `become`."""
    worker = Worker()
    verbs: dict[str, Callable[[Message], Message]] = {
        "set_environment": worker.set_environment,
        "workload": worker.workload,
        "prepare_weights": worker.prepare_weights,
        "warm": worker.warm,
        "call": worker.call,
        "call_again": worker.call_again,
        "call_in_succession": worker.call_in_succession,
        "call_at_once": worker.call_at_once,
        "capture": worker.capture,
        "block": worker.block,
        "audit": worker.audit,
        "compare_state": worker.compare_state,
        "call_without_launches": worker.call_without_launches,
        "call_with_late_inputs": worker.call_with_late_inputs,
        "call_recorded": worker.call_recorded,
        "compile_ahead": worker.compile_ahead,
        "no_op": worker.no_op,
        "phases": worker.phases,
        "deliver": worker.deliver,
        "resources": worker.resources,
        "launches": worker.launches,
        "take_counts": worker.take_counts,
        "leave": leave_program,
    }
    while True:
        message, files = channel.receive(files=2)
        try:
            verb = message["do"]
            if verb == "become":
                importlib.import_module(message["module"]).serve_rank(channel)
            answer = worker.load(message, files) if verb == "load" else verbs[verb](message)
            channel.send({"ok": True, **answer})
        except Exception as error:
            channel.send(describe_failure(error))


def describe_failure(error: Exception) -> Message:
    """Return the answer to a request that raised, with the lines that did."""
    text = f"{_short(error, 600)}{_describe_place(error)}"
    return {"ok": False, "error": type(error).__name__, "message": text}


def leave_program(message: Message) -> Message:
    """End this process with an exit code, after the handlers that kernels registered for its end."""
    ctypes.CDLL(None).exit(message["code"])
    raise AssertionError("exit returned")


def _limit_threads(count: int) -> None:
    """Use `count` cores, whichever OpenMP runtime the implementation brings."""
    import torch

    os.environ["OMP_NUM_THREADS"] = str(count)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    torch.set_num_threads(count)


def _parse_placement(parts: list[Any]) -> TensorPlacement:
    offset, shape, dtype, strides = parts
    return TensorPlacement(offset, tuple(shape), dtype, None if strides is None else tuple(strides))


def describe_output(output: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever was returned
    """Describe the type, shape, strides and address of a result for the grader."""
    import torch

    if type(output) is not torch.Tensor:
        return {"type": type(output).__name__, "shape": [], "dtype": "", "strides": [], "address": 0}
    mode = "inference mode" if output.is_inference() else "a gradient" if output.requires_grad else ""
    return {
        "type": "Tensor",
        "shape": list(output.shape),
        "dtype": str(output.dtype).removeprefix("torch."),
        "strides": list(output.stride()),
        "address": output.data_ptr(),
        "bound_to": mode,
        "storage": output.untyped_storage().nbytes(),
    }


def _short(error: BaseException, most: int) -> str:
    return " ".join(str(error).split())[:most]


def _describe_place(error: BaseException) -> str:
    """Return ` (v3.py:57 in run; headers.py:12 in find)`: the version's line, and the one that raised."""
    frames = list(traceback.walk_tb(error.__traceback__))
    inner = [frame for frame in frames if frame[0].f_globals.get("__name__", "").startswith("warpsmith_solution_")]
    places = (
        f"{Path(frame.f_code.co_filename).name}:{line} in {frame.f_code.co_name}"
        for frame, line in (*inner[-1:], frames[-1])
    )
    return f" ({'; '.join(dict.fromkeys(places))[:200]})" if inner else ""
