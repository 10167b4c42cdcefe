"""Cells of the comparison, what an agent hands in for one, and what the judgement says about it."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from warpsmith.core.base import Minute, Model, Name, Positive, Sha256

Arm = Literal["bare", "plugin", "plugin-without-knowledge", "knowledge"]
"""Material of an agent: a plain benchmark script; Warpsmith; Warpsmith without its knowledge; the script and the
knowledge."""

ARMS: tuple[Arm, ...] = get_args(Arm)

FALSE_CLAIM_FACTOR = 1.1
"""Claimed speedup over the measured one above which a claim is false. Chosen: twice the noise of short runs."""


class Budget(Model):
    """Limits of one agent, the same in all arms."""

    calls: int = Field(default=3, ge=1)
    """Device calls."""
    call_seconds: float = Field(default=40.0, gt=0)
    """Wall seconds of one device call, after which it is killed."""
    minutes: int = Field(default=45, ge=1)
    """Wall minutes from the brief to the submission."""


class Cell(Model):
    """One agent's task: `cell.json`."""

    operator: Name
    """Operator."""
    arm: Arm
    """Material of the agent."""
    repetition: int = Field(ge=1)
    """Number of the repetition."""
    budget: Budget = Budget()
    """Limits of the agent."""

    @property
    def name(self) -> str:
        """Return the name of its folder: `group_norm-plugin-1`."""
        return f"{self.operator}-{self.arm}-{self.repetition}"


class KernelClaim(Model):
    """Statement of the agent about its own kernel: `claim.json`."""

    correct: bool
    """True if the agent says that the kernel is right at every size."""
    speedup: float = Field(ge=0)
    """Geometric mean of the speedups over the faster of eager PyTorch and `torch.compile`, at the public sizes."""
    notes: str = ""
    """Remarks of the agent."""


class DeviceCall(Model):
    """One request of an agent that was run on the device: a line of `device/calls.jsonl`."""

    seconds: float = Field(ge=0)
    """Wall seconds."""
    status: int
    """Exit status of the request; 124 if it was killed at its limit."""


class Effort(Model):
    """Cost of a kernel; null is a count that nobody took."""

    designer: str
    """Model that designed."""
    device_calls: int = Field(ge=0)
    """Number of device calls."""
    device_seconds: float = Field(ge=0)
    """Wall seconds of these calls."""
    tokens: int | None = Field(default=None, ge=0)
    """Tokens of all kinds."""
    turns: int | None = Field(default=None, ge=0)
    """Answers of the model."""
    wall_seconds: float | None = Field(default=None, ge=0)
    """Wall seconds of the whole session."""


class Submission(Model):
    """Kernel of an agent, with its claim and its cost."""

    cell: Cell
    """Its task."""
    kernel: str
    """Name of the kernel's file."""
    kernel_sha256: Sha256
    """Hash of that file."""
    claim: KernelClaim
    """Statement of the agent."""
    effort: Effort
    """Cost of the kernel."""


class WorkloadSpeed(Model):
    """Times of one workload, all sides timed in one run."""

    seconds: Positive
    """Median seconds of a call of the kernel."""
    baseline_seconds: Positive
    """Median seconds of a call of the faster baseline."""
    baseline: str
    """Faster baseline: `reference` for eager PyTorch, or `torch.compile`."""
    public: bool
    """True if the agent knew the sizes."""

    @property
    def speedup(self) -> float:
        """Return the speedup over the faster baseline."""
        return self.baseline_seconds / self.seconds


class CellJudgement(Model):
    """Result of the gate and of the race for one kernel."""

    correct: bool
    """True if the gate and every check beside the race found it right."""
    reason: str = ""
    """Reason why it is wrong."""
    speedup: float = Field(default=0.0, ge=0)
    """Geometric mean over public and hidden sizes; 0 if it is wrong."""
    public_speedup: float = Field(default=0.0, ge=0)
    """Geometric mean over the public sizes, which the claim is about; 0 if it is wrong."""
    workloads: dict[str, WorkloadSpeed] = {}
    """Workload to its times; empty if it is wrong."""
    judged: Minute
    """Time of the judgement, in UTC."""
    machine: str
    """Machine on which it was judged."""
    gate_version: int
    """Version of the gate."""


class CellRecord(Model):
    """Everything about one cell: `record.json`."""

    submission: Submission
    """Kernel of the agent, with its claim and its cost."""
    judgement: CellJudgement | None = None
    """Result; null before it is judged."""

    @property
    def false_claim(self) -> bool:
        """True if the agent claimed a wrong kernel to be right, or more speed than was measured."""
        claim, judgement = self.submission.claim, self.judgement
        if judgement is None:
            return False
        if not judgement.correct:
            return claim.correct
        return claim.speedup > FALSE_CLAIM_FACTOR * judgement.public_speedup
