"""Group of ranks: one version in a process per rank, as the grader sees it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from select import select
from typing import TYPE_CHECKING, Any

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Status
from warpsmith.lab.machine import system
from warpsmith.lab.ranks import shards
from warpsmith.lab.timing import answers
from warpsmith.lab.workers.arena import Arena, Layout, TensorPlacement, poison_tensor
from warpsmith.lab.workers.side import Limits, Side, SideFailed, WorkerHost
from warpsmith.temporary import TemporaryFolder

if TYPE_CHECKING:
    import torch

    from warpsmith.lab.workers.channel import Message

SLOTS = 4
"""Sets of inputs of a workload that a rank has at once, and calls in a row. Chosen: the ranks may drift apart by
some calls."""

JOLT_SECONDS = 0.4
"""Seconds of a block in which a rank is jolted at most. Chosen: it bounds a check."""

COPIES = (-2, -1)
"""Copies of a call's outputs, by their places: right after the call, and after the last call of the block."""

_RUN_SECONDS, _STOP_SECONDS = 3e-5, 1e-3
"""Mean seconds from one stop of a jolted rank to the next, and of a stop. Chosen: a flag that is raised early is
followed by its data within some microseconds."""

_RANK = "warpsmith.lab.ranks.rank"
_LOOK_SECONDS = 0.1


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
        """
        self.name, self.definition, self._limits = name, definition, limits
        self._folder = TemporaryFolder("ranks")
        self._sides: list[Side] = []
        self._arenas: list[tuple[Arena, Arena]] = []
        self._places: list[dict[str, list[TensorPlacement]]] = []
        self._local, self._workload = definition, workloads[0]
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
            for side in self._sides:
                stack.callback(side.close)
        self._sides, self._arenas = [], []

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
        self._ask([{"do": "workload", "slots": slots}] * self.definition.ranks)

    def fill(self, slots: Sequence[Mapping[str, torch.Tensor]]) -> None:
        """Stop all ranks, write each one's part of the inputs of every slot, and poison all outputs.

        The ranks stay stopped until they are called, so that none begins early.
        """
        self.pause()
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
        self, pauses: Sequence[Sequence[float]], jolted: int | None = None, *, checked: bool = True
    ) -> float:
        """Call once on every slot, on all ranks, and stop them.

        Args:
            pauses: seconds before each call, by rank; the ranks are called in an order by chance.
            jolted: rank that is stopped and continued many times within its calls, at instants by chance.
            checked: look for changed inputs, and poison their memory between calls, which takes time.

        Returns:
            Seconds from the common start until the last rank has answered, by the grader's clock.
        """
        messages: list[Message] = [{"do": "call", "pauses": list(each), "checked": checked} for each in pauses]
        seconds, reports = self._ask(messages, jolted=jolted)
        self.pause()  # what a rank has not delivered when it answers is missing
        for rank, report in enumerate(reports):
            slots = report.get("slots")
            if not isinstance(slots, list) or len(slots) != SLOTS:
                raise SideFailed(Status.RUNTIME_ERROR, f"rank {rank} answered out of turn", self.name)
            for slot in slots:
                with self._naming(rank):
                    facts = answers.parse_outputs(slot, self.name)
                    answers.check_outputs(self._local, self._workload, facts)
        return seconds

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
                both = (content, self._part(name, tensor, rank))
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
            (Arena(max(i.size for i, _ in sizes), "cpu"), Arena(max(o.size for _, o in sizes), "cpu"))
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
            messages.append({
                "do": "join", "rank": rank, "ranks": definition.ranks, "folder": self._folder.name,
                "threads": max(1, system.usable_cores() // definition.ranks), "arenas": list(handles),
                "source": str(copy), "name": definition.name,
            })  # fmt: skip
        self._ask(messages, descriptors)

    def _ask(
        self, messages: Sequence[Message], files: Sequence[tuple[int, ...]] = (), jolted: int | None = None
    ) -> tuple[float, list[Message]]:
        """Send each rank its message, wait for all, and return the seconds until the last answer and the answers.

        Raises:
            SideFailed: a rank fails, or not all answer in time; then all are ended.
        """
        waiting = {side: rank for rank, side in enumerate(self._sides)}
        reports: dict[int, Message] = {}
        order = random.SystemRandom().sample(range(len(messages)), len(messages))
        started = ended = time.monotonic()
        try:
            for rank in order:
                with self._naming(rank):
                    self._sides[rank].tell(messages[rank], files[rank] if files else ())
            while waiting:
                if jolted is not None and jolted in waiting.values() and time.monotonic() - started < JOLT_SECONDS:
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
                if waiting and ended - started > self._limits.seconds:
                    raise self._too_late(sorted(waiting.values()))
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

    def _too_late(self, ranks: list[int]) -> SideFailed:
        names = f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
        text = f"{names} did not answer within {self._limits.seconds:g} s; all {len(self._sides)} ranks were ended"
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
