"""TileIR under Triton: a second solution of a Triton version's source, compiled by another back end.

The source is Triton's in every respect, so this language adds one thing: its worker selects the back end before it
loads the version, and refuses what another back end compiled. The version in Triton stays beside it, so one
judgement times the same source by both.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.errors import MachineLacks
from warpsmith.languages.base import Build, BuildFailed, Language, Run, TraceLanguage
from warpsmith.languages.shared.python_file import has_cuda_device
from warpsmith.languages.tileir import back_end
from warpsmith.languages.triton.language import LANGUAGE as TRITON
from warpsmith.languages.triton.language import launched_kernels, report_kernel


class TileIR(Language):
    """The language `tileir`."""

    name = "tileir"
    title = "TileIR under Triton"
    aliases = ("tritontileir", "tritonwithtileir", "tritontotileir", "cudatileir", "nvtriton")
    suffix = TRITON.suffix
    targets = ("gpu",)
    architectures = ("sm_100+",)
    control = "the tile compiler of CUDA under the same source"
    product = "a TileIR solution"
    written_in = "triton"
    source_patterns = ()
    packages = ("triton", "nvtriton")
    trace_language: TraceLanguage = "triton"

    def missing(self, target_kind: str) -> str | None:
        """Say in one sentence what this machine lacks; None: nothing. A CPU interprets the version in Triton."""
        if lack := TRITON.missing("cpu") or back_end.missing_back_end():
            return lack
        if target_kind == "cpu":
            return "TileIR has no interpreter of its own: the version in Triton has the same source and one."
        return TRITON.missing(target_kind)

    def remark(self) -> str | None:
        """Say in one sentence that the back end is not here, and what does its work; None: it is here."""
        lack = back_end.missing_back_end()
        return lack and (
            f"{lack} Without it `--language triton` judges the same source by the PTX back end, which loses Tile"
            " IR's own schedule and its `occupancy`; `--language cutile` keeps that compiler, which loses the"
            " source."
        )

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """Say why a result without a GPU proves nothing at this workload: the interpreter is Triton's."""
        return f"TileIR has no interpreter: `{workload.name}` needs a GPU to be judged."

    def template(self, definition: Definition) -> str:
        """Return a starting file for a definition: Triton's."""
        return TRITON.template(definition)

    def normalise(self, source: str) -> str:
        """Return the source without comments, docstrings and layout."""
        return TRITON.normalise(source)

    def findings(self, source: str) -> list[str]:
        """List what a reviewer should look at in this source; a tripwire, not the defence."""
        return TRITON.findings(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Check syntax and signature; kernels are compiled at their first call.

        Raises:
            BuildFailed: the file does not parse, or `run` does not take the definition's parameters.
        """
        return TRITON.build(source, definition, folder)

    def load(self, build: Build, definition: Definition) -> Run:
        """Return the file's `run`; a worker selects the back end for itself, a user's process must have done so.

        Raises:
            BuildFailed: this process compiles with another back end.
        """
        if not has_cuda_device():
            raise BuildFailed(
                "TileIR has no interpreter, and there is no CUDA device: judge the version in Triton."
            )
        if build.cache is None:
            os.environ.update({back_end.SWITCH: "1", back_end.FALLBACK: "0"})
        elif os.environ.get(back_end.SWITCH) != "1":
            raise BuildFailed(
                f"TileIR compiles all Triton kernels of a process or none: set {back_end.SWITCH}=1 before the"
                " program starts."
            )
        run = TRITON.load(build, definition)
        if (current := back_end.current_back_end()) != back_end.NAME:
            raise BuildFailed(
                f"Triton compiles with its {current} back end here, in spite of {back_end.SWITCH}=1."
            )
        return run

    def suppress_launches(self) -> AbstractContextManager[None]:
        """Make kernel launches do nothing within the context; in the worker process only."""
        return TRITON.suppress_launches()

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """Return the driver's report of every kernel that was launched, with the back end that compiled it.

        Raises:
            BuildFailed: another back end compiled one of them, so its time is not this solution's.
        """
        launched = tuple(launched_kernels(run))
        for name, kernel in launched:
            if (compiled_by := back_end.back_end_of(kernel)) != back_end.NAME:
                raise BuildFailed(f"{name} was compiled by the {compiled_by} back end, not by TileIR.")
        allowed = [name for name in back_end.APPROXIMATIONS if os.environ.get(name) == "1"]
        notes = ("back end tileir", *(f"{name}=1" for name in allowed))
        reports = (report_kernel(name, kernel) for name, kernel in launched)
        return tuple(dict.fromkeys(each.model_copy(update={"notes": (*each.notes, *notes)}) for each in reports))

    def inspect(self, source: Path, definition: Definition, arch: str) -> tuple[Resources, ...]:
        """Raise MachineLacks: no release of the back end was tried without a device."""
        raise MachineLacks(
            "TileIR compiles at the first call on a GPU: inspect the version in Triton, or judge it."
        )


LANGUAGE = TileIR()
