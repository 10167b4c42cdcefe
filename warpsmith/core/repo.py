"""Models of repo mode: the project settings, evaluations and round records of a kernel in its own repository."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from warpsmith.core.base import Minute, Model, Positive, Sha256, Slug
from warpsmith.core.campaign import Plan, Thresholds
from warpsmith.core.evaluation import Aggregate, Decision, Interval, Verdict
from warpsmith.core.hardware import Machine

REPO_RECORD_VERSION = 2
"""Version of the form of the records of repo campaigns."""

STDOUT = "stdout"
"""Value of `csv` for a table in stdout."""

Level = Literal["quick", "full"]
"""Rows of an evaluation: the representative ones, or all of them."""

Side = Literal["base", "candidate"]
"""Sides of an evaluation: the best version so far, and the candidate."""

Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]
"""Name of a git object."""


def _inside(text: str) -> str:
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if text.startswith("/") or ".." in parts or not parts:
        raise ValueError(f"`{text}` must be a path inside the repository, with slashes, and no `..`")
    return "/".join(parts)


Inside = Annotated[str, AfterValidator(_inside)]
"""Path in the repository, relative to the project's root."""

Command = Annotated[str, Field(pattern=r"\S")]
"""Shell command that runs in the project's root; exit code 0 is success."""


class CheckColumn(Model):
    """Column that says whether the results of a row were correct."""

    column: str
    """Name of the column."""
    passes: str
    """Its value for correct results."""


class QuickSettings(Model):
    """Restriction of the benchmark to the representative rows, in one of two ways."""

    environment: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Environment variable for the rows: a JSON list with an object of the key columns for each row."""
    benchmark: Command | None = None
    """Another benchmark command, which prints fewer rows; those are the representative ones."""
    test: Command | None = None
    """Faster test command."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.environment is None) == (self.benchmark is None):
            raise ValueError("give exactly one of `environment` and `benchmark`: the way to request fewer rows")
        return self


class CommandTimeouts(Model):
    """Seconds after which a command is stopped, with every process that it started."""

    test: float = Field(default=900, gt=0)
    """Limit of the test command."""
    benchmark: float = Field(default=1800, gt=0)
    """Limit of one run of the benchmark command."""
    rebuild: float = Field(default=1800, gt=0)
    """Limit of the rebuild command."""


class RepoSettings(Model):
    """Project settings, `[tool.warpsmith.project]`: commands that test and measure a kernel in its repository."""

    kernel: tuple[Inside, ...] = Field(min_length=1)
    """Files that a round may change."""
    test: Command
    """Focused test of this kernel's correctness."""
    benchmark: Command
    """Focused benchmark; it writes one table in CSV with a header."""
    csv: Inside = STDOUT
    """File that the benchmark writes, or `stdout`."""
    keys: tuple[str, ...] = Field(min_length=1)
    """Columns that together name a row, which is a workload."""
    metrics: dict[str, Literal["lower", "higher"]] = Field(min_length=1)
    """Measured columns, each with the direction that is better."""
    check: CheckColumn | None = None
    """Column with the correctness of a row's results; null if only the test command checks it."""
    only: dict[str, str] = {}
    """Filter of the rows: the required value of each column."""
    scoring: Literal["geomean", "combined"] = "geomean"
    """`geomean`: mean over rows and metrics. `combined`: mean over rows of the sum of the metrics, such as forward
    and backward time."""
    rebuild: Command | None = None
    """Command that builds changed sources; null if nothing has to be built."""
    program: Command | None = None
    """Whole program that calls the kernel, such as a short training run; null if none is given."""
    quick: QuickSettings | None = None
    """Restriction to the representative rows; null if every evaluation is a full one."""
    representative: int = Field(default=4, ge=1, le=64)
    """Number of rows chosen at the baseline, for `quick.environment`."""
    repeats: int = Field(default=5, ge=2, le=50)
    """Interleaved runs of either side in an evaluation; the same number again if they do not settle it."""
    timeouts: CommandTimeouts = CommandTimeouts()
    """Time limits of the commands."""
    thresholds: Thresholds = Thresholds()
    """Thresholds of the decision."""

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
        """Columns that the table must have."""
        checked = (self.check.column,) if self.check else ()
        return tuple(dict.fromkeys((*self.keys, *self.metrics, *checked, *self.only)))


class CommandRun(Model):
    """Run of one command."""

    what: Literal["rebuild", "test", "benchmark", "program"]
    """Command of the settings."""
    side: Side
    """Side whose worktree it ran in."""
    exit_code: int | None
    """Exit code; null if it was stopped at its time limit."""
    seconds: float = Field(ge=0)
    """Duration by the caller's clock."""
    left_running: int = Field(default=0, ge=0)
    """Number of processes that it left behind, which were stopped."""


class RowResult(Model):
    """Base and candidate compared at one row and metric."""

    row: str
    """Name of the row, from its key columns: `M=4096 N=1024`."""
    metric: str
    """Metric column; with scoring `combined` the columns of the sum."""
    better: Literal["lower", "higher"]
    """Direction that is better."""
    before: Positive
    """Base in the pair of runs whose ratio is the speedup; in older records the median of the base."""
    after: Positive
    """Candidate in the same pair; in older records the median of the candidate."""
    speedup: Positive
    """Median of the paired ratios; above 1 the candidate is better."""
    interval: Interval
    """Confidence interval of the speedup."""
    pairs: int = Field(ge=2)
    """Number of paired runs."""


class TimeBucket(Model):
    """Part of a program's time."""

    name: str
    """The kernel, a file of the repository, a package, or the rest."""
    share: float = Field(ge=0, le=1)
    """Share of the program's time."""


class ProgramReach(Model):
    """Reach of a kernel's gain in the program that calls it: buckets of time, calls, and its own gain."""

    traced: Literal["program", "benchmark"]
    """Command of the settings that was traced."""
    buckets: tuple[TimeBucket, ...] = ()
    """Parts of its time in the base, the kernel first; empty if it was not traced."""
    calls: int | None = Field(default=None, ge=0)
    """Number of calls of the kernel from outside, in the base; null if it was not traced."""
    candidate_calls: int | None = Field(default=None, ge=0)
    """Number of calls in the candidate."""
    functions: dict[str, int] = {}
    """Calls by function of the kernel, the most frequent first."""
    kernel_seconds: tuple[float, float] | None = None
    """Seconds inside of the kernel, in base and candidate."""
    predicted: Positive | None = None
    """Speedup of the program that the kernel's share and its gain in the benchmark predict."""
    measured: Positive | None = None
    """Speedup of the program: the median of paired runs."""
    interval: Interval | None = None
    """Confidence interval of the program's speedup."""
    seconds: tuple[Positive, Positive] | None = None
    """Seconds of the program in base and candidate, in the pair of runs whose ratio is the speedup."""
    missing: tuple[str, ...] = ()
    """Sentences about parts that could not be measured."""

    @property
    def kernel_share(self) -> float | None:
        """Share of the time that is the kernel's; None if it was not traced."""
        return self.buckets[0].share if self.buckets else None


class RepoEvaluation(Model):
    """Evaluation of a commit: base and candidate, tested and benchmarked in two worktrees."""

    level: Level
    """Rows of the evaluation."""
    base: Commit
    """Commit of the base; at the baseline the same as the candidate."""
    commit: Commit
    """Commit of the candidate."""
    tree: Commit
    """Tree of the candidate."""
    diff_sha256: Sha256
    """Hash of the change between the two, which lies next to the record."""
    contract_sha256: Sha256
    """Hash of the project settings in force."""
    lab_sha256: Sha256
    """Hash of the lab's code."""
    machine: Machine | None
    """Machine that it ran on; null if no hardware page describes the machine."""
    runs: tuple[CommandRun, ...]
    """Commands in the order in which they ran."""
    findings: tuple[str, ...] = ()
    """Notes for a reviewer, on the kernel's source and on the machine."""
    rows: tuple[RowResult, ...] = ()
    """Results by row; empty if it was not measured."""
    aggregate: Aggregate | None = None
    """Mean over the rows; null if it was not measured."""
    floor: Positive | None = None
    """Noise floor from comparing the base with itself; null at the baseline, which measures it."""
    transfer: ProgramReach | None = None
    """Reach of the gain in the program; null if nothing was accepted, and in older records."""
    decision: Decision
    """Verdict with its reason."""
    measured: Minute
    """Time in UTC."""

    @model_validator(mode="after")
    def _fits_verdict(self) -> Self:
        if self.decision.verdict.accepted and self.aggregate is None:
            raise ValueError("an accepted change must have been measured")
        return self


class RepoBaseline(Model):
    """Measurements of the first round that hold for the whole campaign."""

    representative: dict[str, dict[str, str]]
    """Rows of quick evaluations: key columns by name."""
    floor: Positive
    """Noise floor over all rows: the gain that the base shows over itself."""
    quick_floor: Positive
    """Noise floor over the representative rows."""


class RepoLesson(Model):
    """Lesson of a round, or the reason why there is none."""

    learned: bool
    """True if there is a lesson."""
    text: str = Field(min_length=10)
    """The lesson, or the reason why there is none."""


class RepoRecord(Model):
    """Record of one round of a repo campaign, written once."""

    record_version: int = REPO_RECORD_VERSION
    """Version of the form of this record."""
    campaign: Slug
    """Name of the campaign."""
    round: int = Field(ge=1)
    """Number of the round; 1 is the baseline."""
    plan: Plan
    """Hypothesis of the round."""
    judgement: RepoEvaluation
    """Evaluation by the lab."""
    baseline: RepoBaseline | None = None
    """Measurements for the whole campaign; only in round 1."""
    commit: Commit | None
    """Commit on the campaign's branch; null if the change was rolled back."""
    lesson: RepoLesson
    """Lesson of the round."""
    opened: Minute
    """Time when it was planned, in UTC."""
    closed: Minute
    """Time when it was closed, in UTC."""
    previous_sha256: Sha256 | None
    """Hash of the record before it."""

    @property
    def verdict(self) -> Verdict:
        """Verdict on the change."""
        return self.judgement.decision.verdict


class OpenPlan(Model):
    """Plan of the open round: `open/plan.json`."""

    plan: Plan
    """Hypothesis of the round."""
    opened: Minute
    """Time in UTC."""


class RepoManifest(Model):
    """Settings of a repo campaign: `campaign.json`."""

    campaign: Slug
    """Name of the campaign and of its folder."""
    contract: RepoSettings
    """Project settings at the start of the campaign."""
    contract_sha256: Sha256
    """Hash of the project settings."""
    start: Commit
    """Commit that the campaign began at."""
    branch: str
    """Ref that accepted changes are committed to."""
    created: Minute
    """Time in UTC."""


class Workspace(Model):
    """Copy of a kernel and of the files that it needs, outside of its repository: `workspace.json`."""

    campaign: Slug
    """Name of the campaign."""
    kernel: Inside
    """Path of the kernel in the repository."""
    copy_path: Inside
    """Path of the kernel in the workspace."""
    upstream: Commit
    """Commit that the files were copied from."""
    upstream_sha256: Sha256
    """Hash of the kernel's file in that commit."""
    synced_sha256: Sha256
    """Hash of the file that `warpsmith repo sync` copied last; at first the same."""
    files: dict[Inside, Inside]
    """Copied files: path in the workspace, and path in the repository."""
    external: tuple[str, ...]
    """Packages from outside of the repository that the files import."""
    test: Command
    """Test command of the settings, rewritten for the workspace."""
    benchmark: Command
    """Benchmark command of the settings, rewritten for the workspace."""
    rebuild: Command | None = None
    """Rebuild command, rewritten for the workspace; null if nothing is built."""
    problem: str
    """Failure of the rebuild or the test in the workspace; empty if it passes."""
    created: Minute
    """Time in UTC."""
