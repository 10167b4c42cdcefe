"""Settings of a context whose jobs run in an allocation of Slurm, and the options of `sbatch` that they make."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from warpsmith.core.base import Model

_WORD = r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$"
_TIME = r"^\d+(-\d+(:\d+){0,2}|(:\d+){1,2})?$"

_OPTION = (
    r"^(qos|constraint|cpus-per-task|mem|reservation|nodelist|exclude)"
    r"=[A-Za-z0-9_\[(][A-Za-z0-9_.,:&|*+()\[\]-]*$"
)
"""Options that choose where and how much. Every other one could run a program, send mail or write a file."""

Option = Annotated[str, Field(pattern=_OPTION)]
"""Option of `sbatch` as `name=value`."""


class SlurmSettings(Model):
    """Request for an allocation; without `slurm` none of the other keys may be set."""

    slurm: bool = False
    """True if jobs run as steps of an allocation, on one of its nodes."""
    partition: str | None = Field(default=None, pattern=_WORD)
    """Partition; by default the cluster's."""
    account: str | None = Field(default=None, pattern=_WORD)
    """Account that pays; by default the user's."""
    gpus: str | None = Field(default=None, pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]*:)?[1-9]\d{0,3}$")
    """GPUs of the allocation, by their number or as `type:number`; by default none."""
    time: str | None = Field(default=None, pattern=_TIME)
    """Time limit as `sbatch` takes it, such as `4:00:00`; by default the partition's."""
    options: tuple[Option, ...] = ()
    """Further options of `sbatch`, such as `qos=high`: qos, constraint, cpus-per-task, mem, reservation, nodelist,
    exclude."""
    idle: int = Field(default=1200, ge=60, le=86400)
    """Seconds after which an allocation ends by itself if no job runs in it."""
    wait: int = Field(default=3600, ge=1, le=604800)
    """Seconds that a command waits for an allocation that is still in the queue."""

    @property
    def sbatch_options(self) -> list[str]:
        """Options of `sbatch`; each is one word with its value, so that no value can begin an option."""
        chosen = {
            "partition": self.partition,
            "account": self.account,
            "gres": self.gpus and f"gpu:{self.gpus}",
            "time": self.time,
        }
        return [f"--{name}={value}" for name, value in chosen.items() if value] + [
            f"--{option}" for option in self.options
        ]
