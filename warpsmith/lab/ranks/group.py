"""Group of ranks: one version in a process per rank, as the grader sees it."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from math import ceil
from pathlib import Path
from select import select
from typing import TYPE_CHECKING, Any

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Status
from warpsmith.errors import MachineFailed
from warpsmith.lab.machine import system
from warpsmith.lab.ranks import shards
from warpsmith.lab.ranks.multicast import refuse_multicast
from warpsmith.lab.ranks.start_gate import StartGate
from warpsmith.lab.timing import answers
from warpsmith.lab.workers import process
from warpsmith.lab.workers.arena import Arena, Layout, TensorPlacement, poison_tensor
from warpsmith.lab.workers.side import Limits, Side, SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.temporary import TemporaryFolder

if TYPE_CHECKING:
    import torch

    from warpsmith.lab.workers.channel import Message

SLOTS = 4
"""Sets of inputs of a workload that a rank has at once, and calls in a row. Chosen: the ranks may drift apart by
some calls."""

JOLT_SECONDS = {"cpu": 0.4, "cuda": 0.02}
"""Seconds of a block in which a rank's host is jolted at most, by device. Chosen: it bounds a check. A GPU goes on
while its host is stopped, so it is jolted by kernels."""

HOLD_SECONDS = 6e-5
"""Seconds at most by which a GPU is held before a call of a block in which a rank is jolted. Chosen: a few
kernels."""

BLOCK_SECONDS, LEAST_ROUNDS, MOST_ROUNDS = 1e-3, 2, 32
"""Seconds of a timed block on a GPU, and its rounds over the slots. Chosen: long against the resolution of its
clock and the start; a queue of launches has some hundred places."""

COPIES = (-2, -1)
"""Copies of a call's outputs, by their places: right after the call, and after the last call of the block."""

_RUN_SECONDS, _STOP_SECONDS = 3e-5, 1e-3
"""Mean seconds from one stop of a jolted rank to the next, and of a stop. Chosen: a flag that is raised early is
followed by its data within some microseconds."""

_RANK = "warpsmith.lab.ranks.rank"
_LOOK_SECONDS = 0.1
_JOIN_SECONDS = 120.0
"""Seconds until all ranks have joined: contexts and connections. Chosen."""


class RankGroup:
    """All ranks of one version. Methods that ask them raise SideFailed, and end all, if one does not deliver."""

    def __init__(
        self,
        name: str,
        definition: Definition,
        workloads: Sequence[Workload],
        source: Path,
        content: bytes,
        host: WorkerHost,
        limits: Limits,
    ) -> None:
        """Start the processes, and load the version in all of them.

        Args:
            name: name of the side, for failures.
            definition: the operator.
            workloads: all workloads that will be opened.
            source: file of the version, for its name.
            content: its content, of which the ranks get a copy.
            host: supplies the workers.
            limits: time for one request to all ranks together, and memory for each.

        Raises:
            SideFailed: the version does not load.
            MachineFailed: the ranks cannot reach each other.
            Misuse: the host is for GPUs, and the version names NVLink multicast.
        """
        import torch

        self.name, self.definition, self._limits, self.device = name, definition, limits, host.device
        if self.device != "cpu":
            refuse_multicast(source.name, content.decode(errors="replace"))
        self._folder = TemporaryFolder("ranks")
        self._sides: list[Side] = []
        self._arenas: list[tuple[Arena, Arena]] = []
        self._places: list[dict[str, list[TensorPlacement]]] = []
        self._local, self._workload = definition, workloads[0]
        self.grading_device = self.device if torch.cuda.is_available() else "cpu"
        """Device for inputs and truths, which take seconds on a processor."""
        self._gate = StartGate(definition.ranks) if self.device != "cpu" else None
        self._rounds, self._most_rounds, self._fresh, self._warm = LEAST_ROUNDS, MOST_ROUNDS, True, True
        self.devices: tuple[str, ...] = ()
        """Name of each rank's GPU; empty on a processor."""
        self.nccl = ""
        """Version of NCCL; empty on a processor."""
        self.ahead: bool | None = None
        """True if all ranks had issued all calls of the last timed block when it began; None on a processor."""
        try:
            self._start(source, content, host, workloads)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> RankGroup:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all ranks, and what they started, and remove what they wrote."""
        with ExitStack() as stack:
            stack.callback(self._folder.cleanup)
            for arenas in self._arenas:
                for arena in arenas:
                    stack.callback(arena.close)
            if self._gate is not None:
                stack.callback(self._gate.close)
            for side in self._sides:
                stack.callback(side.close)
            if self.device != "cpu":  # each takes a second to give its GPU back, so all do so at once
                for side in filter(Side.is_running, self._sides):
                    process.signal_all(side.pid, (), signal.SIGKILL)
        self._sides, self._arenas, self._gate = [], [], None

    def open_workload(self, workload: Workload) -> None:
        """Lay out a workload on all ranks."""
        self._local, self._workload = shards.localize_definition(self.definition, workload), workload
        _, self._places = self._lay_out(self._local, workload)
        numbers = self._local.scalars(workload)
        slots = [
            {
                "inputs": [
                    numbers[name] if name in numbers else _as_json(self._places[slot][name][0])
                    for name in self._local.inputs
                ],
                "outputs": [
                    [_as_json(self._places[slot][name][copy]) for name in self._local.outputs] for copy in COPIES
                ],
            }
            for slot in range(SLOTS)
        ]
        self._rounds, self._most_rounds, self._fresh, self._warm = LEAST_ROUNDS, MOST_ROUNDS, True, True
        self._ask([{"do": "workload", "slots": slots}] * self.definition.ranks)

    def fill(self, slots: Sequence[Mapping[str, torch.Tensor]]) -> None:
        """Stop all ranks, write each one's part of the inputs of every slot, and poison all outputs.

        The ranks stay stopped until they are called, so that none begins early.
        """
        self.pause()
        self._fresh = True
        for rank, (inputs, outputs) in enumerate(self._arenas):
            for slot, tensors in enumerate(slots):
                for name, tensor in tensors.items():
                    part = self._part(name, tensor, rank)
                    self._places[slot][name][0].view(inputs.memory).copy_(part)
            for places in self._places:
                for name in self._local.outputs:
                    for copy in COPIES:
                        poison_tensor(places[name][copy].view(outputs.memory))

    def call_slots(
        self,
        pauses: Sequence[Sequence[float]],
        jolted: int | None = None,
        *,
        checked: bool = True,
        graded: int | None = None,
    ) -> float:
        """Call once on every slot, on all ranks, and stop them. On GPUs, a block that is not checked calls many
        times on every slot, by their clocks and from a common start.

        Args:
            pauses: seconds before each call, by rank; the ranks are called in an order by chance. On GPUs the host
                pauses or a kernel holds the GPU, by chance, and nothing does in a block that is not checked.
            jolted: rank that is stopped and continued many times within its calls, at instants by chance.
            checked: look for changed inputs, and poison their memory between calls, which takes time.
            graded: the one slot whose results are delivered after a timed block on GPUs; by default all are.

        Returns:
            Seconds for one call on every slot until the last rank is done: by the grader's clock, from the common
            start to the last answer, or by the GPUs' clocks.
        """
        timed = self.device != "cpu" and not checked
        message: Message = self._block_message(graded) if timed else {"do": "call", "checked": checked}
        messages: list[Message] = []
        for rank, each in enumerate(pauses):
            jam = rank == jolted and self.device != "cpu"
            host, holds = self._delays(each, jolted is not None) if not timed else ([], [])
            messages.append(message | {"pauses": host, "holds": holds, "jam": jam, "fresh": self._fresh})
        seconds, reports = self._ask(messages, jolted=jolted, gate=self._gate if timed else None)
        self.pause()  # what a rank has not delivered when it answers is missing
        self._fresh = False
        for rank, report in enumerate(reports):
            slots = report.get("slots")
            if not isinstance(slots, list) or len(slots) != SLOTS:
                raise SideFailed(Status.RUNTIME_ERROR, f"rank {rank} answered out of turn", self.name)
            for slot in slots:
                with self._naming(rank):
                    facts = answers.parse_outputs(slot, self.name)
                    answers.check_outputs(self._local, self._workload, facts)
        return self._read_clocks(reports, message["rounds"]) if timed else seconds

    def _delays(self, pauses: Sequence[float], jolting: bool) -> tuple[list[float], list[float]]:
        """Split a rank's pauses into those of its host and the holds of its GPU; with `jolting` a GPU is held
        before each call."""
        if self.device == "cpu":
            return list(pauses), [0.0] * len(pauses)
        if jolting:
            return list(pauses), [random.uniform(0, HOLD_SECONDS) for _ in pauses]
        by_host = [random.random() < 0.5 for _ in pauses]
        host = [pause if chosen else 0.0 for pause, chosen in zip(pauses, by_host, strict=True)]
        return host, [pause - own for pause, own in zip(pauses, host, strict=True)]

    def _block_message(self, graded: int | None) -> Message:
        """Return the request for a timed block, whose number of calls nobody can foresee."""
        assert self._gate is not None
        rounds = self._rounds + random.randrange(self._rounds // 4 + 1)
        other = random.randrange(SLOTS) if graded is None else graded
        slot = random.choice([each for each in range(SLOTS) if each != other])
        drawn = random.randrange(rounds - 1) * SLOTS + slot  # the last round leaves each slot with its own result
        warm, self._warm = self._warm, False
        return {
            "do": "call", "checked": False, "block": self._gate.shut(), "rounds": rounds, "drawn": [drawn, other],
            "warm": warm, "delivered": list(range(SLOTS)) if graded is None else [graded],
        }  # fmt: skip

    def _read_clocks(self, reports: Sequence[Message], rounds: int) -> float:
        """Return the slowest GPU's seconds for one call on every slot, and choose the length of the next block."""
        assert self._gate is not None
        times = []
        for rank, report in enumerate(reports):
            with self._naming(rank):
                times.append(answers.parse_seconds(report, self.name) / rounds)
        self.ahead = self._gate.ahead
        if not self.ahead:  # the queue of launches may be full
            self._most_rounds = max(LEAST_ROUNDS, self._most_rounds // 2)
        self._rounds = min(max(ceil(BLOCK_SECONDS / max(times)), LEAST_ROUNDS), self._most_rounds)
        return max(times)

    def read_outputs(self, slot: int, copy: int) -> list[dict[str, torch.Tensor]]:
        """Copy one of the `COPIES` of a slot's outputs, by rank."""
        return [
            {name: self._places[slot][name][copy].view(outputs.memory).clone() for name in self._local.outputs}
            for _, outputs in self._arenas
        ]

    def changed_input(self, slot: int, tensors: Mapping[str, torch.Tensor]) -> str:
        """Return `rank 1's x` for an input that no longer holds what was written; empty if all do."""
        import torch

        for rank, (inputs, _) in enumerate(self._arenas):
            for name, tensor in tensors.items():
                content = self._places[slot][name][0].view(inputs.memory)
                both = (content.to(tensor.device), self._part(name, tensor, rank))
                if not torch.equal(*(each.reshape(-1).view(torch.uint8) for each in both)):
                    return f"rank {rank}'s {name}"
        return ""

    def pause(self) -> None:
        """Stop all ranks."""
        for rank, side in enumerate(self._sides):
            with self._naming(rank):
                side.pause()

    def _start(self, source: Path, content: bytes, host: WorkerHost, workloads: Sequence[Workload]) -> None:
        definition, copy = self.definition, Path(self._folder.name) / source.name
        copy.write_bytes(content)
        sizes = [self._lay_out(shards.localize_definition(definition, each), each)[0] for each in workloads]
        self._arenas = [
            (Arena(max(i.room for i, _ in sizes), "cpu"), Arena(max(o.room for _, o in sizes), "cpu"))
            for _ in range(definition.ranks)
        ]
        for rank in range(definition.ranks):
            side = host.start_side(f"rank {rank}", self._limits, trusted=True)
            side.runs_foreign_code = True
            self._sides.append(side)
        self._ask([{"do": "become", "module": _RANK}] * definition.ranks)
        messages, descriptors = [], []
        for rank, arenas in enumerate(self._arenas):
            handles, files = zip(*(arena.handle() for arena in arenas), strict=True)
            descriptors.append(tuple(file for group in files for file in group))
            if self._gate is not None:
                descriptors[-1] += (self._gate.file,)
            messages.append({
                "do": "join", "device": self.device, "rank": rank, "ranks": definition.ranks,
                "folder": self._folder.name, "arenas": list(handles),
                "threads": max(1, system.usable_cores() // definition.ranks),
            })  # fmt: skip
        try:
            _, reports = self._ask(messages, descriptors, seconds=max(_JOIN_SECONDS, self._limits.seconds))
        except SideFailed as failure:
            raise MachineFailed(f"The ranks cannot reach each other: {failure.message}.") from failure
        self.devices = tuple(str(report["device"]) for report in reports if "device" in report)
        self.nccl = str(reports[0].get("nccl", ""))
        self._ask([{"do": "load", "source": str(copy), "name": definition.name}] * definition.ranks)

    def _ask(
        self,
        messages: Sequence[Message],
        files: Sequence[tuple[int, ...]] = (),
        jolted: int | None = None,
        gate: StartGate | None = None,
        seconds: float | None = None,
    ) -> tuple[float, list[Message]]:
        """Send each rank its message, wait for all, and return the seconds until the last answer and the answers.
        `gate` is opened meanwhile; `seconds` replaces the time limit.

        Raises:
            SideFailed: a rank fails, or not all answer in time; then all are ended.
        """
        waiting = {side: rank for rank, side in enumerate(self._sides)}
        reports: dict[int, Message] = {}
        order = random.SystemRandom().sample(range(len(messages)), len(messages))
        limit, jolts = seconds or self._limits.seconds, JOLT_SECONDS[self.device]
        started = ended = time.monotonic()
        try:
            for rank in order:
                with self._naming(rank):
                    self._sides[rank].tell(messages[rank], files[rank] if files else ())
            while waiting:
                if gate is not None and not gate.is_open:
                    gate.look()
                    ready = select(list(waiting), [], [], 0)[0]
                elif jolted is not None and jolted in waiting.values() and time.monotonic() - started < jolts:
                    with self._naming(jolted):
                        self._jolt(self._sides[jolted])
                    ready = select(list(waiting), [], [], 0)[0]
                else:
                    ready = select(list(waiting), [], [], _LOOK_SECONDS)[0]
                ended = time.monotonic()
                for side in ready:
                    rank = waiting.pop(side)
                    with self._naming(rank):
                        reports[rank] = side.answer(messages[rank]["do"])
                if waiting and ended - started > limit:
                    raise self._too_late(sorted(waiting.values()), limit)
                if gate is not None and not gate.is_open:
                    continue
                for side, rank in () if ready else waiting.items():
                    with self._naming(rank):
                        side.check_limits()
        except SideFailed:
            self.close()
            raise
        return ended - started, [reports[rank] for rank in range(len(messages))]

    def _jolt(self, side: Side) -> None:
        """Let a rank run for some microseconds, and stop it for as long as the others need to overtake it."""
        until = time.monotonic() + random.uniform(0, 2 * _RUN_SECONDS)
        while time.monotonic() < until:
            pass
        side.pause()
        time.sleep(_STOP_SECONDS)
        side.resume()

    @contextmanager
    def _naming(self, rank: int) -> Iterator[None]:
        """Say in a failure that it is this rank's, and of which version."""
        try:
            yield
        except SideFailed as failure:
            raise self._failure_on(rank, failure) from failure

    def _failure_on(self, rank: int, failure: SideFailed) -> SideFailed:
        return SideFailed(failure.status, f"rank {rank}: {failure.message}", self.name)

    def _too_late(self, ranks: list[int], seconds: float) -> SideFailed:
        names = f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
        text = f"{names} did not answer within {seconds:g} s; all {len(self._sides)} ranks were ended"
        return SideFailed(Status.TIMEOUT, text, self.name)

    def _part(self, name: str, tensor: torch.Tensor, rank: int) -> torch.Tensor:
        spec = self.definition.tensor_inputs[name]
        return shards.take_shard(spec, tensor, rank, self.definition.ranks)

    def _lay_out(
        self, local: Definition, workload: Workload
    ) -> tuple[tuple[Layout, Layout], list[dict[str, list[TensorPlacement]]]]:
        """Place the tensors of every slot in an arena of inputs and one of outputs; the ranks' are alike."""
        layouts, places = (Layout(), Layout()), []
        for _ in range(SLOTS):
            slot: dict[str, list[TensorPlacement]] = {}
            kinds = [(layouts[0], local.tensor_inputs), *((layouts[1], local.outputs) for _ in COPIES)]
            for layout, specs in kinds:
                for name, spec in specs.items():
                    placement = layout.add(local.shape(spec, workload), local.dtype(spec, workload))
                    slot.setdefault(name, []).append(placement)
            places.append(slot)
        return layouts, places


def _as_json(placement: TensorPlacement) -> list[Any]:
    return [placement.offset, list(placement.shape), placement.dtype]
