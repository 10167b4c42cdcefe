"""Jobs: work that another machine does, and the outcome that comes back; both travel as JSON."""

from __future__ import annotations

from typing import Literal

from pydantic import Base64Bytes, Field

from warpsmith.core.base import Model, Sha256
from warpsmith.core.campaign import Manifest, ScreenedSpeedup
from warpsmith.core.definition import WorkloadSet
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.hardware import Measurement
from warpsmith.core.profile import Profile
from warpsmith.lab.doctor.models import DoctorReport

JobKind = Literal["judge", "profile", "screen", "measure", "examine"]
"""`judge` and `profile` one version, `screen` times several beside the best one, `measure` the machine before a
campaign, `examine` it as `doctor` does."""


class Job(Model):
    """Work for another machine; the versions are files of the bundle, by their names."""

    kind: JobKind
    """Kind of work."""
    manifest: Manifest | None = None
    """Operator, target, objective and thresholds; null if the machine is only examined."""
    solution: str = ""
    """Version that is judged or profiled, such as `triton/v3`."""
    best: str | None = None
    """Version that it must beat; null if there is none."""
    sets: tuple[WorkloadSet, ...] = ("representative",)
    """Workload sets that are timed."""
    peers: tuple[str, ...] = ()
    """Further sides to time."""
    timed: bool = True
    """False for a quick check."""
    judgement: int = 1
    """Number of this judgement among its campaign's comparisons with a best version."""
    accepted: Evaluation | None = None
    """Judgement that accepted the best version."""
    workload: str | None = None
    """Workload whose counters are read; null for the one that a profile chooses."""
    full: bool = False
    """True to collect every counter."""
    contenders: dict[int, str] = {}
    """Contender to its file in the bundle's project, for a screen."""
    language: str = ""
    """Language of the contenders."""
    seconds: float = 0.0
    """Wall time of a screen."""


class ScreenResult(Model):
    """Result of one contender in a screen."""

    failure: str = ""
    """Reason why it was not timed; empty if it was, or if its language is not timed on this device."""
    equal: bool = False
    """True if it is not timed because an earlier one has the same machine code."""
    times: ScreenedSpeedup | None = None
    """Its speedup over the best version."""


class ScreenResults(Model):
    """Results of a screen."""

    results: dict[int, ScreenResult]
    """Contender to its result."""


class JobError(Model):
    """Refusal or failure of a job there."""

    kind: str
    """Class of the error in `warpsmith.errors`."""
    message: str
    """Message in one sentence."""


class Outcome(Model):
    """Result of a job, with what it was made of and by."""

    bundle_sha256: Sha256
    """Hash of the bundle that arrived there."""
    lab_sha256: Sha256
    """Hash of the code that judged."""
    gate_version: int
    """Version of its gate."""
    evaluation: Evaluation | None = None
    """Judgement of the version."""
    profile: Profile | None = None
    """Profile of the version."""
    screen: ScreenResults | None = None
    """Times of the contenders."""
    measurement: Measurement | None = None
    """Measurement of the machine that it ran on."""
    devices: int = Field(default=1, ge=1)
    """Devices of the target that jobs can hold there at once."""
    doctor: DoctorReport | None = None
    """Findings about the machine."""
    files: dict[str, Base64Bytes] = {}
    """Reports behind a profile, by their names."""
    error: JobError | None = None
    """Error that ended the job; null if it succeeded."""
