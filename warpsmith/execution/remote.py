"""Runs of jobs on another machine: the lab is brought there, the job starts, and its outcome comes back, verified.

A lost connection is opened again. The job does not notice, as long as somebody asks for it within the grace.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from warpsmith import errors
from warpsmith.core.base import Model
from warpsmith.core.evaluation import GATE_VERSION
from warpsmith.core.text import NoticeLine, ProgressLine, Tell, describe_error, quote_foreign
from warpsmith.errors import MachineFailed, MachineLacks, Unreachable, WarpsmithError
from warpsmith.execution import contexts, lab_copy, station
from warpsmith.execution.bundle import Bundle
from warpsmith.execution.contexts import NamedContext
from warpsmith.execution.job import Outcome
from warpsmith.execution.lab_copy import LabCopy
from warpsmith.execution.slurm import AllocationEnded, SlurmConnection
from warpsmith.execution.slurm_client import Allocation
from warpsmith.execution.ssh import SshConnection
from warpsmith.lab.machine import provenance

MODULE = "warpsmith.campaign.jobs"
"""Module that performs a job on the other machine."""

SKEW_SECONDS = 60.0
"""Difference of the clocks from which it is said: records give minutes."""

_BEAT_SECONDS = 2.0
_BEAT, _CANCEL, _DONE = b"b", b"c", b"d"
_WAITS = (0.2, 1.0, 2.0, 5.0)
"""Seconds before each attempt to connect again; the last one repeats."""
_CONNECTION_LOST = 255
_RUNS = 3
"""Allocations that may end before a job is done."""
_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^'.]+)")

Event = dict[str, Any]


class Probe(Model):
    """Answer of the other machine before anything runs there."""

    python: str
    """Version of its Python."""
    executable: str
    """Path of its Python."""
    workdir: str
    """Folder of the lab and the jobs."""
    host: str
    """Name that it has for itself."""
    time: float
    """Seconds since 1970 by its clock."""
    free: int
    """Free bytes on the disk of the folder."""
    writable: bool
    """True if the folder takes files."""
    lab: bool
    """True if this lab is there, whole."""
    packages: dict[str, str | None]
    """Version of each package that was asked for; null if it is not installed."""


@dataclass(frozen=True)
class RemoteOutcome:
    """Outcome of a job with what the connection said about it."""

    outcome: Outcome
    """Outcome, verified."""
    skew: float
    """Seconds by which the other clock is ahead."""
    allocation: Allocation | None = None
    """Slurm's job in which it ran."""


class RemoteMachine:
    """Machine of a context, to which jobs are sent."""

    def __init__(
        self,
        entry: NamedContext,
        tell: Tell = lambda _: None,
        lab: LabCopy | None = None,
        root: Path = Path(),
    ) -> None:
        """Take a context, for the project at `root`; nothing is connected yet.

        Raises:
            Misuse: the user has not agreed to a shared context.
        """
        contexts.require_trust(entry)
        self.entry, self._tell, self._lab = entry, tell, lab or LabCopy()
        self._connection = SlurmConnection(entry, root, tell) if entry.context.slurm else SshConnection(entry)
        self._contacts = 0

    def probe(self, packages: Sequence[str] = ()) -> Probe:
        """Ask what is there; `packages` are looked for in its Python.

        Raises:
            MachineLacks: it cannot be reached, has no Python, or refuses the folder.
        """
        with self._station({"action": "probe", "lab": self._lab.sha256, "packages": list(packages)}) as talk:
            event = talk.next_event()
            return Probe.model_validate({key: value for key, value in event.items() if key != "event"})

    def run(self, bundle: Bundle) -> RemoteOutcome:
        """Run a job there and return its verified outcome.

        Raises:
            MachineLacks: it cannot be reached, or lacks something.
            MachineFailed: the job ended without an outcome, or the outcome is not that of this job and lab.
            WarpsmithError: the job ended with this error there.
        """
        lost_since, waits, ends = 0.0, iter(_WAITS), 0
        while True:
            before = self._contacts
            try:
                return self._attend(bundle)
            except AllocationEnded as error:
                ends += 1
                if ends == _RUNS:
                    raise MachineLacks(
                        f"{error} That happened {_RUNS} times before the job was done; ask for more time with"
                        " `context add --time`."
                    ) from error
                self._tell(NoticeLine(f"{error} The job is run again."))
                lost_since, waits = time.monotonic(), iter(_WAITS)
            except Unreachable as error:
                if self._contacts == 0:
                    raise  # it was never reached
                if self._contacts > before:
                    lost_since, waits = time.monotonic(), iter(_WAITS)
                lost_for = time.monotonic() - lost_since
                if lost_for > self.entry.context.grace:
                    raise Unreachable(
                        f"{self.entry.name}: the connection was lost for {lost_for:.0f} s, so the job there has"
                        f" ended; run the command again when it is back. {error}"
                    ) from error
                self._tell(f"{self.entry.name}: the connection is lost, the job goes on; connecting again")
                time.sleep(next(waits, _WAITS[-1]))

    def bring_lab(self) -> None:
        """Bring the lab there; raises MachineLacks if it cannot be kept there."""
        archive = self._lab.pack()
        self._tell(f"{self.entry.name}: bringing the lab, {len(archive) / 1e6:.1f} MB")
        with self._station({"action": "lab", "lab": self._lab.sha256}, archive) as talk:
            lab_copy.save_compiled_sha256(self.entry, self._lab, talk.next_event()["compiled"])

    def close(self) -> None:
        """Close the shared connection."""
        self._connection.close()

    def _attend(self, bundle: Bundle) -> RemoteOutcome:
        context = self.entry.context
        request = {
            "action": "run",
            "lab": self._lab.sha256,
            "bundle": bundle.sha256,
            "module": MODULE,
            "grace": context.grace,
            "step": context.slurm,
            "environment": {name: os.environ[name] for name in context.variables if name in os.environ},
        }
        for _ in range(2):
            compiled = lab_copy.read_compiled_sha256(self.entry, self._lab)
            with self._station(request | {"compiled": compiled}, bundle.data) as talk:
                event = talk.next_event()
                if event["event"] == "started":
                    self._contacts += 1
                    return self._await_outcome(talk, bundle, event["time"] - time.time())
            self.bring_lab()
        raise MachineFailed(
            f"{self.entry.name}: the lab does not stay whole in {context.workdir}; look at its disk."
        )

    def _await_outcome(self, talk: _Talk, bundle: Bundle, skew: float) -> RemoteOutcome:
        try:
            while (event := talk.next_event(beating=True))["event"] == "progress":
                line = event["line"]
                share = line.get("share")
                self._tell(line["text"] if share is None else ProgressLine(line["text"], share))
            data = talk.read(event["size"])
        except KeyboardInterrupt:
            talk.send(_CANCEL)
            raise
        if hashlib.sha256(data).hexdigest() != event["sha256"]:
            raise Unreachable(f"{self.entry.name}: the outcome did not arrive as it was sent.")
        if interruption := self._connection.interruption():
            raise interruption  # what was killed along with its allocation looks like a version that fails
        allocation = self._connection.allocation
        talk.send(_DONE)
        if not data:
            raise self._no_outcome(event)
        return RemoteOutcome(self._verified(data, bundle), skew, allocation)

    def _no_outcome(self, event: Event) -> WarpsmithError:
        name = self.entry.name
        if event["free"] < 2**20:
            return MachineLacks(f"{name}: the disk of {self.entry.context.workdir} is full; free some of it.")
        if event["reason"] == "abandoned":
            return MachineLacks(
                f"{name}: nobody asked for the job for {self.entry.context.grace} s, so it was ended."
            )
        if module := _MISSING_MODULE.search(event["log"]):
            return MachineLacks(
                f"{name}: the Python there has no `{module[1]}`; `warpsmith doctor --context {name}` names what is"
                " missing and the command that installs it."
            )
        tail = event["log"].strip()[-400:]
        return MachineFailed(
            f"{name}: the job ended ({event['reason']}) without an outcome: {quote_foreign(tail)}"
        )

    def _verified(self, data: bytes, bundle: Bundle) -> Outcome:
        """Return the outcome if it belongs to this bundle, lab and gate; raises the error that it holds."""
        name = self.entry.name
        try:
            outcome = Outcome.model_validate_json(data)
        except ValidationError as error:
            raise MachineFailed(f"{name}: the outcome does not validate: {describe_error(error)}.") from error
        expected = {
            "bundle": (bundle.sha256, outcome.bundle_sha256),
            "lab": (provenance.lab_sha256(), outcome.lab_sha256),
            "gate version": (GATE_VERSION, outcome.gate_version),
        }
        if evaluation := outcome.evaluation:
            origin = evaluation.provenance
            expected["version"] = (bundle.solution_sha256, origin.solution_sha256)
            expected["best version"] = (bundle.best_sha256, origin.best_sha256)
            expected["lab of the record"] = (provenance.lab_sha256(), origin.lab_sha256)
        for part, (sent, received) in expected.items():
            if sent != received:
                raise MachineFailed(
                    f"{name}: the outcome is of another {part} than the one that was sent; nothing was recorded."
                )
        if outcome.error:
            raise _error_of(outcome.error.kind, f"{name}: {outcome.error.message}")
        return outcome

    @contextmanager
    def _station(self, request: Mapping[str, Any], payload: bytes = b"") -> Iterator[_Talk]:
        """Open the connection, send a request, and yield the conversation; the process has ended afterwards."""
        self._connection.open()
        message = {**request, "workdir": self.entry.context.workdir, "payload": len(payload)}
        if allocation := self._connection.allocation:
            message["allocation"] = f"{allocation.job} {allocation.start}"
        with tempfile.TemporaryFile() as messages:
            process = self._connection.start_station(messages)
            try:
                talk = _Talk(self.entry, process, self._connection, messages)
                talk.send(json.dumps(message).encode() + b"\n" + payload)
                yield talk
            finally:
                for stream in (process.stdin, process.stdout):
                    with suppress(OSError):
                        stream.close()  # type: ignore[union-attr] # both are pipes
                try:
                    process.wait(_BEAT_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


class _Talk:
    """Conversation with the other end: events from it, and single bytes to it."""

    def __init__(
        self,
        entry: NamedContext,
        process: subprocess.Popen[bytes],
        connection: SshConnection | SlurmConnection,
        messages: IO[bytes],
    ) -> None:
        self._entry, self._process, self._connection, self._messages = entry, process, connection, messages
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout.fileno()
        self._buffer, self._last_beat = b"", time.monotonic()

    def send(self, data: bytes) -> None:
        """Send bytes; an end that is gone shows at the next event."""
        with suppress(BrokenPipeError):
            self._input.write(data)
            self._input.flush()

    def next_event(self, *, beating: bool = False) -> Event:
        """Return the next event; while waiting, show that somebody waits, if `beating`.

        Raises:
            Unreachable: the connection ended.
            MachineLacks: the other end, or `ssh`, refuses.
            MachineFailed: the other end failed.
        """
        while True:
            while b"\n" not in self._buffer:
                self._receive(beating)
            line, _, self._buffer = self._buffer.partition(b"\n")
            if line.startswith(station.MARK):
                break  # else the other shell greets, as its start-up files say
        event: Event = json.loads(line.removeprefix(station.MARK))
        if event["event"] == "error":
            raise self._refusal(event)
        return event

    def read(self, size: int) -> bytes:
        """Return the bytes that follow an event; raises as `next_event` does."""
        while len(self._buffer) < size:
            self._receive(beating=True)
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def _receive(self, beating: bool) -> None:
        while True:
            is_ready = select.select([self._output], [], [], _BEAT_SECONDS)[0]
            if beating and time.monotonic() - self._last_beat >= _BEAT_SECONDS:  # also while lines keep coming
                self.send(_BEAT)
                self._last_beat = time.monotonic()
            if is_ready:
                break
        data = os.read(self._output, 1 << 16)
        if not data:
            raise self._end()
        self._buffer += data

    def _end(self) -> Exception:
        """Return the error of a conversation that ended too early."""
        code = self._process.wait()
        self._messages.seek(0)
        text = self._messages.read().decode(errors="replace")
        if code in (0, _CONNECTION_LOST) or code < 0:
            return self._connection.failure(_CONNECTION_LOST, text)
        if "Traceback" in text or "SyntaxError" in text:
            last = quote_foreign(text.strip().splitlines()[-1])
            return MachineFailed(f"{self._entry.name}: Python on {self._connection.location} failed: {last}")
        return self._connection.failure(code, text)

    def _refusal(self, event: Event) -> WarpsmithError:
        name, context, text = self._entry.name, self._entry.context, event["message"]
        match event["kind"]:
            case "python":
                return MachineLacks(
                    f"{name}: `{context.python}` on {self._connection.location} is Python {text}, the lab needs"
                    " 3.11 or newer; name another with `warpsmith context add --python`."
                )
            case "full":
                return MachineLacks(f"{name}: the disk of {context.workdir} is full ({text}); free some of it.")
            case "files":
                return MachineLacks(f"{name}: {text}; correct it there, or choose another folder with --workdir.")
            case _:
                return MachineFailed(f"{name}: {text}; run the command again.")


def _error_of(kind: str, message: str) -> WarpsmithError:
    classes = {each.__name__: each for each in vars(errors).values() if isinstance(each, type)}
    cls = classes.get(kind, MachineFailed)
    return cls(message) if issubclass(cls, WarpsmithError) else MachineFailed(message)
