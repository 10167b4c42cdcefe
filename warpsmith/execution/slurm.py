"""Slurm: one allocation for all jobs of a project in a context, and one step in it for each conversation.

A batch job holds the allocation. It is known by its name, so nothing about it is kept here. Its script ends, and
with it the allocation, when no step was there for the time of `idle`.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from warpsmith.core.text import NoticeLine, Tell
from warpsmith.errors import MachineLacks, Unreachable
from warpsmith.execution.contexts import NamedContext
from warpsmith.execution.shell import COMMAND_MISSING, LocalShell, Shell, last_line
from warpsmith.execution.slurm_client import Allocation, SlurmClient
from warpsmith.execution.ssh import SshConnection, private_runtime_folder
from warpsmith.execution.station_command import missing_python, station_command

_WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "SUSPENDED", "RESV_DEL_HOLD", "REQUEUE_FED")
_ENDING = ("COMPLETING", "STAGE_OUT", "SIGNALING", "STOPPED")
_RUNNING = "RUNNING"
_HOPELESS = (
    "PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig", "BadConstraints", "AccountNotAllowed",
    "QOSNotAllowed", "InvalidAccount", "InvalidQOS", "JobHeldUser", "JobHeldAdmin",
    "launch failed requeued held",
)  # fmt: skip
"""Reasons for waiting that no time mends."""

_ANNOUNCED: set[tuple[str, str]] = set()
"""Contexts and their jobs whose node was named in this process: a campaign has many connections to one job."""

_POLL_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Seconds between looks at a job in the queue; the last one repeats."""

_SETTLE_SECONDS = 120.0
"""Time for which an allocation may take to end."""

_LOGIN = 'unset HOME; export HOME=~ USER="$(id -un)"; export LOGNAME="$USER"; exec /bin/bash -l -c "$0"'
"""Shell text that runs a line as a login of this user does: nothing of the environment of a client travels."""


class AllocationEnded(Unreachable):
    """The allocation has ended, or was put back in the queue, through no fault of a job in it."""


class SlurmConnection:
    """Connection to a node of an allocation, which is asked for if there is none."""

    def __init__(self, entry: NamedContext, root: Path, tell: Tell = lambda _: None) -> None:
        """Prepare a connection for the project at `root`; nothing is asked for yet."""
        self.entry, self._tell = entry, tell
        self._shell: Shell = SshConnection(entry) if entry.context.ssh else LocalShell()
        self._client = SlurmClient(entry, self._shell)
        self._context_prefix = f"warpsmith-{entry.name}-{_digest(str(entry.file.resolve()))}-"
        self._project_prefix = f"{self._context_prefix}{_digest(str(root.resolve()))}-"
        self._name = self._project_prefix + _digest(json.dumps(entry.context.model_dump(mode="json")))
        self.allocation: Allocation | None = None

    @property
    def location(self) -> str:
        """Name of the node and the job in a sentence."""
        return f"{self.allocation.node} (Slurm job {self.allocation.job})" if self.allocation else "Slurm"

    def open(self) -> None:
        """Wait until the allocation runs; one is asked for if there is none.

        Raises:
            MachineLacks: Slurm has no commands here, refuses, or does not start it within the time of `wait`.
            AllocationEnded: it ended while it was waited for.
        """
        self._shell.open()
        with self._one_client():
            jobs = self._settled_jobs()
            job = jobs[0].job if jobs else self._client.submit(self._name, self._script())
        if not jobs:
            request = " ".join(self.entry.context.sbatch_options)
            self._tell(
                NoticeLine(f"{self.entry.name}: asked Slurm for an allocation, job {job} {request}".rstrip())
            )
        try:
            self._await_start(job, own=not jobs)
        except (KeyboardInterrupt, MachineLacks) as error:
            if not jobs and not isinstance(error, AllocationEnded):
                with suppress(MachineLacks):
                    self._client.cancel(job, pending=True)
            raise

    def start_station(self, errors: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the other end as a step of the allocation, with pipes to it; its stderr goes to `errors`."""
        assert self.allocation is not None
        step = [
            "srun", f"--jobid={self.allocation.job}", "--overlap", "--nodes=1", "--ntasks=1",
            f"--cpus-per-task={self.allocation.cores}", "--export=NONE", "--chdir=/", "--unbuffered", "--quiet",
            "--mpi=none", "--job-name=warpsmith",
        ]  # fmt: skip
        command = station_command(self.entry.context.python)
        return self._shell.start([*step, "/bin/bash", "-c", _LOGIN, f"exec {command}"], errors)

    def interruption(self) -> MachineLacks | None:
        """Return the error for an allocation that no longer runs; None if it runs. Raises MachineLacks."""
        if self.allocation is None:
            return None
        job = self.allocation.job
        for pause in _pauses(_SETTLE_SECONDS):
            state = self._client.read_allocation(job)
            if state is None or state.state not in _ENDING:
                break
            time.sleep(pause)
        return None if state and state.state == _RUNNING else self._ending(job, state)

    def failure(self, code: int, text: str) -> MachineLacks:
        """Return the error for an end of `srun` with this code and these messages."""
        if ended := self.interruption():
            return ended
        if code in (126, COMMAND_MISSING):
            return missing_python(self.entry, self.location)
        return Unreachable(
            f"{self.entry.name}: the step on {self.location} failed, code {code}: {last_line(text)}."
        )

    def close(self) -> None:
        """Close the connection to the login node; the allocation stays."""
        self._shell.close()

    def list_allocations(self) -> list[Allocation]:
        """List the allocations of this context, of every project; raises MachineLacks."""
        self._shell.open()
        return self._client.list_allocations(self._context_prefix)

    def cancel_all(self) -> list[str]:
        """Cancel every allocation of this context in which no step runs; return the jobs. Raises MachineLacks."""
        jobs = []
        for each in self.list_allocations():
            if self._client.count_steps(each.job):
                line = f"{self.entry.name}: Slurm job {each.job} is in use; it ends by itself afterwards"
                self._tell(NoticeLine(line))
                continue
            self._client.cancel(each.job)
            jobs.append(each.job)
        return jobs

    def release(self) -> None:
        """Cancel the project's allocations that run without a step; one in the queue may have somebody who waits.

        Raises:
            MachineLacks: Slurm does not answer.
        """
        self._shell.open()
        with self._one_client():
            for each in self._client.list_allocations(self._project_prefix):
                if each.state == _RUNNING and not self._client.count_steps(each.job):
                    self._client.cancel(each.job)
                    self._tell(NoticeLine(f"{self.entry.name}: ended the allocation, Slurm job {each.job}"))

    def _script(self) -> str:
        """Return the batch script: a station that stays while steps come."""
        context = self.entry.context
        request = json.dumps({"action": "keep", "workdir": context.workdir, "idle": context.idle, "payload": 0})
        line = f"printf '%s\\n' {shlex.quote(request)} | {station_command(context.python)}"
        return f"#!/bin/bash\nexec /bin/bash -c {shlex.quote(_LOGIN)} {shlex.quote(line)}\n"

    def _settled_jobs(self) -> list[Allocation]:
        """List the jobs of the allocation once none of them is about to end."""
        for pause in _pauses(_SETTLE_SECONDS):
            jobs = self._client.list_allocations(self._name)
            if not any(each.state in _ENDING for each in jobs):
                break
            time.sleep(pause)
        return [each for each in jobs if each.state == _RUNNING or each.state in _WAITING]

    def _await_start(self, job: str, *, own: bool) -> None:
        limit, name, reported = self.entry.context.wait, self.entry.name, "None"
        for pause in _pauses(limit):
            state = self._client.read_allocation(job)
            if state and state.state == "CANCELLED" and not own:
                raise AllocationEnded(f"{name}: the command that asked for Slurm job {job} has cancelled it.")
            if state is None or state.state not in (_RUNNING, *_WAITING, *_ENDING):
                raise self._ending(job, state)
            if state.state == _RUNNING:
                if (name, job) not in _ANNOUNCED:
                    _ANNOUNCED.add((name, job))
                    self._tell(NoticeLine(f"{name}: Slurm job {job} runs on {state.node}, until {state.end}"))
                self.allocation = state
                return
            if state.reason in _HOPELESS:
                self._client.cancel(job)  # else each further command would meet it again
                raise MachineLacks(
                    f"{name}: Slurm job {job} can never start ({state.reason}); correct the context's settings."
                )
            if state.reason not in (reported, "None"):
                self._tell(NoticeLine(f"{name}: Slurm job {job} waits in the queue ({state.reason})"))
                reported = state.reason
            time.sleep(pause)
        raise MachineLacks(
            f"{name}: Slurm job {job} did not start within {limit} s ({reported}); try again later, or let it wait"
            " longer with `context add --wait`."
        )

    def _ending(self, job: str, state: Allocation | None) -> MachineLacks:
        """Return the error for an allocation that does not run, by the state in which it is."""
        name = self.entry.name
        self.allocation = None
        if state and state.state == "FAILED":
            if state.code in (126, COMMAND_MISSING):
                return missing_python(self.entry, f"the node of Slurm job {job}, {state.node},")
            return MachineLacks(
                f"{name}: the batch script of Slurm job {job} failed on {state.node}, code {state.code};"
                f" `scontrol show job {job}` says more."
            )
        if state and state.state == "CANCELLED":
            return MachineLacks(f"{name}: Slurm job {job} was cancelled by somebody; run the command again.")
        if state and state.state in _WAITING:
            return AllocationEnded(f"{name}: Slurm has put job {job} back in the queue.")
        return AllocationEnded(
            f"{name}: the allocation, Slurm job {job}, has ended ({state.state if state else '?'})."
        )

    @contextmanager
    def _one_client(self) -> Iterator[None]:
        """Keep other commands of this user here from asking at once."""
        lock = os.open(
            private_runtime_folder() / f"{self._name}.lock", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _pauses(limit: float) -> Iterator[float]:
    """Yield the pauses between looks until a time limit in seconds has passed; one at the least."""
    begin = time.monotonic()
    index = 0
    while not index or time.monotonic() - begin < limit:
        yield _POLL_SECONDS[min(index, len(_POLL_SECONDS) - 1)]
        index += 1


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
