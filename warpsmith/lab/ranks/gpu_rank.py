"""Untrusted side of one rank on a GPU: calls in a row on its stream, and blocks by its GPU's clock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from warpsmith.lab.ranks import gpu_kernels
from warpsmith.lab.ranks.multicast import require_multicast_off
from warpsmith.lab.ranks.rank import Rank, copy_inputs, deliver_outputs, same_form
from warpsmith.lab.ranks.start_gate import PAGE_BYTES, GatePage
from warpsmith.lab.workers.arena import poison_tensor
from warpsmith.lab.workers.worker import describe_output

if TYPE_CHECKING:
    import torch

    from warpsmith.lab.workers.channel import Message

WARM_ROUNDS = 2
"""Rounds over the slots before the first block at a workload, ungated: kernels are loaded and connections made."""

UNSEEN_SECONDS = 5e-5
"""Seconds beyond the last event after which a GPU counts as still at work. Chosen: an idle one answers sooner."""


class GpuRank(Rank):
    """State of one rank's process that has a GPU of its own, and sees those of all ranks.

    Everything of a call is in the order of one stream, so that GPUs may drift apart while the host goes ahead.
    """

    device: torch.device
    stream: torch.cuda.Stream
    jam_stream: torch.cuda.Stream
    gate: GatePage
    gate_address: int
    event: Callable[..., Any]
    synchronize: Callable[[], None]
    set_stream: Callable[[torch.cuda.Stream], None]
    masters: list[list[Any]]
    inputs: list[list[Any]]

    def connect(self, message: Message, files: list[int]) -> Message:
        """Take this rank's GPU and join the others through NCCL, with NVLink multicast off."""
        import torch.cuda.nccl
        import torch.distributed

        require_multicast_off(os.environ)
        os.environ["NCCL_SOCKET_IFNAME"] = "lo"
        os.environ.pop("CUDA_LAUNCH_BLOCKING", None)  # no call could be issued while its GPU waits for the start
        self.rank, self.device = message["rank"], torch.device("cuda", message["rank"])
        torch.cuda.set_device(self.device)
        torch.empty(1, device=self.device)  # creates the context
        self.event, self.synchronize = torch.cuda.Event, torch.cuda.synchronize
        self.set_stream = torch.cuda.set_stream
        self.stream = torch.cuda.current_stream()
        self.jam_stream = torch.cuda.Stream(priority=-1)  # type: ignore[no-untyped-call]
        self.gate = GatePage(files[2])
        self.gate_address = gpu_kernels.map_host_memory(self.gate.address, PAGE_BYTES)
        gpu_kernels.load_kernels()
        torch.distributed.init_process_group(
            "nccl",
            init_method=message["meeting"],
            rank=message["rank"],
            world_size=message["ranks"],
            device_id=self.device,
        )
        torch.distributed.all_reduce(torch.zeros(1, device=self.device))
        self.synchronize()
        return {
            "device": torch.cuda.get_device_name(self.device),
            "nccl": ".".join(map(str, torch.cuda.nccl.version())),  # type: ignore[no-untyped-call]
        }

    def load(self, message: Message) -> Message:
        """Import the version, which must leave multicast off."""
        answer = super().load(message)
        require_multicast_off(os.environ)
        return answer

    def workload(self, message: Message) -> Message:
        """Lay out the slots of one workload: in the arenas, as the base does, and on this GPU."""
        answer = super().workload(message)
        self.masters = [[self._to_gpu(value) for value in inputs] for inputs in self.staged]
        self.inputs = [[self._to_gpu(value) for value in inputs] for inputs in self.staged]
        self.arguments = [self._to_gpu(value) for value in self.staged[0]]
        self.synchronize()
        return answer

    def call_slots(self, message: Message) -> Message:
        """Call once on each slot, or time a block of calls.

        With `checked`, inputs are copied by the stream when the call before has ended. A rank is late by a pause
        of its host, or by a kernel that holds its stream. With `jam`, its GPU is taken from its kernels many
        times meanwhile. Results are copied on the stream: right after their call, and after the last one.

        Otherwise it calls `rounds` times on all slots in turn, from the start that all GPUs share. At the call
        `drawn` the slot's inputs are those of another slot, and its result is delivered as that one's: it is
        copied right after the call. The times of these copies do not count. The answer has `seconds`, for all
        calls by this GPU's clock.
        """
        self._upload(message)
        return self._call_checked(message) if message["checked"] else self._time_block(message)

    def _call_checked(self, message: Message) -> Message:
        results, early, left = list[list[Any]](), [], []
        self._poison(self.arguments)
        self.synchronize()
        if message["jam"]:
            gpu_kernels.jam_device(self.jam_stream)
        for slot, (pause, hold) in enumerate(zip(message["pauses"], message["holds"], strict=True)):
            if pause:
                time.sleep(pause)
            if hold:
                gpu_kernels.hold_stream(hold)
            copy_inputs(self.masters[slot], self.arguments)
            results.append(self._call(self.arguments))
            early.append(self._copy(results[slot], slot))
            left.append([value.clone() if _is_tensor(value) else value for value in self.arguments])
            self._poison(self.arguments)
        late = [self._copy(outputs, slot) for slot, outputs in enumerate(results)]
        self.synchronize()
        described = [[describe_output(output) for output in outputs] for outputs in results]
        for slot, places in enumerate(self.destinations):
            copy_inputs(left[slot], self.staged[slot])
            deliver_outputs(early[slot], places[0])
            deliver_outputs(late[slot], places[1])
        return {"slots": described}

    def _time_block(self, message: Message) -> Message:
        for slot, inputs in enumerate(self.inputs):
            copy_inputs(self.masters[slot], inputs)
        slots = len(self.inputs)
        calls = slots * message["rounds"]
        if message["warm"]:
            for number in range(slots * WARM_ROUNDS):
                self._call(self.inputs[number % slots])
        self.synchronize()
        drawn, other = message["drawn"]
        marks = [self.event(enable_timing=True) for _ in range(6)]
        results: list[list[Any]] = [[] for _ in range(slots)]
        early: list[Any] = []
        gpu_kernels.await_start(self.gate_address, message["block"])
        marks[0].record(self.stream)
        self.gate.report_arrival(self.rank, message["block"])
        for number in range(calls):
            slot = number % slots
            if number == drawn:
                marks[1].record(self.stream)
                copy_inputs(self.masters[other], self.inputs[slot])
                marks[2].record(self.stream)
            results[slot] = self._call(self.inputs[slot])
            if number == drawn:
                marks[3].record(self.stream)
                early = self._copy(results[slot], other)
                copy_inputs(self.masters[slot], self.inputs[slot])
                marks[4].record(self.stream)
        marks[5].record(self.stream)
        self.gate.report_issue(self.rank, message["block"])
        marks[5].synchronize()
        ended = time.perf_counter()
        self.synchronize()
        beyond = time.perf_counter() - ended
        copies = marks[1].elapsed_time(marks[2]) + marks[3].elapsed_time(marks[4])
        seconds = (marks[0].elapsed_time(marks[5]) - copies) * 1e-3
        described = [[describe_output(output) for output in outputs] for outputs in results]
        for slot in message["delivered"]:
            places, outputs = self.destinations[slot], self._copy(results[slot], slot)
            deliver_outputs(early if slot == other else outputs, places[0])
            deliver_outputs(outputs, places[1])
        copy_inputs(self.inputs[other], self.staged[other])
        return {"slots": described, "seconds": seconds + (beyond if beyond > UNSEEN_SECONDS else 0.0)}

    def _call(self, arguments: list[Any]) -> list[Any]:
        result = self.run(*arguments)
        self.set_stream(self.stream)  # what a version changes must not take the lab's work along
        return list(result) if isinstance(result, tuple | list) else [result]

    def _copy(self, outputs: list[Any], slot: int) -> list[Any]:
        """Copy results on the stream, if they have the form that is asked for.

        Raises:
            TypeError: one is on another device.
        """
        for output in outputs:
            if _is_tensor(output) and output.device != self.device:
                raise TypeError(f"run returned a tensor on {output.device}, not on {self.device}")
        if not same_form(outputs, self.destinations[slot][0]):
            return []
        return [output.clone() for output in outputs]

    def _upload(self, message: Message) -> None:
        if message["fresh"]:
            for source, master in zip(self.staged, self.masters, strict=True):
                copy_inputs(source, master)

    def _to_gpu(self, value: Any) -> Any:  # noqa: ANN401 - a tensor or a number
        import torch

        return torch.empty_like(value, device=self.device) if _is_tensor(value) else value

    def _poison(self, values: list[Any]) -> None:
        for value in values:
            if _is_tensor(value):
                poison_tensor(value)


def _is_tensor(value: object) -> bool:
    import torch

    return isinstance(value, torch.Tensor)
