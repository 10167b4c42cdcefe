"""Evaluation: the lab's judgement of one solution, workload by workload, and the decision."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from warpsmith.core.base import Minute, Model, Positive, Sha256
from warpsmith.core.hardware import Machine, Noise
from warpsmith.core.trust import Check

GATE_VERSION = 2
"""Raised when a rule changes that could change a verdict."""


BEST, REFERENCE, COMPILED = "best", "reference", "torch.compile"
"""Names of the sides that a solution is compared with: the best version, and two that every definition has."""


class Status(StrEnum):
    """How a solution fared at one workload, or at a step before the first."""

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
    SANITIZER = "SANITIZER"
    IMPLAUSIBLE_TIME = "IMPLAUSIBLE_TIME"
    MACHINE_FAILED = "MACHINE_FAILED"


class Verdict(StrEnum):
    """The mechanical decision over a whole evaluation."""

    ACCEPT = "ACCEPT"
    ACCEPT_WITH_NOTE = "ACCEPT_WITH_NOTE"
    ROLLBACK = "ROLLBACK"
    INVALID = "INVALID"

    @property
    def accepted(self) -> bool:
        """Whether the version joins the lineage."""
        return self in (Verdict.ACCEPT, Verdict.ACCEPT_WITH_NOTE)


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
    """Of the speedup."""
    pairs: int = Field(ge=2)
    """Paired samples behind it."""


class Correctness(Model):
    """How far the outputs were from the float64 reference."""

    calls: int = Field(ge=1)
    """Calls graded, each on fresh inputs; the timed ones count too."""
    worst: float = Field(ge=0)
    """Largest error as a share of its bound: up to 1 passes."""
    relative_error: float = Field(ge=0)
    """Largest norm-wise relative error over the calls."""
    norm_worst: float | None = Field(default=None, ge=0)
    """Largest norm of the errors as a share of the norm-wise bound: up to 1 passes. Null before gate 2."""
    reordered: float | None = Field(default=None, ge=0)
    """The same as `worst` for the reference in its own precision, its sums in other orders: what rounding alone
    does. Null before gate 2."""
    repeat: float | None = Field(default=None, ge=0)
    """Largest difference of two calls on the same inputs as a share of the bound: 0 is bitwise equal. Null where
    no call was repeated."""
    detail: str = ""
    """The first failure: output, element, value, expected, bound, distribution."""


class Telemetry(Model):
    """A GPU's clocks and limits while a workload was timed, read before and after each block."""

    reads: int = Field(ge=1)
    """Times that it was read."""
    sm_clock: tuple[int, int, int]
    """Lowest, median and highest clock of the multiprocessors in MHz."""
    memory_clock: tuple[int, int, int]
    """The same of the memory."""
    temperature: int
    """Highest in degrees Celsius."""
    power: float
    """Highest in watts."""
    limited: tuple[str, ...] = ()
    """What held the clocks down at any read, as the driver names it: `power cap`, `thermal`."""
    dropped: int = Field(default=0, ge=0)
    """Rounds that were left out because the clock was lower than in the others."""


class Timing(Model):
    """Times of one workload."""

    seconds: Positive
    """Median over the timed calls."""
    samples: int = Field(ge=2)
    """Timed calls."""
    spread: float = Field(ge=0)
    """Interquartile range over the median."""
    clock: Literal["parent", "events", "graph"]
    """Whose clock: the grader's own around each call; or the device's events around a block of calls, launched one
    by one (`events`) or replayed from a CUDA graph (`graph`), with the grader's own around each block."""
    parent_seconds: Positive
    """The grader's wall clock, a call: what the blocks took with the hand-over to the worker taken out."""
    clock_slack: float | None = Field(default=None, ge=0)
    """On a GPU, the share of the time that the events could hide before the grader's clock shows it."""
    cold: bool | None = None
    """On a GPU, whether a block's tensors are twice the L2 cache or more: no call finds its inputs there."""
    telemetry: Telemetry | None = None
    """The GPU's state over the blocks; null on a CPU, or where the driver does not say."""
    comparisons: tuple[Comparison, ...] = ()
    """Against every other side that ran in the same rounds."""
    floor_seconds: Positive
    """The roofline's floor at this workload."""
    ceiling_share: Positive
    """Floor over time: 1 is at the ceiling."""
    bandwidth: float
    """Algorithmic bytes a second."""
    rate: float
    """Algorithmic operations a second."""

    def against(self, other: str) -> Comparison | None:
        """The comparison with one other side, if it ran."""
        return next((c for c in self.comparisons if c.against == other), None)


class WorkloadResult(Model):
    """One workload's outcome; what it may hold depends on the status."""

    workload: str
    """The workload's name; `*` where it failed before the first."""
    status: Status
    """How it fared."""
    message: str = ""
    """One sentence where it did not pass."""
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
    """The compiler's report of one kernel."""

    kernel: str
    """Function name."""
    registers: int | None = None
    """Registers a thread."""
    shared_bytes: int | None = None
    """Shared memory a block."""
    spill_bytes: int | None = None
    """Local memory a thread used for spills."""
    vectorized_loops: int | None = None
    """Loops that the compiler vectorised (CPU)."""
    missed_loops: int | None = None
    """Loops that it could not vectorise (CPU)."""
    notes: tuple[str, ...] = ()
    """Lines of the report worth reading."""


StepName = Literal["lint", "build", "correctness", "probes", "timing", "plausibility", "sanitizers", "decision"]
"""The gate's steps in their order."""


class Step(Model):
    """One step of the gate and what it found: what could not run is named, never hidden."""

    name: StepName
    """The step, in the gate's order."""
    state: Literal["passed", "failed", "noted", "skipped"]
    """`noted`: something deserves a look. `skipped`: it could not run here, and why."""
    notes: tuple[str, ...] = ()
    """What was found."""
    seconds: float = Field(ge=0)
    """Wall time it took."""


class Provenance(Model):
    """What a result can be traced by."""

    solution: str
    """The solution's path in its project."""
    solution_sha256: Sha256
    """Hash of its file."""
    definition_sha256: Sha256
    """Hash of the definition's file."""
    best: str | None = None
    """The path of the best version that it was to be better than; null: none, or before gate 2."""
    best_sha256: Sha256 | None = None
    """Hash of that file."""
    lab_sha256: Sha256
    """Hash of the lab's own code."""
    gate_version: int
    """The rules it was judged by."""
    seed: int
    """The nonce that all inputs were drawn from; fresh for every judgement."""
    machine: Machine
    """Where it ran, with device, driver, clocks and library versions."""
    measured: Minute
    """When, in UTC."""


class Aggregate(Model):
    """The geometric mean over the timed workloads against one other side."""

    against: str
    """As in `Comparison`."""
    speedup: Positive
    """Geometric mean of the workloads' speedups."""
    interval: Interval
    """Of that mean."""
    worst_workload: str
    """The workload with the least speedup."""
    worst: Positive
    """Its speedup."""


class Joules(Model):
    """Energy of a call at one workload, the whole board's, out of replayed graphs."""

    joules: Positive
    """The version's: median over its readings."""
    readings: int = Field(ge=1)
    """Of each side, in turns."""
    best_joules: Positive | None = None
    """The best version's; null, as what follows, where there was none."""
    saving: Positive | None = None
    """Median of the paired ratios best / version: above 1 the version takes less."""
    interval: Interval | None = None
    """Of the saving."""


class Energy(Model):
    """Joules of a call, and what they come to: the gain that decides where a campaign's objective is energy."""

    workloads: dict[str, Joules]
    """By the workload's name."""
    aggregate: Aggregate | None = None
    """Geometric mean over the workloads, of savings in place of speedups; null where there was no best version."""
    floor: Positive | None = None
    """The saving that the best version's readings show against each other; null where there was none."""

    @model_validator(mode="after")
    def _floor_of_a_mean(self) -> Self:
        if (self.aggregate is None) != (self.floor is None):
            raise ValueError("a mean of savings and its floor go together")
        return self


class Decision(Model):
    """The verdict with its reason."""

    verdict: Verdict
    """What happens to the version."""
    reason: str
    """One sentence with the numbers that decided."""
    against: str | None = None
    """The side that gains were measured against: `best`, or null at the baseline."""
    repeats: int = 0
    """Times that timing was repeated to settle it."""
    ambiguous: bool = False
    """Whether neither repetition nor fresh processes showed a clear gain or loss."""
    again: Aggregate | None = None
    """What fresh processes of both sides showed, of what decides; null where one look was enough."""


class Evaluation(Model):
    """One judgement: outcome-dependent, so that illegal states cannot be written."""

    definition: str
    """Operator."""
    language: str
    """Language of the solution."""
    version: str
    """`v3`."""
    target: str
    """Device kind."""
    provenance: Provenance
    """What it can be traced by."""
    steps: tuple[Step, ...]
    """The gate's steps in order, up to the first failure."""
    trust: tuple[Check, ...] = ()
    """Which defences were in force and which could not be; empty before gate 2."""
    resources: tuple[Resources, ...] = ()
    """The compiler's report."""
    results: tuple[WorkloadResult, ...] = ()
    """One a workload that was reached."""
    aggregates: tuple[Aggregate, ...] = ()
    """Against every other side; empty unless all workloads passed."""
    absent: dict[str, str] = {}
    """Peers that failed, so that the others were timed without them, with where and why."""
    energy: Energy | None = Field(default=None, exclude_if=lambda value: value is None)
    """Joules of a call; not there where time is the objective."""
    noise: Noise | None = None
    """The A/A floor that was in force."""
    decision: Decision
    """The verdict."""

    @model_validator(mode="after")
    def _fits_verdict(self) -> Self:
        passed = bool(self.results) and all(r.status is Status.PASSED for r in self.results)
        timed = [r for r in self.results if r.timing is not None]
        if self.decision.verdict.accepted and not (passed and timed):
            raise ValueError("an accepted version must have passed every workload and been timed")
        if self.aggregates and not passed:
            raise ValueError("an aggregate needs every workload to have passed")
        if self.energy and not passed:
            raise ValueError("joules need every workload to have passed")
        if both := [side for side in self.absent if self.aggregate(side)]:
            raise ValueError(f"{both[0]} has an aggregate and is absent")
        return self

    @property
    def status(self) -> Status:
        """The first failure, or PASSED."""
        failed = [r.status for r in self.results if r.status is not Status.PASSED]
        return failed[0] if failed else Status.PASSED

    @property
    def correct(self) -> bool:
        """Whether every workload that was reached passed, and at least one was."""
        return bool(self.results) and self.status is Status.PASSED

    @property
    def gain(self) -> Aggregate | None:
        """What decides against the best version: its joules where energy is the objective, else its times."""
        return self.energy.aggregate if self.energy else self.aggregate(BEST)

    @property
    def timed(self) -> dict[str, Timing]:
        """Workload name to timing."""
        return {r.workload: r.timing for r in self.results if r.timing is not None}

    def aggregate(self, against: str) -> Aggregate | None:
        """The geometric mean against one other side, if it ran."""
        return next((a for a in self.aggregates if a.against == against), None)
