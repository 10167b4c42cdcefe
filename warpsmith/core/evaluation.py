"""Evaluation: the lab's judgement of one version, workload by workload, and the decision."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from warpsmith.core.base import Minute, Model, Positive, Sha256, Slug
from warpsmith.core.hardware import Clock, Machine, Noise
from warpsmith.core.port.check import PortCheck
from warpsmith.core.trust import Check

GATE_VERSION = 3
"""Increased when a rule changes that could change a verdict."""


BEST, REFERENCE, COMPILED = "best", "reference", "torch.compile"
"""Names of sides that a version is compared with: the best version, and two that every definition has."""

BASELINES = (REFERENCE, COMPILED)
"""Sides that a user would run without a kernel; a speedup without a further word is over the faster one."""

TWIN = "twin of the best version"
"""Name of a second process of the best version, beside which gains are confirmed."""

NULL = "null kernel"
"""Name of the side that does nothing but launch an empty kernel; on a CPU, nothing at all."""

RESTLESS = "The machine is noisier than its floor"
"""First words of the reason of an INVALID verdict after which the noise floor is measured again."""

SLOWED = "The best version takes longer than on record"
"""First words of the reason of an INVALID verdict after which, if it repeats, the best version is timed again."""

REFERENCE_MISSES = "The reference misses its own bound"
"""First words of the reason of an INVALID verdict that only a mended definition cures."""


class Status(StrEnum):
    """Outcome of a version at one workload, or at a step before the first workload."""

    PASSED = "PASSED"
    REFUSED = "REFUSED"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    TIMEOUT = "TIMEOUT"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    INPUT_MUTATED = "INPUT_MUTATED"
    OUT_OF_BOUNDS = "OUT_OF_BOUNDS"
    NOT_REPRODUCIBLE = "NOT_REPRODUCIBLE"
    CACHED_RESULT = "CACHED_RESULT"
    LIBRARY_CALL = "LIBRARY_CALL"
    LEFT_BEHIND = "LEFT_BEHIND"
    UNPROVEN = "UNPROVEN"
    """In records alone: for a time, code that no call ran refused a version."""
    SANITIZER = "SANITIZER"
    IMPLAUSIBLE_TIME = "IMPLAUSIBLE_TIME"
    MACHINE_FAILED = "MACHINE_FAILED"


class Verdict(StrEnum):
    """Decision over a whole evaluation, derived by fixed rules."""

    ACCEPT = "ACCEPT"
    ACCEPT_WITH_NOTE = "ACCEPT_WITH_NOTE"
    UNTIMED = "UNTIMED"
    ROLLBACK = "ROLLBACK"
    INVALID = "INVALID"

    @property
    def accepted(self) -> bool:
        """True if the version was timed on its target and joins the lineage; never for UNTIMED."""
        return self in (Verdict.ACCEPT, Verdict.ACCEPT_WITH_NOTE)

    @property
    def stands(self) -> bool:
        """True if the campaign goes on from the version: it was accepted, or passed a port campaign's checks."""
        return self.accepted or self is Verdict.UNTIMED


class Interval(Model):
    """A 95 % bootstrap confidence interval."""

    low: float
    """Lower end."""
    high: float
    """Upper end."""


class Comparison(Model):
    """Paired timing against one other implementation."""

    against: str
    """`reference`, `best`, or a peer such as `torch.compile`."""
    other_seconds: Positive
    """The other side's median time in the same rounds."""
    speedup: Positive
    """Median of the paired ratios other / solution: above 1 the solution is faster."""
    interval: Interval
    """Confidence interval of the speedup."""
    pairs: int = Field(ge=2)
    """Number of paired samples."""


class Correctness(Model):
    """Errors of the outputs against the float64 reference."""

    calls: int = Field(ge=1)
    """Number of graded calls, each on fresh inputs, including the timed ones."""
    worst: float = Field(ge=0)
    """Largest error as a share of its bound; up to 1 passes."""
    relative_error: float = Field(ge=0)
    """Largest norm-wise relative error over the calls."""
    norm_worst: float | None = Field(default=None, ge=0)
    """Largest norm of the errors as a share of the norm-wise bound; up to 1 passes. Null before gate 2."""
    reordered: float | None = Field(default=None, ge=0)
    """Value of `worst` for the reference in its own precision with reordered sums: the effect of rounding alone.
    Null before gate 2.
    """
    repeat: float | None = Field(default=None, ge=0)
    """Largest difference between two calls on the same inputs,
    as a share of the bound: 0 is bitwise equal. Null if
    no call was repeated.
    """
    detail: str = ""
    """First failure: output, element, value, expected value, bound, distribution."""


class Telemetry(Model):
    """Clocks and limits of a GPU while a workload was timed, read before and after each block."""

    reads: int = Field(ge=1)
    """Number of readings."""
    sm_clock: tuple[int, int, int]
    """Lowest, median and highest clock of the multiprocessors in MHz."""
    memory_clock: tuple[int, int, int]
    """Lowest, median and highest clock of the memory in MHz."""
    temperature: int
    """Highest temperature in degrees Celsius."""
    power: float
    """Highest power in watts."""
    limited: tuple[str, ...] = ()
    """Reasons for reduced clocks at any reading, as the driver names them: `power cap`, `thermal`."""
    dropped: int = Field(default=0, ge=0)
    """Number of rounds left out because the clock was lower than in the others."""


class Timing(Model):
    """Measured times of one workload."""

    seconds: Positive
    """Median time of a call in seconds."""
    samples: int = Field(ge=2)
    """Number of timed calls."""
    spread: float = Field(ge=0)
    """Interquartile range over the median."""
    clock: Clock
    """Clock of the time. On a GPU the grader's own runs around each block as well."""
    parent_seconds: Positive
    """Wall time of a call by the grader's clock: the time of the blocks without the hand-over to the worker."""
    clock_slack: float | None = Field(default=None, ge=0)
    """On a GPU, the share of the time that the events could hide before the grader's clock shows it."""
    cold: bool | None = None
    """On a GPU, whether a block's tensors are at least twice
    the L2 cache, so that no call finds its inputs there."""
    telemetry: Telemetry | None = None
    """State of the GPU over the blocks; null on a CPU, or if the driver does not report it."""
    comparisons: tuple[Comparison, ...] = ()
    """Comparisons with every other side that ran in the same rounds."""
    floor_seconds: Positive
    """Floor of this workload in seconds: its roofline floor, or the launch floor if that is longer."""
    ceiling_share: Positive
    """Floor over time: 1 is at the ceiling."""
    bandwidth: float
    """Algorithmic bytes per second."""
    rate: float
    """Algorithmic operations per second."""

    def against(self, other: str) -> Comparison | None:
        """Return the comparison with one other side, if it ran."""
        return next((c for c in self.comparisons if c.against == other), None)


class WorkloadResult(Model):
    """Outcome of one workload; the status decides which fields may be set."""

    workload: str
    """Name of the workload; `*` for a failure before the first one."""
    status: Status
    """Outcome of the workload."""
    message: str = ""
    """Reason in one sentence if it did not pass."""
    correctness: Correctness | None = None
    """Present once outputs were graded."""
    timing: Timing | None = None
    """Present for a timed workload that passed."""

    @model_validator(mode="after")
    def _fits_status(self) -> Self:
        if self.status is Status.PASSED and self.correctness is None:
            raise ValueError("a workload that passed must have been graded")
        if self.status is not Status.PASSED and self.timing is not None:
            raise ValueError("a workload that failed has no timing")
        if self.status is Status.INCORRECT_NUMERICAL and self.correctness is None:
            raise ValueError("a numerical failure must say by how much")
        if self.status is not Status.PASSED and not self.message:
            raise ValueError("a workload that failed must say why")
        return self


class Resources(Model):
    """Resources of one kernel in the compiler's report."""

    kernel: str
    """Function name."""
    registers: int | None = None
    """Registers per thread."""
    shared_bytes: int | None = None
    """Shared memory per block in bytes."""
    spill_bytes: int | None = None
    """Local memory per thread used for spills, in bytes."""
    vectorized_loops: int | None = None
    """Number of loops that the compiler vectorized (CPU)."""
    missed_loops: int | None = None
    """Number of loops that it could not vectorize (CPU)."""
    notes: tuple[str, ...] = ()
    """Lines of the report that are worth reading."""


StepName = Literal[
    "lint",
    "build",
    "correctness",
    "probes",
    "timing",
    "plausibility",
    "conditions",
    "sanitizers",
    "compile",
    "decision",
]
"""Steps of the gate in order; `conditions` are those of another process, which a version that gains must bear, and
`compile` is the compiler of a port campaign's target, or that of a language which compiles ahead of all calls."""


class Step(Model):
    """One step of the gate with its findings; a step that could not run is named."""

    name: StepName
    """Name of the step."""
    state: Literal["passed", "failed", "noted", "skipped"]
    """`noted`: something needs attention. `skipped`: the step could not run, with the reason in `notes`."""
    notes: tuple[str, ...] = ()
    """Findings of the step."""
    seconds: float = Field(ge=0)
    """Wall time in seconds."""
    stages: dict[str, float] = Field(default_factory=dict)
    """Seconds of it by what they were spent on: `inputs`, `reference`, `version` (waiting for its process) and
    `grading`; empty where nothing was called."""


class Provenance(Model):
    """Origin of a result: files, code, machine and seed."""

    solution: str
    """Path of the version in its project."""
    solution_sha256: Sha256
    """SHA-256 of the version's file."""
    definition_sha256: Sha256
    """SHA-256 of the definition's file."""
    best: str | None = None
    """Path of the best version that it had to beat; null if there was none, or before gate 2."""
    best_sha256: Sha256 | None = None
    """SHA-256 of the best version's file."""
    retiming: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Path in the project of the retiming that the best version's time was held against; absent where that was the
    judgement that accepted it."""
    lab_sha256: Sha256
    """SHA-256 of the lab's own code."""
    gate_version: int
    """Version of the gate's rules."""
    seed: int
    """Seed of all inputs; fresh for every judgement."""
    machine: Machine
    """Machine that it ran on, with device, driver, clocks and library versions."""
    context: Slug | None = Field(default=None, exclude_if=lambda value: value is None)
    """Name of that machine among the contexts; absent if the records are on the same machine."""
    context_devices: int | None = Field(default=None, ge=2, exclude_if=lambda value: value is None)
    """Devices of the target on that machine that jobs can hold at once; absent if it has one."""
    node: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Node of a cluster that Slurm chose; absent without Slurm."""
    slurm_job: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Number of the Slurm job that held the node; absent without Slurm."""
    measured: Minute
    """Time in UTC."""


class Aggregate(Model):
    """Geometric mean over the timed workloads against one other side."""

    against: str
    """Name of the other side, as in `Comparison`."""
    speedup: Positive
    """Geometric mean of the workloads' speedups."""
    interval: Interval
    """Confidence interval of that mean."""
    worst_workload: str
    """Workload with the smallest speedup."""
    worst: Positive
    """Smallest speedup."""
    shares: dict[str, Positive] = {}
    """Weight of each workload in the mean, by its share of the trace's time; empty if all weigh the same."""


class UnseenShapes(Model):
    """Shapes of one class that a judgement drew, and the gain at one of them."""

    kind: str
    """Class of the shapes, such as `near` or `edge`: the first word of their names."""
    held: int = Field(ge=1)
    """Number of shapes at which the version is right."""
    workload: str | None = None
    """Shape at which it was timed; null if it was not."""
    speedup: Positive | None = None
    """Speedup over the best version there; null if it was not timed."""


class Joules(Model):
    """Energy of a call at one workload, of the whole board, from replayed graphs."""

    joules: Positive
    """Energy of the version: median over its readings, in joules."""
    readings: int = Field(ge=1)
    """Number of readings of each side; the sides alternate."""
    best_joules: Positive | None = None
    """Energy of the best version in joules; null, like the following fields, if there was none."""
    saving: Positive | None = None
    """Median of the paired ratios best / version: above 1 the version takes less."""
    interval: Interval | None = None
    """Confidence interval of the saving."""


class Energy(Model):
    """Energy of calls and its mean: the gain that decides if a campaign's objective is energy."""

    workloads: dict[str, Joules]
    """Energy by name of the workload."""
    aggregate: Aggregate | None = None
    """Geometric mean over the workloads, of savings instead of speedups; null if there was no best version."""
    floor: Positive | None = None
    """Largest saving between the best version's own readings; null if there was no best version."""

    @model_validator(mode="after")
    def _floor_of_a_mean(self) -> Self:
        if (self.aggregate is None) != (self.floor is None):
            raise ValueError("a mean of savings and its floor go together")
        return self


class Decision(Model):
    """Verdict with its reason."""

    verdict: Verdict
    """Verdict on the version."""
    reason: str
    """Reason in one sentence, with the numbers that decided."""
    against: str | None = None
    """Side that gains were measured against: `best`, or null at the baseline."""
    repeats: int = 0
    """Number of times that timing was repeated to settle the decision."""
    ambiguous: bool = False
    """True if neither repetition nor fresh processes showed a clear gain or loss."""
    again: Aggregate | None = None
    """Result of fresh processes of both sides, in the deciding quantity; null if one measurement was enough."""
    twin: float | None = Field(default=None, exclude_if=lambda value: value is None)
    """Largest difference of the best version from its own second process while a gain was confirmed, as a share;
    absent where nothing was confirmed, and before gate 3."""
    judgement: int = Field(default=1, ge=1, exclude_if=lambda value: value == 1)
    """Number of this judgement among its campaign's comparisons with a best version; absent for the first."""


class Evaluation(Model):
    """One judgement; its validators reject inconsistent combinations of fields."""

    definition: str
    """Name of the operator."""
    language: str
    """Language of the version."""
    version: str
    """Name of the version, such as `v3`."""
    target: str
    """Kind of device."""
    provenance: Provenance
    """Origin of the result."""
    steps: tuple[Step, ...]
    """Steps of the gate in order, up to the first failure."""
    trust: tuple[Check, ...] = ()
    """Protections that were and were not in force; empty before gate 2."""
    resources: tuple[Resources, ...] = ()
    """Resources in the compiler's report."""
    results: tuple[WorkloadResult, ...] = ()
    """One result for each workload that was run."""
    representative: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Names of the representative workloads, where others were timed as well; absent if only they were."""
    aggregates: tuple[Aggregate, ...] = ()
    """Means against every other side; empty unless all workloads passed."""
    unseen: tuple[UnseenShapes, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Shapes that nobody could prepare for, by class; absent where nothing was drawn, and before gate 3."""
    absent: dict[str, str] = {}
    """Peers that failed and were left out of the timing, with workload and reason."""
    energy: Energy | None = Field(default=None, exclude_if=lambda value: value is None)
    """Energy of calls; absent if time is the objective."""
    noise: Noise | None = None
    """A/A noise floor that was applied."""
    port: PortCheck | None = Field(default=None, exclude_if=lambda value: value is None)
    """Evidence of the target's compiler in a port campaign; absent if the target itself ran the version."""
    decision: Decision
    """Verdict with its reason."""

    @model_validator(mode="after")
    def _fits_verdict(self) -> Self:
        passed = bool(self.results) and all(r.status is Status.PASSED for r in self.results)
        timed = [r for r in self.results if r.timing is not None]
        if self.decision.verdict.accepted and not (passed and timed):
            raise ValueError("an accepted version must have passed every workload and been timed")
        if self.decision.verdict is Verdict.UNTIMED and not (passed and self.port):
            raise ValueError("an UNTIMED version must have passed every workload and been compiled for its target")
        if self.port and (timed or self.decision.verdict.accepted):
            raise ValueError("a version that was only compiled for its target has no time and is not accepted")
        if self.aggregates and not passed:
            raise ValueError("an aggregate needs every workload to have passed")
        if self.energy and not passed:
            raise ValueError("joules need every workload to have passed")
        if both := [side for side in self.absent if self.aggregate(side)]:
            raise ValueError(f"{both[0]} has an aggregate and is absent")
        return self

    @property
    def status(self) -> Status:
        """Status of the first failure, or PASSED."""
        failed = [r.status for r in self.results if r.status is not Status.PASSED]
        return failed[0] if failed else Status.PASSED

    @property
    def correct(self) -> bool:
        """True if every workload that was run passed, and at least one was run."""
        return bool(self.results) and self.status is Status.PASSED

    @property
    def is_wrong(self) -> bool:
        """True if the version failed at a workload; where the machine failed, nothing is known about it."""
        return bool(self.results) and self.status not in (Status.PASSED, Status.MACHINE_FAILED)

    @property
    def gain(self) -> Aggregate | None:
        """Mean against the best version that decides: of energy if that is the objective, else of times."""
        return self.energy.aggregate if self.energy else self.aggregate(BEST)

    @property
    def timed(self) -> dict[str, Timing]:
        """Timing by name of the workload."""
        return {r.workload: r.timing for r in self.results if r.timing is not None}

    def aggregate(self, against: str) -> Aggregate | None:
        """Return the geometric mean against one other side, if it ran."""
        return next((a for a in self.aggregates if a.against == against), None)
