"""Slurm's commands: ask for an allocation, look at it, cancel it; one sentence for each refusal."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.errors import MachineLacks, Unreachable
from warpsmith.execution.contexts import NamedContext
from warpsmith.execution.shell import COMMAND_MISSING, Shell, last_line

_FIELD = re.compile(r"(\w+)=(\S*)")
_GONE = "Invalid job id"
_REFUSALS = (
    ("nvalid partition", "there is no partition `{partition}`; `sinfo` lists them"),
    ("node configuration is not available", "no node has that: {request}; `sinfo -o '%P %D %c %m %G'` lists them"),
    ("generic resource", "it has no such GPUs: `{gpus}`; `sinfo -o '%P %G'` lists them"),
    ("nvalid account", "the account `{account}` may not use this; `sacctmgr show associations` lists yours"),
    ("nvalid qos", "there is no such QOS for you: {request}"),
    ("nvalid feature", "no node has that feature: {request}"),
    ("time limit", "the partition does not allow `{time}`; `sinfo -o '%P %l'` lists the limits"),
    ("not permitted", "you may not use that: {request}"),
)  # fmt: skip
"""Text of `sbatch` to the reason in a sentence, the first that fits."""


@dataclass(frozen=True)
class Allocation:
    """Job of Slurm that holds an allocation, as Slurm says it is."""

    job: str
    """Number of the job."""
    state: str
    """State, such as PENDING, RUNNING or TIMEOUT."""
    reason: str = "None"
    """Reason why it waits."""
    node: str = ""
    """Node that it has; empty while it has none."""
    start: str = ""
    """Time at which it started; another one after a requeue."""
    end: str = ""
    """Time at which it ends, by Slurm's clock."""
    code: int = 0
    """Exit code of its batch script."""
    cores: str = "1"
    """Number of its CPUs."""


class SlurmClient:
    """Slurm's commands in a shell."""

    def __init__(self, entry: NamedContext, shell: Shell) -> None:
        """Take the shell that has them."""
        self._entry, self._shell = entry, shell

    def list_allocations(self, prefix: str) -> list[Allocation]:
        """List this user's jobs that have not ended, whose names begin so, oldest first; raises MachineLacks."""
        rows = self._call(["squeue", "--me", "--noheader", "--format=%i|%T|%r|%N|%e|%j"]).splitlines()
        cells = [row.strip().split("|", 5) for row in rows if row.count("|") >= 5]
        jobs = [
            Allocation(job, state, reason, node, end=end)
            for job, state, reason, node, end, name in cells
            if name.startswith(prefix) and job.isdecimal()
        ]
        return sorted(jobs, key=lambda each: int(each.job))

    def read_allocation(self, job: str) -> Allocation | None:
        """Return a job, also for a while after its end; None if Slurm has forgotten it. Raises MachineLacks."""
        result = self._run(["scontrol", "--oneliner", "show", "job", job])
        if result.returncode and _GONE in result.stderr:
            return None
        self._require(result)
        fields: dict[str, str] = {}
        for name, value in _FIELD.findall(result.stdout):
            fields.setdefault(name, value)
        return Allocation(
            job=job,
            state=fields.get("JobState", "UNKNOWN"),
            reason=fields.get("Reason", "None").replace("_", " "),
            node=fields.get("NodeList", "").replace("(null)", ""),
            start=fields.get("StartTime", ""),
            end=fields.get("EndTime", ""),
            code=int(fields.get("ExitCode", "0:0").split(":")[0] or 0),
            cores=fields.get("NumCPUs", "1").split("-")[0],
        )

    def submit(self, name: str, script: str) -> str:
        """Ask for an allocation with this batch script; return the job's number. Raises MachineLacks."""
        options = [
            "--parsable", f"--job-name={name}", "--nodes=1", "--ntasks=1", "--requeue", "--export=NONE",
            "--chdir=/", "--output=/dev/null",
        ]  # fmt: skip
        result = self._run(["sbatch", *options, *self._entry.context.sbatch_options], script)
        for sign, reason in _REFUSALS if result.returncode else ():
            if sign in result.stderr:
                raise MachineLacks(f"{self._entry.name}: Slurm refuses: {self._filled(reason)}.")
        job = self._require(result).strip().split(";")[0]
        if not job.isdecimal():
            raise MachineLacks(f"{self._entry.name}: `sbatch` answers {job[:80]!r}, which is no number of a job.")
        return job

    def count_steps(self, job: str) -> int:
        """Count the steps that run in a job, besides its batch script; raises MachineLacks."""
        rows = self._call(["squeue", "--steps", "--noheader", f"--jobs={job}", "--format=%i"]).split()
        return len([row for row in rows if row.rpartition(".")[2].isdecimal()])

    def cancel(self, job: str, *, pending: bool = False) -> None:
        """Cancel a job; with `pending` only if it has not started. Raises MachineLacks."""
        self._call(["scancel", *(["--state=PENDING"] if pending else []), job])

    def _call(self, command: Sequence[str]) -> str:
        return self._require(self._run(command))

    def _run(self, command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
        result = self._shell.run(command, text)
        if result.returncode == COMMAND_MISSING:
            raise MachineLacks(
                f"{self._entry.name}: {self._shell.location} has no `{command[0]}`; install Slurm's client or"
                " correct PATH there, or name a login node with `context add --slurm --ssh HOST`."
            )
        return result

    def _require(self, result: subprocess.CompletedProcess[str]) -> str:
        if result.returncode:
            raise Unreachable(
                f"{self._entry.name}: Slurm on {self._shell.location} does not answer: {last_line(result.stderr)}."
            )
        return result.stdout

    def _filled(self, reason: str) -> str:
        context = self._entry.context
        parts = {
            "partition": context.partition,
            "gpus": context.gpus,
            "account": context.account,
            "time": context.time,
        }
        request = " ".join(context.sbatch_options) or "the partition's defaults"
        return reason.format(request=request, **{name: value or "the default" for name, value in parts.items()})
