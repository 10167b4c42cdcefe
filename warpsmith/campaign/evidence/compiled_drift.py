"""Drift of the best versions' machine code between two releases of a compiler; no device is needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import distributions
from pathlib import Path

from warpsmith import languages
from warpsmith.campaign.evidence import evidence_check, stored_evaluations
from warpsmith.core.base import Model
from warpsmith.core.text import Tell
from warpsmith.errors import Misuse, WarpsmithError
from warpsmith.lab.machine import hardware
from warpsmith.lab.operator import definition_file
from warpsmith.languages.base import Assembles, BuildFailed
from warpsmith.profiling.assembly import inspect
from warpsmith.project import Project
from warpsmith.temporary import TemporaryFolder

_FIGURES = ("registers", "spill_bytes", "shared_bytes", "instructions")


class CodeFigures(Model):
    """Figures of one compiled kernel."""

    kernel: str
    """Function name."""
    workloads: tuple[str, ...]
    """Representative workloads that launch it."""
    registers: int | None
    """Registers of a thread."""
    spill_bytes: int | None
    """Local memory of a thread, in bytes."""
    shared_bytes: int | None
    """Shared memory of a block, in bytes."""
    instructions: int
    """Number of instructions; a loop's body counts once."""


class CompiledDrift(Model):
    """One best version, compiled by two releases of its compiler."""

    solution: str
    """Path of the version's file in the project."""
    arch: str
    """Architecture that it was compiled for."""
    packages: dict[str, tuple[str, str]]
    """Packages of the compiler with their releases, of the other folder and of here."""
    other: tuple[CodeFigures, ...] = ()
    """Kernels by the other folder's compiler."""
    this: tuple[CodeFigures, ...] = ()
    """Kernels by the compiler that is installed here."""
    failure: str = ""
    """Reason why one of them did not compile it; empty if both did."""

    @property
    def changes(self) -> list[str]:
        """Figures that differ, one phrase for each: `row_kernel at 8192x8192-bf16: registers 40 -> 48`."""
        if [each.workloads for each in self.other] != [each.workloads for each in self.this]:
            return [f"kernels {len(self.other)} -> {len(self.this)}, at other workloads"]
        pairs = zip(self.other, self.this, strict=True)
        return [
            f"{old.kernel} at {old.workloads[0]}: {name.replace('_', ' ')} {before} -> {after}"
            for old, new in pairs
            for name in _FIGURES
            if (before := getattr(old, name)) != (after := getattr(new, name))
        ]


def compile_drift(
    project: Project, other: Path, target: str | None, tell: Tell = lambda _: None
) -> Iterator[CompiledDrift]:
    """Compile each campaign's best version by another release of its compiler and by the one that is here.

    Args:
        project: the project.
        other: folder of `pip install --target`, with another release of a compiler such as Triton.
        target: device kind whose best versions are compiled; None: all.
        tell: takes lines of progress.

    Raises:
        Misuse: the folder holds no compiler of any language.
    """
    releases = {each.metadata["Name"].lower(): each.version for each in distributions(path=[str(other)])}
    compilers = {package for name in languages.names() for package in languages.get(name).packages}
    if not compilers & set(releases):
        raise Misuse(
            f"{other} holds no compiler: fill it with `pip install --no-deps --target {other} triton==3.6.0`."
        )
    installed = {each.metadata["Name"].lower(): each.version for each in distributions()}
    judged, _ = stored_evaluations.list_evaluations(project)
    for stored in evidence_check.best_rounds(judged):
        evaluation = stored.evaluation
        language = languages.get(evaluation.language)
        packages = {
            name: (releases[name], installed.get(name, "none")) for name in language.packages if name in releases
        }
        if not packages or target not in (None, evaluation.target) or not isinstance(language, Assembles):
            continue
        source = project.root / evaluation.provenance.solution
        tell(f"{evaluation.provenance.solution}: compiling twice")
        arch = language.architecture(hardware.read_target_page(project, evaluation.target).target.isa)
        facts = {"solution": evaluation.provenance.solution, "arch": arch, "packages": packages}
        try:
            with _first_on_path(other):
                before = _read_figures(project, evaluation.definition, language, source, arch)
            after = _read_figures(project, evaluation.definition, language, source, arch)
        except (WarpsmithError, BuildFailed) as error:
            yield CompiledDrift.model_validate({**facts, "failure": str(error)[:600]})
            continue
        yield CompiledDrift.model_validate({**facts, "other": before, "this": after})


def _read_figures(
    project: Project, op: str, language: Assembles, source: Path, arch: str
) -> Sequence[dict[str, object]]:
    definition = definition_file.load_definition(project.definition_path(op)).definition
    with TemporaryFolder() as folder:
        workloads = definition.select("representative")
        listings = language.assembly(source, definition, workloads, arch, Path(folder))
        compiled = [inspect.read_assembly(listing, source, project) for listing in listings]
    return [
        {
            "kernel": kernel.name,
            "workloads": kernel.workloads,
            "registers": kernel.resources.registers,
            "spill_bytes": kernel.resources.spill_bytes,
            "shared_bytes": kernel.resources.shared_bytes,
            "instructions": kernel.instructions,
        }
        for kernel in compiled
    ]


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    """Make processes that are started within the context import from a folder first."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder.resolve()), before)))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
