"""Campaign and Round: one definition on one target, worked on in rounds; one hypothesis, one verdict each."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from warpsmith.core import gate_rules
from warpsmith.core.base import Minute, Model, Name, Sha256, Slug
from warpsmith.core.evaluation import Evaluation, Verdict
from warpsmith.core.metrics import METRICS
from warpsmith.core.profile import Profile
from warpsmith.core.spend import Spend

RECORD_VERSION = 1
"""Version of the record's form."""

Category = Literal[
    "baseline",
    "memory",
    "compute",
    "latency",
    "launch",
    "occupancy",
    "precision",
    "fusion",
    "scheduling",
    "correctness",
]
"""What kind of change a round makes; stagnation asks for another one."""


Objective = Literal["time", "energy"]
"""What a version must do better than the best one: take less time a call, or less energy."""

PRIMARY_METRICS: dict[Objective, str] = {
    "time": "geometric mean of speedups over the best version",
    "energy": "geometric mean of the best version's joules a call over the version's",
}
"""What decides, by objective."""


class Thresholds(Model):
    """What the decision is made by."""

    regression: float = Field(default=gate_rules.REGRESSION, gt=0, lt=1)
    """A workload slower by this share or more rolls the version back."""
    small_gain: float = Field(default=gate_rules.SMALL_GAIN, gt=0, lt=1)
    """A gain below it is repeated until its interval is clear of the floor."""
    max_repeats: int = Field(default=gate_rules.MAX_REPEATS, ge=0, le=20)
    """Repetitions before a small or unclear gain counts as ambiguous."""


class Manifest(Model):
    """What a campaign is about: `manifest.yaml`."""

    campaign: Slug
    """Its name and folder."""
    target_op: Name
    """The definition."""
    target: Slug
    """The device kind."""
    target_language: Name
    """The language it starts in."""
    shapes: Literal["representative", "full"] = "representative"
    """The workload set that rounds are judged at; the last round and the baseline take `full` too."""
    objective: Objective = "time"
    """What is made less: seconds or joules of a call."""
    primary_metric: str = PRIMARY_METRICS["time"]
    """What decides, in words."""
    performance_target: float | None = Field(default=None, gt=0)
    """Share of the ceiling at which the campaign is done; null: 0.9 of the roofline, by energy no share of it."""
    execution_mode: Literal["workspace", "repo"] = "workspace"
    """`workspace`: versions under kernels/. `repo`: a kernel in place in another code base."""
    git: Literal["none", "branch"] = "none"
    """`branch`: each accepted round is a commit on `optimize/<campaign>`."""
    max_iterations: int | None = Field(default=None, gt=0, lt=120)
    """Rounds after which it ends; null: the other stop conditions decide."""
    thresholds: Thresholds = Thresholds()
    """What the decision is made by."""
    peers: tuple[str, ...] = ("torch.compile",)
    """Sides raced at the baseline and at the end, beside the reference."""
    figures: dict[str, str] = {}
    """Every hardware figure in use, as `value unit <- file:line`."""
    created: Minute
    """When, in UTC."""


class Selection(Model):
    """SELECT: the language of the next version."""

    language: Name
    """By the control level that the bottleneck needs."""
    because: str = Field(min_length=10)
    """Why this one."""


class Direction(Model):
    """One of the directions that a stagnation review weighs."""

    name: str
    """What one would do."""
    category: Category
    """Its kind."""
    expected: str
    """What it could bring, and why it is different from what failed."""


class Plan(Model):
    """STRATEGIZE: one hypothesis."""

    hypothesis: str = Field(min_length=10)
    """One sentence: what changes, and why it should be faster."""
    category: Category
    """The kind of change."""
    entries: tuple[str, ...] = ()
    """Knowledge entries it applies."""
    predicted_gain: float = Field(ge=-0.5, le=100)
    """Expected gain over the best version: 0.2 is 20 % faster, or as much less energy."""
    metric: str
    """The metric expected to move."""
    expected_change: float
    """By how much, in the metric's unit; negative is down."""
    search_log: tuple[str, ...] = ()
    """What was read or searched to come to it."""
    risks: str = ""
    """What could go wrong."""
    rollback: str = ""
    """What is done if it does; by default the version stays on disk and the best one stays best."""
    review: tuple[Direction, ...] = ()
    """At a stagnation review: at least three different directions, the chosen one first."""

    @model_validator(mode="after")
    def _known_metric(self) -> Self:
        if self.metric not in METRICS:
            raise ValueError(f"unknown metric `{self.metric}`; known: {', '.join(METRICS)}")
        return self


class Movement(Model):
    """Whether the metric that the plan named moved as predicted."""

    metric: str
    """The plan's metric."""
    before: float | None
    """On the best version before; null where not measured."""
    after: float | None
    """On the new version; null where not measured."""
    predicted: float
    """The plan's change."""
    as_predicted: bool | None
    """Same direction and at least half as far; null where it cannot be said."""


class Stagnation(Model):
    """What the last rounds ask of the next one."""

    rollbacks_in_a_row: int
    """Rollbacks since the last accepted round."""
    not_improving: int
    """Rounds since the best version changed."""
    review: bool
    """The next plan needs at least three different directions."""
    change_forced: bool
    """The next plan must change category or language."""


class RoundOutcome(Model):
    """EVALUATE: what the verdict means for the campaign."""

    verdict: Verdict
    """The evaluation's."""
    best: str | None
    """The best version after this round, as `language/v3`."""
    gain: float | None
    """Measured gain over the best version before; null where not measured."""
    predicted_gain: float
    """The plan's."""
    movement: Movement | None
    """Of the plan's metric."""
    stop: str | None
    """The stop condition that holds, in words; null: go on."""
    stagnation: Stagnation
    """What the next round must do."""


class Tip(Model):
    """A short reusable lesson for the same operator, target and language."""

    context: str
    """Where it was seen."""
    signal: str
    """What showed it."""
    takeaway: str
    """What to do."""
    applicability: str
    """When it holds."""


class Lesson(Model):
    """LEARN: a knowledge entry added, refined or refuted, or why there is nothing new."""

    action: Literal["add", "refine", "refute", "nothing"]
    """What was done."""
    entry: str | None = None
    """The entry's id."""
    reason: str = ""
    """Why there is nothing new, or what the evidence changed."""
    tip: Tip | None = None
    """Also kept under docs/knowledge/experience/."""

    @model_validator(mode="after")
    def _either(self) -> Self:
        if self.action == "nothing" and len(self.reason) < 10:
            raise ValueError("nothing new needs a stated reason")
        if self.action != "nothing" and not self.entry:
            raise ValueError(f"`{self.action}` needs the entry's id")
        return self


class Strike(Model):
    """Why an accepted version left the lineage after its round was closed: `rounds/<NNN>/struck.json`."""

    record_sha256: Sha256
    """Hash of the round's record."""
    reason: str = Field(min_length=10)
    """What was found."""
    at: Minute
    """When, in UTC."""


class RoundRecord(Model):
    """One round, written once: the truth of a campaign."""

    record_version: int = RECORD_VERSION
    """Version of this form."""
    campaign: Slug
    """The campaign."""
    round: int = Field(ge=1)
    """Its number; 1 is the baseline."""
    solution: str
    """The version it judged, as `language/v3`."""
    parent: str | None
    """The best version before it, as `language/v2`."""
    snapshot: str
    """The copy of the solution beside the record."""
    snapshot_sha256: Sha256
    """Hash of that copy."""
    profile: Profile | None = None
    """PROFILE: of the best version before; null at the baseline."""
    selection: Selection
    """SELECT."""
    plan: Plan
    """STRATEGIZE."""
    evaluation: Evaluation
    """VERIFY: the lab's judgement."""
    profile_after: Profile | None = None
    """VERIFY: of the new version; null where it did not pass."""
    outcome: RoundOutcome
    """EVALUATE."""
    lesson: Lesson
    """LEARN."""
    spent: tuple[Spend, ...] = ()
    """What its agents cost, one entry a query; empty where no agent was asked by `warpsmith optimize`."""
    opened: Minute
    """When the round was opened, in UTC."""
    closed: Minute
    """When LEARN closed it."""
    previous_sha256: Sha256 | None
    """Hash of the record before it: an edit of history shows."""
    struck: Strike | None = None
    """Read from the file beside the record, and never in the record's own: the record does not change."""

    @property
    def verdict(self) -> Verdict:
        """What became of the version: the evaluation's verdict, or ROLLBACK once it was struck."""
        return Verdict.ROLLBACK if self.struck else self.evaluation.decision.verdict


class Masks(Model):
    """Which rounds are left out of memory: `masks.json`; deleting the file undoes it."""

    seed: int
    """What the choice was drawn from."""
    masked: tuple[int, ...]
    """Round numbers; never the baseline or the best."""
    at: Minute
    """When."""
