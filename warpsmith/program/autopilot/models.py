"""Plan of an autopilot with the results so far: `devlog/programs/<name>/autopilot.json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warpsmith.core.base import Minute, Model, Sha256, Slug
from warpsmith.core.trial import ProgramReference
from warpsmith.program.analysis.models import amdahl_bound


class PlannedRegion(Model):
    """A region that is to get a kernel."""

    digest: str
    """Digest that names the region."""
    kind: str
    """Kind in a word: `norm`, `activation`."""
    share: float = Field(ge=0, le=1)
    """Share of the step."""
    ceiling: float | None = Field(ge=1)
    """Amdahl's bound: speedup of the step if the region took no time; null if it is the whole step."""


class RegionResult(Model):
    """End of the work on a region."""

    digest: str
    """Digest that names the region."""
    op: str
    """Its definition; empty if it has none."""
    end: Literal["kept", "refused", "not made"]
    """`kept`: its kernel is in the program. `refused`: the step did not keep it. `not made`: it had no trial."""
    reason: str
    """Reason of the verdict, or why there is none; a sentence without a full stop."""


class AutopilotPlan(Model):
    """Regions that an autopilot works on, and what came of them."""

    program: ProgramReference
    """The program."""
    sha256: Sha256
    """Hash of the program's file as the autopilot left it."""
    listed: Minute
    """Time of the list of regions that the plan was made from."""
    device: str
    """`cpu` or the GPU's name."""
    target: Slug
    """Target of the campaigns."""
    designer: str
    """Designer of the kernels, with its folder if it has one."""
    step_seconds: float = Field(gt=0)
    """Seconds per step when the regions were listed."""
    kernel_seconds: float = Field(ge=0)
    """Seconds per step of all kernels that Inductor generated."""
    regions: tuple[PlannedRegion, ...] = Field(min_length=1)
    """The regions in the order of the work."""
    results: tuple[RegionResult, ...] = ()
    """Results of the regions that are done."""
    made: Minute
    """Time of the plan, in UTC."""

    @property
    def regions_left(self) -> tuple[PlannedRegion, ...]:
        """Return the regions without a result."""
        ended = [result.digest for result in self.results]
        return tuple(region for region in self.regions if region.digest not in ended)

    @property
    def share(self) -> float:
        """Return the share of the step that the regions take; parts of a chain count once at most."""
        return min(sum(region.share for region in self.regions), self.kernel_seconds / self.step_seconds, 1.0)

    @property
    def bound(self) -> float | None:
        """Return Amdahl's bound of the regions together; None if they are the whole step."""
        return amdahl_bound(self.share)
