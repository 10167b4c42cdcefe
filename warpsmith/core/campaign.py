"""Campaign and round: the work on one definition for one target; a round has one hypothesis and one verdict."""

from __future__ import annotations

from typing import Literal, Self, get_args

from pydantic import Field, model_validator

from warpsmith.core import gate_rules
from warpsmith.core.base import Minute, Model, Name, Sha256, Slug
from warpsmith.core.evaluation import Evaluation, Interval, Verdict
from warpsmith.core.metrics import METRICS
from warpsmith.core.profile import Profile
from warpsmith.core.spend import Spend

RECORD_VERSION = 2
"""Version of the form of a round's record; from 2 on, texts by agents were checked before the round was closed."""

Category = Literal[
    "baseline",
    "algorithm",
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
"""Kind of change that a round makes; stagnation asks for another one."""

CHANGE_CATEGORIES: tuple[str, ...] = tuple(name for name in get_args(Category) if name != "baseline")
"""Categories that a plan may choose from."""


GainUnit = Literal["round", "minute", "usd"]
"""Cost that a minimum gain is asked for: one round, or a minute or US dollar of it."""

EarlierWork = Literal["hidden", "visible"]
"""Visibility of other campaigns' work on the operator to a campaign's agents."""

Objective = Literal["time", "energy"]
"""Measure by which a version must beat the best one: time or energy per call."""

PRIMARY_METRICS: dict[Objective, str] = {
    "time": "geometric mean of speedups over the best version",
    "energy": "geometric mean of the best version's joules a call over the version's",
}
"""Description of the deciding metric, by objective."""


class Thresholds(Model):
    """Thresholds of the decision."""

    regression: float = Field(default=gate_rules.REGRESSION, gt=0, lt=1)
    """A workload that is slower by at least this share rolls the version back."""
    small_gain: float = Field(default=gate_rules.SMALL_GAIN, gt=0, lt=1)
    """A gain below it is measured again until its interval does not include the noise floor."""
    max_repeats: int = Field(default=gate_rules.MAX_REPEATS, ge=0, le=20)
    """Repetitions after which a small or unclear gain counts as ambiguous."""


class Manifest(Model):
    """Settings of a campaign: `manifest.yaml`."""

    campaign: Slug
    """Name of the campaign and of its folder."""
    target_op: Name
    """Operator of the definition."""
    target: Slug
    """Kind of device."""
    target_language: Name
    """Language of the first version."""
    shapes: Literal["representative", "full"] = "representative"
    """Workload set that rounds are judged at; the baseline and the final race use `full` as well."""
    objective: Objective = "time"
    """Quantity to reduce: seconds or joules per call."""
    primary_metric: str = PRIMARY_METRICS["time"]
    """Deciding metric in words."""
    performance_target: float | None = Field(default=None, gt=0)
    """Share of the ceiling at which the campaign is done; null: 0.9 for time, no such target for energy."""
    execution_mode: Literal["workspace", "repo"] = "workspace"
    """`workspace`: versions under kernels/. `repo`: a kernel in its own code base."""
    git: Literal["none", "branch"] = "none"
    """`branch`: each accepted round becomes a commit on `optimize/<campaign>`."""
    max_iterations: int | None = Field(default=None, gt=0, lt=120)
    """Number of rounds after which it ends; null: only the other stop conditions hold."""
    minimum_gain: float | None = Field(default=None, ge=0, lt=1, exclude_if=lambda value: value is None)
    """Expected gain of another round below which it ends: 0.02 is 2 %; absent: no round is too poor."""
    minimum_gain_per: GainUnit = Field(default="round", exclude_if=lambda value: value == "round")
    """Cost that the minimum is asked for; absent: a round."""
    thresholds: Thresholds = Thresholds()
    """Thresholds of the decision."""
    peers: tuple[str, ...] = ("torch.compile",)
    """Sides that are timed at the baseline and in the final race, in addition to the reference."""
    figures: dict[str, str] = {}
    """Hardware figures in use, each as `value unit <- file:line`."""
    earlier_work: EarlierWork = Field(default="visible", exclude_if=lambda value: value == "visible")
    """`hidden`: it begins from scratch, and its agents see no versions and lessons of other campaigns on the
    operator; absent: it builds on them."""
    withheld: tuple[Slug, ...] | None = Field(default=None, exclude_if=lambda value: value is None)
    """Knowledge entries that its agents do not see, drawn at random for an experiment; absent without one."""
    amends: Slug | None = Field(default=None, exclude_if=lambda value: value is None)
    """Earlier campaign whose definition was wrong and is mended in this one; absent if there is none."""
    context: Slug | None = Field(default=None, exclude_if=lambda value: value is None)
    """Machine that measures, by its name among the contexts; absent if it is the one with the records."""
    port: bool = Field(default=False, exclude_if=lambda value: not value)
    """True for a port campaign: versions are interpreted, and compiled for the target, and nothing is timed."""
    version_suffix: str | None = Field(
        default=None, pattern="^[a-z0-9]{4}$", exclude_if=lambda value: value is None
    )
    """End of the names of its versions, such as `k2f9` of `triton/v8_k2f9`, which no other clone of the repository
    uses; absent if no other clone is known."""
    created: Minute
    """Time in UTC."""


class Closure(Model):
    """End of a campaign before its stop condition: `closed.json`; its records stay."""

    reason: str = Field(min_length=10)
    """Reason in a sentence."""
    amended_by: Slug | None = None
    """Campaign that goes on with the mended definition; null if this one was abandoned."""
    at: Minute
    """Time in UTC."""

    @property
    def text(self) -> str:
        """Description in words: `abandoned: The target is gone`."""
        return f"amended by {self.amended_by}: {self.reason}" if self.amended_by else f"abandoned: {self.reason}"


class Selection(Model):
    """SELECT: choice of the language of the next version."""

    language: Name
    """Language, by the control that the bottleneck needs."""
    because: str = Field(min_length=10)
    """Reason for the choice."""


class Direction(Model):
    """One of the directions that a stagnation review compares."""

    name: str
    """Name of the direction."""
    category: Category
    """Category of the change."""
    expected: str
    """Expected effect, and the difference from the directions that failed."""


class Plan(Model):
    """STRATEGIZE: one hypothesis with its predicted gain."""

    hypothesis: str = Field(min_length=10)
    """One sentence with the change and the reason why it should be faster."""
    category: Category
    """Category of the change."""
    entries: tuple[str, ...] = ()
    """Knowledge entries that it applies."""
    predicted_gain: float = Field(ge=-0.5, le=100)
    """Expected gain over the best version: 0.2 is 20 % faster, or 20 % better in energy."""
    metric: str
    """Metric that is expected to change."""
    expected_change: float
    """Expected change in the metric's unit; negative is down."""
    search_log: tuple[str, ...] = ()
    """Sources that were read or searched for it."""
    risks: str = ""
    """Risks of the change."""
    rollback: str = ""
    """Action if it fails; by default the version stays on disk and the best version stays the best."""
    review: tuple[Direction, ...] = ()
    """Directions of a stagnation review: at least three different ones, the chosen one first."""

    @model_validator(mode="after")
    def _known_metric(self) -> Self:
        if self.metric not in METRICS:
            raise ValueError(f"unknown metric `{self.metric}`; known: {', '.join(METRICS)}")
        return self


ContenderEnd = Literal["refused", "failed", "correct", "screened", "raced", "chosen"]
"""End of a contender: equal to another one, no version that is right, not timed, timed in a screen, timed in the
race beside the other fast ones, or sent to the gate."""


class ScreenedSpeedup(Model):
    """Speedup of a contender over the best version in a screen; it decides who is judged, and no verdict."""

    speedup: float = Field(gt=0)
    """Geometric mean of the paired speedups over the workloads."""
    interval: Interval
    """Its 95 % interval."""


class Contender(Model):
    """One of several versions with different hypotheses that a round designed at once."""

    number: int = Field(ge=1)
    """Number among the round's contenders."""
    plan: Plan
    """Its hypothesis."""
    copy_name: str | None = None
    """Name of the copy of its file next to the record; null if it left none."""
    sha256: Sha256 | None = None
    """Hash of that copy."""
    end: ContenderEnd
    """Last stage that it reached."""
    reason: str
    """Reason for its end, as the lab states it."""
    screen: ScreenedSpeedup | None = None
    """Result of its last screen; null if it was not timed."""


class Contenders(Model):
    """Contenders of the open round: `contenders.json`, written when the candidate is chosen among them."""

    chosen: int = Field(ge=1)
    """Number of the one that became the candidate."""
    contenders: tuple[Contender, ...] = Field(min_length=1)
    """All of them, in order."""

    @property
    def candidate(self) -> Contender:
        """The one that was chosen."""
        return next(contender for contender in self.contenders if contender.number == self.chosen)

    @model_validator(mode="after")
    def _chosen_one(self) -> Self:
        if [each.number for each in self.contenders if each.end == "chosen"] != [self.chosen]:
            raise ValueError(f"contender {self.chosen} must be the one that was chosen")
        return self


class Movement(Model):
    """Change of the plan's metric, compared with the prediction."""

    metric: str
    """Metric of the plan."""
    before: float | None
    """Value on the best version before; null if not measured."""
    after: float | None
    """Value on the new version; null if not measured."""
    predicted: float
    """Change that the plan predicted."""
    as_predicted: bool | None
    """True if it moved in the same direction and at least half as far; null if that is unknown."""


class Stagnation(Model):
    """Demands of the last rounds on the next one."""

    rollbacks_in_a_row: int
    """Number of rollbacks since the last accepted round."""
    not_improving: int
    """Number of rounds since the best version changed."""
    review: bool
    """True if the next plan needs at least three different directions."""
    change_forced: bool
    """True if the next plan must change the category or the language."""


class RoundOutcome(Model):
    """EVALUATE: consequences of the verdict for the campaign."""

    verdict: Verdict
    """Verdict of the evaluation."""
    best: str | None
    """Name of the best version after this round, such as `triton/v3`."""
    gain: float | None
    """Measured gain over the best version before; null if not measured."""
    predicted_gain: float
    """Gain that the plan predicted."""
    movement: Movement | None
    """Change of the plan's metric."""
    stop: str | None
    """Stop condition that holds, in words; null if none does."""
    stagnation: Stagnation
    """Demands on the next round."""


class Tip(Model):
    """Short reusable lesson for the same operator, target and language."""

    context: str
    """Situation that it comes from."""
    signal: str
    """Observation that showed it."""
    takeaway: str
    """Recommended action."""
    applicability: str
    """Conditions under which it holds."""


class Lesson(Model):
    """LEARN: a knowledge entry that was added, refined or refuted, or the reason why nothing is new."""

    action: Literal["add", "refine", "refute", "nothing"]
    """Change of the knowledge."""
    entry: str | None = None
    """Id of the entry."""
    reason: str = ""
    """Reason why nothing is new, or description of the change."""
    tip: Tip | None = None
    """Tip that is also written under docs/knowledge/experience/."""

    @model_validator(mode="after")
    def _either(self) -> Self:
        if self.action == "nothing" and len(self.reason) < 10:
            raise ValueError("nothing new needs a stated reason")
        if self.action != "nothing" and not self.entry:
            raise ValueError(f"`{self.action}` needs the entry's id")
        return self


class EntryDraw(Model):
    """Knowledge entries that fit a round best, in a campaign that withholds entries at random."""

    shown: tuple[str, ...]
    """Ids of those that agents could see."""
    withheld: tuple[str, ...]
    """Ids of those that they could not."""


class Strike(Model):
    """Removal of an accepted version from the lineage after its round was closed: `rounds/<NNN>/struck.json`."""

    record_sha256: Sha256
    """Hash of the record of the round."""
    reason: str = Field(min_length=10)
    """Fault that was found."""
    at: Minute
    """Time in UTC."""


class RoundRecord(Model):
    """Record of one round, written once; a campaign's state is computed from these records."""

    record_version: int = RECORD_VERSION
    """Version of the form of this record."""
    campaign: Slug
    """Name of the campaign."""
    round: int = Field(ge=1)
    """Number of the round; 1 is the baseline."""
    solution: str
    """Name of the judged version, such as `triton/v3`."""
    parent: str | None
    """Name of the best version before it, such as `triton/v2`."""
    snapshot: str
    """Name of the copy of the version next to the record."""
    snapshot_sha256: Sha256
    """Hash of that copy."""
    profile: Profile | None = None
    """PROFILE: profile of the best version before; null at the baseline."""
    selection: Selection
    """SELECT: language of the version."""
    plan: Plan
    """STRATEGIZE: hypothesis of the round."""
    evaluation: Evaluation
    """VERIFY: evaluation by the lab."""
    profile_after: Profile | None = None
    """VERIFY: profile of the new version; null if it did not pass."""
    outcome: RoundOutcome
    """EVALUATE: outcome for the campaign."""
    lesson: Lesson
    """LEARN: lesson of the round."""
    attempts: int = Field(default=1, ge=1, exclude_if=lambda value: value == 1)
    """Number of files of the version that were judged: those that did not build, and the one of the evaluation."""
    tried: int = Field(default=0, ge=0, exclude_if=lambda value: value == 0)
    """Number of variants that `warpsmith try` ran between plan and verdict, from which the version was chosen."""
    contenders: tuple[Contender, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Versions that were designed at once, the judged one among them; absent if it was designed alone."""
    draw: EntryDraw | None = Field(default=None, exclude_if=lambda value: value is None)
    """Entries that fit it best, shown and withheld; absent if the campaign is no experiment."""
    spent: tuple[Spend, ...] = ()
    """Cost of each query to an agent; empty if `warpsmith optimize` ran none."""
    opened: Minute
    """Time when the round was opened, in UTC."""
    closed: Minute
    """Time when LEARN closed it, in UTC."""
    previous_sha256: Sha256 | None
    """Hash of the record before it, so that edits of old records show."""
    manifest_sha256: Sha256 | None = Field(default=None, exclude_if=lambda value: value is None)
    """Hash of the manifest that it was judged by, so that later edits of it show; absent in older records."""
    struck: Strike | None = None
    """Strike from the file next to the record; it is never in the record's own file, which does not change."""

    @property
    def verdict(self) -> Verdict:
        """Verdict on the version: that of the evaluation, or ROLLBACK after a strike."""
        return Verdict.ROLLBACK if self.struck else self.evaluation.decision.verdict

    @property
    def lost(self) -> tuple[Contender, ...]:
        """Contenders of the round that were not judged."""
        return tuple(contender for contender in self.contenders if contender.end != "chosen")

    @property
    def unexplained(self) -> bool:
        """True if the version was accepted although the metric of its plan did not move as predicted."""
        movement = self.outcome.movement
        return self.verdict.accepted and movement is not None and movement.as_predicted is False


class Masks(Model):
    """Rounds that planning does not see: `masks.json`; deleting the file undoes it."""

    seed: int | None
    """Seed of the random choice; null if rounds were masked by their numbers."""
    masked: tuple[int, ...]
    """Numbers of the masked rounds; never the baseline or the best version's round."""
    at: Minute
    """Time in UTC."""
