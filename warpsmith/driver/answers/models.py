"""Models of the answers: one class for each kind, with an example of each."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from warpsmith.core.base import Model, Name, Slug
from warpsmith.core.metrics import METRICS
from warpsmith.core.profile import Bottleneck, Opportunity, Stage
from warpsmith.core.text import VERSION, to_one_line

MOST_SENTENCES = 2
"""Sentences of a root cause and of a reviewer's reason."""

_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bcf)(?<!\bapprox)[.!?]+(?=[\s)\"'*_]|$)")


def count_sentences(text: str) -> int:
    """Count the sentences of a text."""
    return len([part for part in _SENTENCE_END.split(text) if re.search(r"\w", part)])


def _join_lines(text: object) -> object:
    return to_one_line(text) if isinstance(text, str) else text


def _refuse_long(text: str) -> str:
    if (count := count_sentences(text)) > MOST_SENTENCES:
        raise ValueError(f"it has {count} sentences; write at most {MOST_SENTENCES}")
    return text


def _refuse_unknown_metric(name: str) -> str:
    if name not in METRICS:
        raise ValueError(f"`{name}` is not a metric; take one from `warpsmith profile --json`, such as dram_pct")
    return name


Line = Annotated[str, BeforeValidator(_join_lines), Field(min_length=1)]
"""Text of one line; line breaks become spaces."""

Reason = Annotated[Line, AfterValidator(_refuse_long)]
"""One or two sentences."""

MetricName = Annotated[str, AfterValidator(_refuse_unknown_metric)]
"""A name of `warpsmith.core.metrics.METRICS`."""

Version = Annotated[str, Field(pattern=rf"^[a-z][a-z0-9_]*/{VERSION}$")]
"""A version as records name it: `triton/v3`."""


class ChangedMetric(Model):
    """Value of one metric before and after a change."""

    metric: MetricName
    """Name of the metric, such as dram_pct."""
    before: float
    """Value for the version before."""
    after: float
    """Value for this version."""


class ProfileAnswer(Model):
    """Answer of the profiler: what limits a version."""

    op: Name
    """The operator."""
    version: Version
    """The version that was profiled."""
    target: Slug
    """The device kind."""
    stages: tuple[Stage, ...] = Field(min_length=1)
    """Stages as `warpsmith profile --json` prints them, the slowest first; null means not measured."""
    bottleneck: Bottleneck
    """Class of the whole version."""
    root_cause: Reason
    """The root cause in one or two sentences."""
    opportunities: tuple[Opportunity, ...] = Field(max_length=3)
    """At most three things to try, the largest estimate first; empty where the kept profile names none."""
    changes: tuple[ChangedMetric, ...] = ()
    """Metrics that moved since the version before; empty for the first version."""

    @field_validator("opportunities")
    @classmethod
    def _check_opportunities(cls, opportunities: tuple[Opportunity, ...]) -> tuple[Opportunity, ...]:
        for opportunity in opportunities:
            _refuse_unknown_metric(opportunity.trigger.name)
            if opportunity.gain_pct > 100:
                raise ValueError(f"`{opportunity.name}` saves {opportunity.gain_pct:g} % of the time; at most 100")
        if any(before.gain_pct < after.gain_pct for before, after in pairwise(opportunities)):
            raise ValueError("put the largest gain_pct first")
        return opportunities


class WorkloadToTime(Model):
    """A workload that the timing should look at."""

    name: Line
    """Name of the workload."""
    reason: Line
    """Reason why this workload matters."""


class VersionAnswer(Model):
    """Answer of a designer: the version that it wrote."""

    op: Name
    """The operator."""
    version: Version
    """The new version."""
    changes: tuple[Line, ...] = Field(min_length=1)
    """One change an item."""
    correctness: Literal["PASS", "FAIL"]
    """Result of `warpsmith judge PATH --check`."""
    files: tuple[Line, ...]
    """Files that were written, as paths in the project; empty only with FAIL."""
    command: Line
    """The check that was run."""
    workloads: tuple[WorkloadToTime, ...] = Field(min_length=1)
    """Workloads that the timing should look at."""
    devlog: Line
    """Folder of the open round."""

    @field_validator("files")
    @classmethod
    def _check_files(cls, files: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not files and info.data.get("correctness") == "PASS":
            raise ValueError("name the file that passed the check")
        return files


class Cheat(Model):
    """A line that makes a benchmark faster and real use not."""

    file: Line
    """Path of the file."""
    line: int = Field(ge=1)
    """Line in the file."""
    reason: Line
    """Effect of the line, and the reason why it is no speed-up in use."""


class ReviewAnswer(Model):
    """Answer of the reviewer: whether the gain of a version is real."""

    op: Name
    """The operator."""
    version: Version
    """The version that was reviewed."""
    cheats: tuple[Cheat, ...]
    """Every cheat; empty if there is none."""
    transfer: tuple[Line, ...] = Field(min_length=1)
    """True if the gain holds in use, and which cases are not covered."""
    verdict: Literal["CLEAN", "SUSPECT"]
    """SUSPECT if there is a cheat, else CLEAN."""
    reason: Reason
    """Reason for the verdict in one or two sentences."""

    @field_validator("verdict")
    @classmethod
    def _check_verdict(cls, verdict: str, info: ValidationInfo) -> str:
        cheats = info.data.get("cheats")
        if verdict == "CLEAN" and cheats:
            raise ValueError(
                "CLEAN, but `cheats` is not empty; write SUSPECT, or move what is harmless to `transfer`"
            )
        if verdict == "SUSPECT" and cheats == ():
            raise ValueError("SUSPECT, but `cheats` is empty; add the line in question, or write CLEAN")
        return verdict


AgentAnswer = ProfileAnswer | VersionAnswer | ReviewAnswer

MODELS: dict[str, type[ProfileAnswer] | type[VersionAnswer] | type[ReviewAnswer]] = {
    "profile": ProfileAnswer,
    "version": VersionAnswer,
    "review": ReviewAnswer,
}
"""Kind of answer to its model."""

EXAMPLES: dict[str, dict[str, object]] = {
    "profile": {
        "op": "softmax",
        "version": "triton/v3",
        "target": "h200",
        "stages": [
            {
                "name": "4096x8192-bf16",
                "seconds": 41.2e-6,
                "tensor_pct": None,
                "dram_pct": 61,
                "occupancy_pct": None,
                "bottleneck": "memory",
                "issue": "two passes over the row",
            }
        ],
        "bottleneck": "memory",
        "root_cause": "The row is read twice. The second read misses the L2 cache.",
        "opportunities": [
            {
                "name": "Keep the row on chip",
                "gain_pct": 22,
                "trigger": {"name": "dram_pct", "value": 61},
                "entry": "row-in-registers",
            }
        ],
        "changes": [{"metric": "dram_pct", "before": 43, "after": 61}],
    },
    "version": {
        "op": "softmax",
        "version": "triton/v4",
        "changes": ["The row stays in registers between the two passes."],
        "correctness": "PASS",
        "files": ["kernels/softmax/triton/v4.py"],
        "command": "warpsmith judge kernels/softmax/triton/v4.py --check",
        "workloads": [{"name": "4096x8192-bf16", "reason": "the longest row that still fits the registers"}],
        "devlog": "devlog/softmax/softmax-triton-h200-20261121/rounds/open",
    },
    "review": {
        "op": "softmax",
        "version": "triton/v4",
        "cheats": [],
        "transfer": ["Rows longer than the registers hold take the old path: no gain there."],
        "verdict": "CLEAN",
        "reason": "The gain comes from the kernel, and real rows have the judged lengths.",
    },
}
"""Kind of answer to a valid one."""
