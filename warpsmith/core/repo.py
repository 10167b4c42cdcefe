"""Repo mode: a kernel in somebody's own repository, what judges it there, and one round of work on it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from warpsmith.core.base import Minute, Model, Positive, Sha256, Slug
from warpsmith.core.campaign import Plan, Thresholds
from warpsmith.core.evaluation import Aggregate, Decision, Interval, Verdict
from warpsmith.core.hardware import Machine

REPO_RECORD_VERSION = 1
"""Version of the form of a repo campaign's records."""

STDOUT = "stdout"
"""Where a benchmark's table is, if it is in no file."""

Level = Literal["quick", "full"]
"""What a judgement looks at: the representative rows, or all of them."""

Side = Literal["base", "candidate"]
"""The best version so far, and the one that is judged."""

Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]
"""A git object's name."""


def _inside(text: str) -> str:
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if text.startswith("/") or ".." in parts or not parts:
        raise ValueError(f"`{text}` must be a path inside the repository, with slashes, and no `..`")
    return "/".join(parts)


Inside = Annotated[str, AfterValidator(_inside)]
"""A path in the repository, relative to the project's root."""

Command = Annotated[str, Field(pattern=r"\S")]
"""What the shell runs in the project's root; exit code 0 is success."""


class CheckColumn(Model):
    """The column that says whether a row's results were right."""

    column: str
    """Its name."""
    passes: str
    """What it holds where they were."""


class QuickSettings(Model):
    """How the benchmark is kept to the representative rows: one of two ways."""

    environment: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The variable that holds them: a JSON list with an object of the key columns for each row."""
    benchmark: Command | None = None
    """Another benchmark command, which prints fewer rows: those are the representative ones."""
    test: Command | None = None
    """A quicker test command."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.environment is None) == (self.benchmark is None):
            raise ValueError("give either `environment` or `benchmark`: how are fewer rows asked for?")
        return self


class CommandTimeouts(Model):
    """Seconds after which a command is stopped, with all that it started."""

    test: float = Field(default=900, gt=0)
    """The test command."""
    benchmark: float = Field(default=1800, gt=0)
    """The benchmark command, once."""
    rebuild: float = Field(default=1800, gt=0)
    """The rebuild command."""


class RepoSettings(Model):
    """`[tool.warpsmith.project]`: how a kernel is tested and measured in its own repository."""

    kernel: tuple[Inside, ...] = Field(min_length=1)
    """The files that a round may change."""
    test: Command
    """The focused test: correctness of this kernel."""
    benchmark: Command
    """The focused benchmark; it writes one table in CSV with a header."""
    csv: Inside = STDOUT
    """The file that it writes, or `stdout`."""
    keys: tuple[str, ...] = Field(min_length=1)
    """The columns that together name a row: the workload."""
    metrics: dict[str, Literal["lower", "higher"]] = Field(min_length=1)
    """The measured columns, each with the direction that is better."""
    check: CheckColumn | None = None
    """The column that says whether a row's results were right; null: the test command says it alone."""
    only: dict[str, str] = {}
    """Rows that count: column to the value that it must hold."""
    scoring: Literal["geomean", "combined"] = "geomean"
    """`geomean`: over rows and metrics. `combined`: over rows of the metrics' sum: forward and backward time."""
    rebuild: Command | None = None
    """What brings changed sources into effect; null: nothing is to be done."""
    quick: QuickSettings | None = None
    """How the benchmark is kept to the representative rows; null: every judgement is a full one."""
    representative: int = Field(default=4, ge=1, le=64)
    """How many rows are chosen at the baseline, where `quick.environment` takes them."""
    repeats: int = Field(default=5, ge=2, le=50)
    """Runs of either side in a judgement, interleaved; as many again where that does not settle it."""
    timeouts: CommandTimeouts = CommandTimeouts()
    """When commands are stopped."""
    thresholds: Thresholds = Thresholds()
    """What the decision is made by."""

    @model_validator(mode="after")
    def _columns(self) -> Self:
        for name in self.metrics:
            if name in self.keys:
                raise ValueError(
                    f"column `{name}` is a key and a metric; a row's name must not be what is measured"
                )
        if self.scoring == "combined" and (len(self.metrics) < 2 or "higher" in self.metrics.values()):
            raise ValueError("scoring `combined` sums times: `metrics` needs two or more, each `lower`")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the table must have."""
        checked = (self.check.column,) if self.check else ()
        return tuple(dict.fromkeys((*self.keys, *self.metrics, *checked, *self.only)))


class CommandRun(Model):
    """One command that was run."""

    what: Literal["rebuild", "test", "benchmark"]
    """Which of the contract's."""
    side: Side
    """In which worktree."""
    exit_code: int | None
    """Null where it was stopped at its time limit."""
    seconds: float = Field(ge=0)
    """By the clock of the one who waited."""
    left_running: int = Field(default=0, ge=0)
    """Processes that it left behind, which were stopped."""


class RowResult(Model):
    """Base and candidate at one row and metric."""

    row: str
    """The key columns: `M=4096 N=1024`."""
    metric: str
    """The column; the sum's columns where scoring is `combined`."""
    better: Literal["lower", "higher"]
    """Which way is better."""
    before: Positive
    """The base's median."""
    after: Positive
    """The candidate's median."""
    speedup: Positive
    """Median of the paired ratios: above 1 the candidate is better."""
    interval: Interval
    """Of it."""
    pairs: int = Field(ge=2)
    """Paired runs behind it."""


class RepoEvaluation(Model):
    """One judgement: base and candidate, tested and benchmarked in two worktrees."""

    level: Level
    """Which rows."""
    base: Commit
    """The commit that it was to be better than; at the baseline the same as the candidate."""
    commit: Commit
    """The commit that was judged."""
    tree: Commit
    """Its tree."""
    diff_sha256: Sha256
    """Hash of the change between the two, as kept beside the record."""
    contract_sha256: Sha256
    """Hash of the contract in force."""
    lab_sha256: Sha256
    """Hash of the lab's own code."""
    machine: Machine | None
    """Where it ran; null where no hardware page is of this machine."""
    runs: tuple[CommandRun, ...]
    """What was run, in order."""
    findings: tuple[str, ...] = ()
    """What deserves a reviewer's look: in the kernel's source, and on the machine."""
    rows: tuple[RowResult, ...] = ()
    """Empty where it was not measured."""
    aggregate: Aggregate | None = None
    """The score; null where it was not measured."""
    floor: Positive | None = None
    """The gain that an A/A comparison showed by chance; null at the baseline, which measures it."""
    decision: Decision
    """The verdict."""
    measured: Minute
    """When, in UTC."""

    @model_validator(mode="after")
    def _fits_verdict(self) -> Self:
        if self.decision.verdict.accepted and self.aggregate is None:
            raise ValueError("an accepted change must have been measured")
        return self


class RepoBaseline(Model):
    """What the first round fixed for the whole campaign."""

    representative: dict[str, dict[str, str]]
    """The rows of quick judgements: name to key columns."""
    floor: Positive
    """The gain that comparing the base with itself shows by chance, over all rows."""
    quick_floor: Positive
    """The same over the representative rows."""


class RepoLesson(Model):
    """What a round taught, or why nothing."""

    learned: bool
    """Whether it taught something."""
    text: str = Field(min_length=10)
    """What, or why nothing."""


class RepoRecord(Model):
    """One round of a repo campaign, written once."""

    record_version: int = REPO_RECORD_VERSION
    """Version of this form."""
    campaign: Slug
    """The campaign."""
    round: int = Field(ge=1)
    """Its number; 1 is the baseline."""
    plan: Plan
    """The hypothesis."""
    judgement: RepoEvaluation
    """The lab's."""
    baseline: RepoBaseline | None = None
    """Present in round 1."""
    commit: Commit | None
    """The commit on the campaign's branch; null where it was rolled back."""
    lesson: RepoLesson
    """What it taught."""
    opened: Minute
    """When it was planned, in UTC."""
    closed: Minute
    """When it was closed."""
    previous_sha256: Sha256 | None
    """Hash of the record before it."""

    @property
    def verdict(self) -> Verdict:
        """What became of the change."""
        return self.judgement.decision.verdict


class OpenPlan(Model):
    """The open round's hypothesis: `open/plan.json`."""

    plan: Plan
    """The hypothesis."""
    opened: Minute
    """When, in UTC."""


class RepoManifest(Model):
    """What a repo campaign is about: `campaign.json`."""

    campaign: Slug
    """Its name and folder."""
    contract: RepoSettings
    """As it was when the campaign began."""
    contract_sha256: Sha256
    """Its hash."""
    start: Commit
    """The commit that it began at."""
    branch: str
    """The ref that accepted changes land on."""
    created: Minute
    """When, in UTC."""


class Workspace(Model):
    """A kernel taken out of its repository with what it needs: `workspace.json`."""

    campaign: Slug
    """Whose."""
    kernel: Inside
    """The kernel's path in the repository."""
    copy_path: Inside
    """Its path in the workspace."""
    upstream: Commit
    """The commit that all was taken from."""
    upstream_sha256: Sha256
    """Hash of the kernel's file there."""
    synced_sha256: Sha256
    """Hash of the file that `warpsmith repo sync` brought last; at first the same."""
    files: dict[Inside, Inside]
    """Every file that was taken: its place in the workspace, and where it is from."""
    external: tuple[str, ...]
    """Packages outside of the repository that the files import."""
    test: Command
    """The contract's test command, to be run in the workspace."""
    benchmark: Command
    """The contract's benchmark command, to be run in the workspace."""
    problem: str
    """Why the test fails in the workspace; empty: it passes."""
    created: Minute
    """When, in UTC."""
