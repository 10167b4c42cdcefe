"""Trial: one optimization of a whole program, measured before and after, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from warpsmith.core.base import Minute, Model, Positive, Sha256, Slug
from warpsmith.core.evaluation import Comparison

REGRESSION = 0.05
"""A program slower by this share or more gets its files back."""

SMALLEST_GAIN = 0.01
"""A gain below it is none: two processes of one program differ by as much for as long as they live."""

SMALLEST_MEMORY_GAIN = 0.10
"""Share of the peak memory that an optimization for memory must free to be kept."""

ORIGINAL = "original"
"""What the side before the edit is called in comparisons."""

NEEDS: dict[str, str] = {
    "gpu": "the step runs on a GPU",
    "no-capture-blocker": "nothing in the step forbids capture in a CUDA graph",
    "capturable-optimizer": "the optimizer can step inside a CUDA graph, or there is none",
    "fusible-optimizer": "the program has an optimizer with a fused implementation that is not in use yet",
    "attention-by-hand": "attention is written out as products and a softmax",
    "convolutions": "the step has 2-D or 3-D convolutions",
    "bf16": "the device multiplies bfloat16 in hardware",
    "tf32": "the device multiplies in TensorFloat-32",
    "float32": "parameters or products are in float32, with no lower precision in use yet",
    "compiler": "the device's code generator for torch.compile is there",
    "not-compiled": "torch.compile is not in use yet",
    "loader": "a DataLoader or copies from the host feed the step",
    "accumulation": "several micro-batches make one optimizer step",
    "training": "the step has a backward pass and an optimizer",
    "distributed": "several processes train together",
    "devices": "the machine has several GPUs",
}
"""Prerequisites that the lab can check, by the names that entries use."""

Precision = Literal["same", "tf32", "bf16"]
"""Rounding that an optimization may add: no more than another order of sums, products in tf32, or in bf16."""

Purpose = Literal["speed", "memory"]
"""What an optimization is for."""


class ProgramRules(Model):
    """What an entry declares that changes a whole program instead of one kernel."""

    needs: tuple[str, ...] = ()
    """Prerequisites, by the names of `NEEDS`."""
    after: tuple[Slug, ...] = ()
    """Entries that are tried first where both are due."""
    excludes: tuple[Slug, ...] = ()
    """Entries that it does not go together with."""
    purpose: Purpose = "speed"
    """What decides whether it is kept."""
    precision: Precision = "same"
    """The rounding that it may add; the bounds behind the words are the lab's."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        if unknown := [name for name in self.needs if name not in NEEDS]:
            raise ValueError(f"unknown prerequisites {unknown}; known: {', '.join(NEEDS)}")
        return self


class Prerequisite(Model):
    """One thing that an optimization needs, checked."""

    name: str
    """One of `NEEDS`."""
    state: Literal["ok", "no", "unknown"]
    """`unknown`: the lab cannot see it, and the evidence says what to look at."""
    evidence: str
    """What was seen, in one sentence."""
    machine: bool = False
    """Whether the machine is what lacks it, and not the program."""

    @property
    def need(self) -> str:
        """What is needed and what was seen: `needs that the step runs on a GPU: ...`."""
        return f"needs that {NEEDS[self.name]}: {self.evidence}"


class Prerequisites(Model):
    """All that one optimization needs of one program on this machine."""

    entry: Slug
    """The optimization."""
    checks: tuple[Prerequisite, ...]
    """In the entry's order."""

    @property
    def refused(self) -> tuple[Prerequisite, ...]:
        """Those that do not hold."""
        return tuple(check for check in self.checks if check.state == "no")

    @property
    def lacks(self) -> str:
        """The first that does not hold, in one sentence; empty where none is against it."""
        return f"it {self.refused[0].need}" if self.refused else ""


class ProgramReference(Model):
    """The program and its step, as a command names them."""

    name: str
    """Its folder under `devlog/programs`."""
    path: str
    """The file, relative to the project."""
    module: str = ""
    """Its dotted name where it was given as one."""
    step: str
    """The step's function."""
    setup: str | None = None
    """The function whose result the step takes."""
    args: tuple[str, ...] = ()
    """The program's own arguments."""


class StepTiming(Model):
    """How long a step takes, by the parent's clock."""

    seconds: Positive
    """Median over the batches, a step."""
    spread: float = Field(ge=0)
    """Interquartile range over the median."""
    batches: int = Field(ge=1)
    """Batches timed."""
    steps: int = Field(ge=1)
    """Steps a batch."""
    first_seconds: Positive
    """The first step, with whatever is compiled, captured or tuned there; in no median."""
    warm_up: int = Field(ge=0)
    """Steps before the first timed batch."""
    peak_bytes: int | None = Field(default=None, ge=0)
    """Memory of the device that the allocator held at most, on a CPU of the process; null where unknown."""


class NumericsCheck(Model):
    """One comparison of what both sides computed."""

    name: Literal["form", "integers", "values", "movement", "parameter", "buffers"]
    """`form`: number, types and shapes of the values. `integers`: exact. `values`: the rest of them. `movement`:
    where the parameters went, over all of them; `parameter`: the same of each. `buffers`: other state."""
    worst: float = Field(ge=0)
    """Largest error as a share of its bound: up to 1 passes."""
    bound: float = Field(ge=0)
    """The bound, relative to what the original computed."""
    noise: float = Field(ge=0)
    """By how much two runs of the original differ that round otherwise, relative as the bound is."""
    detail: str = ""
    """Where the worst is."""

    @property
    def passed(self) -> bool:
        """Whether it is within its bound."""
        return self.worst <= 1


class NumericsResult(Model):
    """Whether the edited program computes what the original does."""

    precision: Precision
    """Which bounds are in force."""
    steps: int = Field(ge=1)
    """Steps compared, from the same start."""
    seed: int
    """What both sides were seeded with; fresh for every trial."""
    checks: tuple[NumericsCheck, ...] = Field(min_length=1)
    """What was compared."""
    notes: tuple[str, ...] = ()
    """What a reader should know, such as a likely cause."""

    @property
    def passed(self) -> bool:
        """Whether all are within their bounds."""
        return all(check.passed for check in self.checks)

    @property
    def failure(self) -> str:
        """The first that is not, in one sentence; empty where all are."""
        failed = next((check for check in self.checks if not check.passed), None)
        if failed is None:
            return ""
        return "; ".join((f"{failed.name}: {failed.detail}", *self.notes))


class TrialVerdict(StrEnum):
    """What became of an edit."""

    KEPT = "KEPT"
    RESTORED = "RESTORED"


class TrialDecision(Model):
    """The verdict with its reason."""

    verdict: TrialVerdict
    """Whether the edit stays."""
    reason: str
    """One sentence with the numbers that decided."""


class TrialFile(Model):
    """One file that the specialist may edit."""

    path: str
    """Relative to the project."""
    before: Sha256 | None
    """Hash of the original; null: there was none."""
    after: Sha256 | None = None
    """Hash of what was judged; null: not judged yet, or the edit removed the file."""


class TrialPlan(Model):
    """An open trial: what was checked, kept and measured before the edit."""

    entry: Slug
    """The optimization."""
    rules: ProgramRules
    """What its entry declared then."""
    subject: ProgramReference
    """The program."""
    files: tuple[TrialFile, ...] = Field(min_length=1)
    """What may be edited; nothing else of the program may change."""
    others: dict[str, Sha256]
    """The program's other files that it imports, relative to the project, with their hashes."""
    prerequisites: Prerequisites
    """What was checked."""
    predicted: Positive | None = None
    """The speedup that was predicted; null: nothing was."""
    slower: float = Field(default=REGRESSION, gt=0, lt=1)
    """The share by which the step may become slower; more than `REGRESSION` only for memory."""
    baseline: StepTiming
    """The program before the edit."""
    device: str
    """Where it ran."""
    libraries: dict[str, str] = {}
    """Versions, by name."""
    opened: Minute
    """When, in UTC."""

    @model_validator(mode="after")
    def _price(self) -> Self:
        if self.rules.purpose == "speed" and self.slower > REGRESSION:
            raise ValueError(f"only an optimization for memory may be slower by more than {REGRESSION:.0%}")
        return self


class TrialRecord(Model):
    """A closed trial: `trials/<NNN>/record.json`."""

    plan: TrialPlan
    """What was to be tried, with the judged files' hashes."""
    decision: TrialDecision
    """What became of it."""
    comparisons: tuple[Comparison, ...] = ()
    """Paired timing against the original, one a pair of processes; empty where the trial was abandoned."""
    original: StepTiming | None = None
    """The original in those pairs."""
    edited: StepTiming | None = None
    """The edited program in those pairs."""
    together: bool = True
    """Whether both sides were in memory at a time; false: they did not fit, and ran by turns."""
    numerics: NumericsResult | None = None
    """Whether it computes the same."""
    notes: tuple[str, ...] = ()
    """What else was seen."""
    closed: Minute
    """When, in UTC."""

    @model_validator(mode="after")
    def _fits_verdict(self) -> Self:
        kept = self.decision.verdict is TrialVerdict.KEPT
        if kept and not (self.numerics and self.numerics.passed and self.comparisons):
            raise ValueError("an edit that is kept computes the same and was timed")
        return self

    @property
    def measured(self) -> Comparison | None:
        """The comparison with the least speedup: what is claimed."""
        return min(self.comparisons, key=lambda one: one.speedup, default=None)


class TrialsTotal(Model):
    """The first original against the program as it is, in one paired run: `trials/total.json`."""

    files: tuple[TrialFile, ...]
    """Every file that a kept trial edited: first original and present content."""
    comparison: Comparison
    """Paired timing."""
    original: StepTiming
    """The first original."""
    present: StepTiming
    """The program as it is."""
    device: str
    """Where it ran."""
    measured: Minute
    """When, in UTC."""


class TrialsSummary(Model):
    """What became of a program's trials."""

    program: str
    """Its name."""
    trials: dict[int, TrialRecord]
    """The closed ones by number."""
    total: TrialsTotal | None
    """All of them in sum, when that was measured last; null: never."""


def decide_trial(
    comparisons: Sequence[Comparison],
    numerics: NumericsResult,
    peaks: tuple[int | None, int | None],
    purpose: Purpose = "speed",
    slower: float = REGRESSION,
) -> TrialDecision:
    """Whether an edit is kept; from numbers alone.

    Args:
        comparisons: paired timing against the original, one a pair of processes; none for wrong numerics.
        numerics: whether it computes the same.
        peaks: peak memory of the original and of the edited program in bytes, where known.
        purpose: what the optimization is for.
        slower: the share by which the step may become slower.
    """
    if not numerics.passed:
        return _restored_decision(f"wrong numerics: {numerics.failure}")
    least = min(comparisons, key=lambda one: one.speedup)
    told = _format_speedup(least)
    relief = _freed_memory_share(peaks)
    if least.speedup <= 1 - slower:
        return _restored_decision(f"slower: {told}, beyond {slower:.0%}")
    if purpose == "memory" and relief is not None and relief >= SMALLEST_MEMORY_GAIN:
        return TrialDecision(verdict=TrialVerdict.KEPT, reason=f"peak memory -{relief:.1%} at {told}")
    if all(map(shows_gain, comparisons)):
        return TrialDecision(verdict=TrialVerdict.KEPT, reason=f"faster: {told}")
    freed = "" if relief is None or purpose == "speed" else f", and peak memory changed by {-relief:+.1%}"
    if any(map(shows_gain, comparisons)):
        return _restored_decision(
            f"no gain in every pair of processes: {', '.join(map(_format_speedup, comparisons))}{freed}"
        )
    return _restored_decision(f"no gain: {told}{freed}")


def shows_gain(comparison: Comparison) -> bool:
    """Whether a pair of processes shows a gain."""
    return comparison.interval.low > 1 and comparison.speedup >= 1 + SMALLEST_GAIN


def shows_no_gain(comparison: Comparison, slower: float = REGRESSION) -> bool:
    """Whether a first pair of processes shows clearly that there is no gain, so that no second one is needed."""
    lost = comparison.interval.high < 1 - slower
    return lost or (comparison.interval.low > 1 - slower and comparison.interval.high < 1 + SMALLEST_GAIN)


def _format_speedup(comparison: Comparison) -> str:
    return f"{comparison.speedup:.3f}x [{comparison.interval.low:.3f}, {comparison.interval.high:.3f}]"


def _freed_memory_share(peaks: tuple[int | None, int | None]) -> float | None:
    """The share of the peak memory that is gone; None where it is unknown."""
    before, after = peaks
    return 1 - after / before if before and after is not None else None


def _restored_decision(reason: str) -> TrialDecision:
    return TrialDecision(verdict=TrialVerdict.RESTORED, reason=reason)


RecommendationState = Literal["due", "waits", "excluded", "kept", "restored", "by hand"]
"""`waits`: another comes first. `excluded`: it does not go with what was kept, or a prerequisite does not hold.
`by hand`: no entry is about it."""


class RankedRecommendation(Model):
    """A recommendation of an analysis, and where it stands after the trials."""

    title: str
    """In words: `CUDA graphs`."""
    entry: Slug | None
    """The knowledge entry; null where it is work on one kernel, or on the program's own code."""
    impact: str
    """`High`, `Medium` or `Low`."""
    standing: RecommendationState
    """Where it stands."""
    why: str
    """In one sentence."""


class NextAction(Model):
    """What is due for a program."""

    program: str
    """Its name."""
    action: Literal["verify", "analyze", "mend", "apply", "work", "finished"]
    """`work`: on a kernel or on the program's own code. `finished`: nothing is left that is worth a trial."""
    why: str
    """In one sentence."""
    command: str
    """The exact command; empty where there is none."""
    candidates: tuple[RankedRecommendation, ...] = ()
    """The analysis's recommendations in the order in which they are tried."""
