"""Trial: one optimization of a whole program, measured before and after the edit, with its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from warpsmith.core.base import Minute, Model, Positive, Sha256, Slug
from warpsmith.core.evaluation import Comparison

REGRESSION = 0.05
"""Share of the step time: if the edit makes the step slower by at least this much, the files are restored."""

SMALLEST_GAIN = 0.01
"""Share of the step time. A smaller gain does not count: two processes of one program can differ by this much for
as long as they live."""

SMALLEST_MEMORY_GAIN = 0.10
"""Share of the peak memory that a memory optimization must free to be kept."""

ORIGINAL = "original"
"""Name of the unedited side in comparisons."""

NEEDS: dict[str, str] = {
    "gpu": "the step runs on a GPU",
    "no-capture-blocker": "nothing in the step prevents capture in a CUDA graph",
    "capturable-optimizer": "the program has no optimizer, or one that can step inside a CUDA graph",
    "fusible-optimizer": "the program has an optimizer whose fused implementation is not in use yet",
    "attention-by-hand": "the program writes attention out as products and a softmax",
    "convolutions": "the step has 2-D or 3-D convolutions",
    "bf16": "the device multiplies bfloat16 in hardware",
    "tf32": "the device multiplies in TensorFloat-32",
    "float32": "parameters or products are in float32 and no lower precision is in use yet",
    "compiler": "the code generator of torch.compile for this device is installed",
    "not-compiled": "torch.compile is not in use yet",
    "loader": "a DataLoader or copies from the host feed the step",
    "accumulation": "several micro-batches make one optimizer step",
    "training": "the step has a backward pass and an optimizer",
    "distributed": "several processes train together",
    "replicas": "DistributedDataParallel averages the gradients",
    "sharded": "fully_shard splits parameters over the ranks",
    "devices": "the machine has several GPUs",
    "operator-loop": "a Python loop calls the same small operators many times a step, in any order",
    "host-wait": "a line of the step waits for the device",
    "strided-copy": "a line of the step copies a tensor only to change its strides",
}
"""Prerequisites that the lab can check, keyed by the names that entries use."""

SIGNS: dict[str, str] = {
    "fused-step": "the optimizer steps in fused kernels",
    "fused-attention": "attention is one call, or has fewer softmaxes of its own",
    "compiled-graph": "torch.compile compiled a graph",
    "graph-launch": "a step launches more CUDA graphs, or fewer operators outside of them",
    "bf16-product": "products are in bfloat16, or a region of autocast is",
    "tf32-switch": "float32 products may use TF32",
    "channels-last-weight": "convolution weights are in channels-last order",
    "loader-switch": "a loader has workers or pins memory",
    "fewer-operators": "a step calls fewer operators",
    "recomputation": "a step calls more operators, because it computes some again",
    "collectives": "a step calls fewer collectives, or DistributedDataParallel is set in another way",
}
"""Signs of an optimization that the lab can look for in an edited program, keyed by the names that entries use."""

Precision = Literal["same", "tf32", "bf16"]
"""Rounding that an optimization may add: only another order of summation, or products in tf32, or in bf16."""

Purpose = Literal["speed", "memory"]
"""Purpose of an optimization."""


class ProgramRules(Model):
    """Rules that an entry declares if it changes a whole program and not one kernel."""

    needs: tuple[str, ...] = ()
    """Prerequisites: keys of `NEEDS`."""
    after: tuple[Slug, ...] = ()
    """Entries that are tried first if both are due and their gains are comparable."""
    excludes: tuple[Slug, ...] = ()
    """Entries that it cannot be combined with."""
    purpose: Purpose = "speed"
    """The quantity that decides whether it is kept."""
    sign: str | None = None
    """A key of `SIGNS`: what the edited program has to show; null if the lab can look for nothing."""
    precision: Precision = "same"
    """The rounding that it may add; the lab defines the bounds for each value."""
    specialist: str = "program"
    """Task of `warpsmith route` whose specialist makes the edit."""
    switches: dict[str, str] = {}
    """A library's own switch for it, by the name of its Python package."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        if unknown := [name for name in self.needs if name not in NEEDS]:
            raise ValueError(f"unknown prerequisites {unknown}; the known ones are {', '.join(NEEDS)}")
        if self.sign is not None and self.sign not in SIGNS:
            raise ValueError(f"unknown sign {self.sign}; the known ones are {', '.join(SIGNS)}")
        return self


class Prerequisite(Model):
    """One prerequisite of an optimization, with the result of its check."""

    name: str
    """A key of `NEEDS`."""
    state: Literal["ok", "no", "unknown"]
    """`unknown`: the lab cannot tell; the evidence says what to look at."""
    evidence: str
    """The observation, in one sentence."""
    machine: bool = False
    """True if the machine, and not the program, fails the check."""

    @property
    def need(self) -> str:
        """Return the requirement and the evidence: `requires that the step runs on a GPU: ...`."""
        return f"requires that {NEEDS[self.name]}: {self.evidence}"


class Prerequisites(Model):
    """All prerequisites of one optimization, checked for one program on this machine."""

    entry: Slug
    """The optimization."""
    checks: tuple[Prerequisite, ...]
    """The checks, in the order of the entry."""

    @property
    def refused(self) -> tuple[Prerequisite, ...]:
        """Return the prerequisites that do not hold."""
        return tuple(check for check in self.checks if check.state == "no")

    @property
    def lacks(self) -> str:
        """Return the first prerequisite that does not hold as one sentence; empty if all hold."""
        return f"it {self.refused[0].need}" if self.refused else ""


class EditSign(Model):
    """Sign of the optimization in the edited program, compared with the original."""

    name: str = ""
    """A key of `SIGNS`; empty if the entry names none."""
    state: Literal["ok", "no", "unknown"]
    """`no`: the edit has nothing of the optimization. `unknown`: the lab cannot tell."""
    evidence: str
    """Numbers of both programs, in one sentence."""


class ProgramReference(Model):
    """A program with its step, as a command names them."""

    name: str
    """Name of its folder under `devlog/programs`."""
    path: str
    """The file, relative to the project."""
    module: str = ""
    """Its dotted name, if the command gave one."""
    step: str
    """The step's function; empty for a shell command."""
    setup: str | None = None
    """The function whose result the step takes."""
    args: tuple[str, ...] = ()
    """The program's own arguments."""
    command: str | None = None
    """The shell command whose script runs as it is; null for a program with a step."""
    writes: tuple[str, ...] = ()
    """Files and folders of the project that the command may write, relative to it."""


class StepTiming(Model):
    """Time of a step, measured by the clock of the parent process."""

    seconds: Positive
    """Seconds per step: the median over the batches."""
    spread: float = Field(ge=0)
    """Interquartile range divided by the median."""
    batches: int = Field(ge=1)
    """Number of timed batches."""
    steps: int = Field(ge=1)
    """Steps per batch."""
    first_seconds: Positive
    """Time of the first step, including compilation, capture and tuning; it is in no median."""
    warm_up: int = Field(ge=0)
    """Number of steps before the first timed batch."""
    peak_bytes: int | None = Field(default=None, ge=0)
    """Peak device memory of the allocator, on a CPU of the process, in bytes; null if unknown."""


class NumericsCheck(Model):
    """One comparison of the values that both sides computed."""

    name: Literal[
        "form",
        "ranks",
        "integers",
        "values",
        "movement",
        "parameter",
        "buffers",
        "timed values",
        "timed movement",
    ]
    """`form`: number, types and shapes of the values. `ranks`: parameters that ranks of the original hold alike
    are so in the edited program. `integers`: equal exactly. `values`: all other values.
    `movement`: displacement of all parameters together; `parameter`: of each one. `buffers`: other state.
    `timed values` and `timed movement`: of drawn steps among the timed ones."""
    worst: float = Field(ge=0)
    """Largest error divided by its bound: at most 1 passes."""
    bound: float = Field(ge=0)
    """The bound, relative to the values of the original."""
    noise: float = Field(ge=0)
    """Difference between two runs of the original with different rounding, relative like the bound."""
    detail: str = ""
    """Location of the largest error."""

    @property
    def passed(self) -> bool:
        """Return whether the error is within its bound."""
        return self.worst <= 1


class NumericsResult(Model):
    """Result of comparing the edited program with the original."""

    precision: Precision
    """The precision whose bounds apply."""
    steps: int = Field(ge=1)
    """Number of steps compared, from the same start."""
    seed: int
    """Seed of both sides; a new one for every trial."""
    checks: tuple[NumericsCheck, ...] = Field(min_length=1)
    """The comparisons."""
    notes: tuple[str, ...] = ()
    """Remarks for the reader, such as a likely cause."""

    @property
    def passed(self) -> bool:
        """Return whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def failure(self) -> str:
        """Return the first failed check as one sentence; empty if all passed."""
        failed = next((check for check in self.checks if not check.passed), None)
        if failed is None:
            return ""
        return "; ".join((f"{failed.name}: {failed.detail}", *self.notes))


class TrialVerdict(StrEnum):
    """Verdict on an edit."""

    KEPT = "KEPT"
    RESTORED = "RESTORED"
    INCONCLUSIVE = "INCONCLUSIVE"
    """The files are restored, since times scatter more than what they would have to show."""


class TrialDecision(Model):
    """The verdict with its reason."""

    verdict: TrialVerdict
    """True if the edit is kept."""
    reason: str
    """One sentence with the numbers that decided."""


class TrialFile(Model):
    """One file that the specialist may edit."""

    path: str
    """Path relative to the project."""
    before: Sha256 | None
    """Hash of the original; null if the file did not exist."""
    after: Sha256 | None = None
    """Hash of the judged content; null if it is not judged yet or the edit removed the file."""


class TrialPlan(Model):
    """An open trial: the checks, hashes and times taken before the edit."""

    entry: Slug
    """The optimization."""
    rules: ProgramRules
    """The rules that its entry declared when the trial was opened."""
    subject: ProgramReference
    """The program."""
    files: tuple[TrialFile, ...] = Field(min_length=1)
    """The files that may be edited; the rest of the program must not change."""
    others: dict[str, Sha256]
    """Hashes of the other project files that the program imports, by path relative to the project."""
    prerequisites: Prerequisites
    """The checked prerequisites."""
    predicted: Positive | None = None
    """The predicted speedup; null if none was given."""
    slower: float = Field(default=REGRESSION, gt=0, lt=1)
    """The share by which the step may become slower; above `REGRESSION` only for a memory optimization."""
    baseline: StepTiming
    """Time of the program before the edit."""
    device: str
    """The device that it ran on."""
    libraries: dict[str, str] = {}
    """Versions of libraries, by name."""
    opened: Minute
    """Time of opening, in UTC."""

    @model_validator(mode="after")
    def _check_slowdown_limit(self) -> Self:
        if self.rules.purpose == "speed" and self.slower > REGRESSION:
            raise ValueError(f"only a memory optimization may make the step slower by more than {REGRESSION:.0%}")
        return self


RECORD_VERSION = 1
"""Version of the record of a trial. Records of version 0 have neither a digest nor a link to the one before."""


class TrialRecord(Model):
    """A closed trial: `trials/<NNN>/record.json`."""

    record_version: int = 0
    """Version of this form; 0 is a trial from before records had a digest."""
    plan: TrialPlan
    """The plan, with the hashes of the judged files."""
    decision: TrialDecision
    """The verdict with its reason."""
    comparisons: tuple[Comparison, ...] = ()
    """Paired timing against the original, one per pair of processes; empty if the trial was abandoned."""
    original: StepTiming | None = None
    """Time of the original in those pairs."""
    edited: StepTiming | None = None
    """Time of the edited program in those pairs."""
    together: bool = True
    """True if both sides were in memory at the same time; false if they did not fit and took turns."""
    numerics: NumericsResult | None = None
    """The comparison of computed values; null if there was none."""
    sign: EditSign | None = None
    """Sign of the optimization in the edited program; null if it was not looked for."""
    notes: tuple[str, ...] = ()
    """Other observations."""
    closed: Minute
    """Time of closing, in UTC."""
    previous_sha256: Sha256 | None = None
    """Hash of the record of the trial before it; null in the first record and in those of version 0."""

    @model_validator(mode="after")
    def _check_verdict(self) -> Self:
        is_kept = self.decision.verdict is TrialVerdict.KEPT
        if is_kept and not (self.numerics and self.numerics.passed and self.comparisons):
            raise ValueError("an edit can be kept only if its numerics passed and it was timed")
        if is_kept and self.sign is not None and self.sign.state == "no":
            raise ValueError("an edit can be kept only if it shows the sign of its optimization")
        return self

    @property
    def measured(self) -> Comparison | None:
        """Return the comparison with the lowest speedup: it is the one that is claimed."""
        return min(self.comparisons, key=lambda comparison: comparison.speedup, default=None)


class TrialsTotal(Model):
    """The first original compared with the present program in one paired run: `trials/total.json`."""

    files: tuple[TrialFile, ...]
    """Every file that a kept trial edited, with the hashes of its first original and of its present content."""
    comparison: Comparison
    """Paired timing."""
    original: StepTiming
    """Time of the first original."""
    present: StepTiming
    """Time of the present program."""
    device: str
    """The device that it ran on."""
    measured: Minute
    """Time of the measurement, in UTC."""


class TrialsSummary(Model):
    """All closed trials of a program, with their total."""

    program: str
    """Name of the program."""
    trials: dict[int, TrialRecord]
    """The closed trials by number."""
    total: TrialsTotal | None
    """The last measured total; null if there is none."""


def decide_trial(
    comparisons: Sequence[Comparison],
    numerics: NumericsResult,
    peaks: tuple[int | None, int | None],
    purpose: Purpose = "speed",
    slower: float = REGRESSION,
    sign: EditSign | None = None,
) -> TrialDecision:
    """Decide from the numbers alone whether an edit is kept.

    Args:
        comparisons: paired timing against the original, one per pair of processes; empty for wrong numerics and
            without the sign.
        numerics: the comparison of computed values.
        peaks: peak memory of the original and of the edited program in bytes, None if unknown.
        purpose: the purpose of the optimization.
        slower: the share by which the step may become slower.
        sign: what the edited program shows of the optimization.
    """
    if not numerics.passed:
        return _restored_decision(f"wrong numerics: {numerics.failure}")
    if sign is not None and sign.state == "no":
        return _restored_decision(f"the edit is not the optimization that it is named after: {sign.evidence}")
    lowest = min(comparisons, key=lambda comparison: comparison.speedup)
    speedup = _format_speedup(lowest)
    freed = _freed_memory_share(peaks)
    if lowest.speedup <= 1 - slower:
        if lowest.interval.high < 1:
            return _restored_decision(f"slower: {speedup}, beyond {slower:.0%}")
        return _inconclusive_decision(comparisons, "")
    if purpose == "memory" and freed is not None and freed >= SMALLEST_MEMORY_GAIN:
        return TrialDecision(verdict=TrialVerdict.KEPT, reason=f"peak memory -{freed:.1%} at {speedup}")
    if all(map(shows_gain, comparisons)):
        return TrialDecision(verdict=TrialVerdict.KEPT, reason=f"faster: {speedup}")
    memory = "" if freed is None or purpose == "speed" else f", and peak memory changed by {-freed:+.1%}"
    if all(shows_no_gain(comparison, slower) for comparison in comparisons):
        return _restored_decision(f"no gain: {speedup}{memory}")
    return _inconclusive_decision(comparisons, memory)


def shows_gain(comparison: Comparison) -> bool:
    """Return whether a pair of processes shows a gain."""
    return comparison.interval.low > 1 and comparison.speedup >= 1 + SMALLEST_GAIN


def shows_no_gain(comparison: Comparison, slower: float = REGRESSION) -> bool:
    """Return whether a first pair of processes clearly shows no gain, so that a second pair is not needed."""
    is_slower = comparison.interval.high < 1 - slower
    return is_slower or (comparison.interval.low > 1 - slower and comparison.interval.high < 1 + SMALLEST_GAIN)


def _format_speedup(comparison: Comparison) -> str:
    return f"{comparison.speedup:.3f}x [{comparison.interval.low:.3f}, {comparison.interval.high:.3f}]"


def _freed_memory_share(peaks: tuple[int | None, int | None]) -> float | None:
    """Return the share of the peak memory that the edit frees; None if a peak is unknown."""
    before, after = peaks
    return 1 - after / before if before and after is not None else None


def _inconclusive_decision(comparisons: Sequence[Comparison], memory: str) -> TrialDecision:
    every = ", ".join(map(_format_speedup, comparisons))
    reason = f"neither a gain nor its absence is shown: {every}{memory}; try again on a quieter machine"
    return TrialDecision(verdict=TrialVerdict.INCONCLUSIVE, reason=reason)


def _restored_decision(reason: str) -> TrialDecision:
    return TrialDecision(verdict=TrialVerdict.RESTORED, reason=reason)


RecommendationState = Literal["due", "waits", "excluded", "kept", "restored", "by hand"]
"""`waits`: another entry comes first. `excluded`: it cannot be combined with a kept entry, or a prerequisite does
not hold. `by hand`: no entry covers it."""


class RankedRecommendation(Model):
    """A recommendation of an analysis, with its state after the trials so far."""

    title: str
    """Title: `CUDA graphs`."""
    entry: Slug | None
    """The knowledge entry; null if the work is on one kernel or on the program's own code."""
    impact: str
    """`High`, `Medium` or `Low`."""
    standing: RecommendationState
    """Its state after the trials so far."""
    why: str
    """The reason for the state, in one sentence."""


class NextAction(Model):
    """The next action for a program."""

    program: str
    """Name of the program."""
    action: Literal["verify", "analyze", "mend", "apply", "work", "finished"]
    """`work`: on a kernel or on the program's own code. `finished`: no recommendation is worth a trial."""
    why: str
    """The reason, in one sentence."""
    command: str
    """The exact command; empty if there is none."""
    candidates: tuple[RankedRecommendation, ...] = ()
    """The recommendations of the analysis, in the order in which they are tried."""
