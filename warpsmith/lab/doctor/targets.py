"""The doctor's checks of languages and of the CPU target."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from warpsmith import languages
from warpsmith.core.hardware import Target
from warpsmith.errors import BadEntry, CorruptRecord, Misuse
from warpsmith.lab.doctor.models import DoctorRow, Kind
from warpsmith.lab.doctor.survey import Survey
from warpsmith.lab.machine import hardware, identity, measurement_store, system
from warpsmith.languages.base import Language
from warpsmith.languages.shared import tool
from warpsmith.project import Project

_SECONDS = 10.0


def check_languages(here: Survey) -> Iterator[DoctorRow]:
    """What each language lacks; a kind of target that no language serves is stopped by all of its own."""
    every = [languages.get(name) for name in languages.names()]
    served = {kind for language in every for kind in _ready(here, language)}
    for language in every:
        yield _language(here, language, served)


def check_cores(here: Survey) -> Iterator[DoctorRow]:
    """The processor and the cores that this process may use."""
    yield DoctorRow(
        name="processor", state="ok", found=f"{system.processor_model()}, {system.usable_cores()} cores"
    )


def check_openmp(here: Survey) -> Iterator[DoctorRow]:
    """Whether the C++ compiler builds with OpenMP."""
    compiler = system.find_cxx_compiler()
    if compiler is None:
        return  # the language's row says so
    flags = ["-fopenmp", "-shared", "-fPIC", "-include", "omp.h", "-x", "c++", os.devnull]
    with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
        done = tool.run_tool([*compiler, *flags, "-o", Path(folder) / "openmp.so"], _SECONDS)
    if done.code == 0:
        yield DoctorRow(name="OpenMP", state="ok", found=f"`{' '.join(compiler)}` builds with it")
        return
    said = next((line for line in done.output.splitlines() if "error" in line), f"it ends with {done.code}")
    yield DoctorRow(
        name="OpenMP",
        state="missing",
        found=f"`{' '.join(compiler)} -fopenmp` fails: {said}",
        means="`start`, `ceiling` and `judge` cannot build for the CPU",
        fix="Install the compiler's OpenMP library (Debian: `libgomp1` for g++, `libomp-dev` for clang).",
        stops=("cpu",),
    )


def check_cpu_measurement(here: Survey) -> Iterator[DoctorRow]:
    """Whether the CPU's ceilings and noise were measured."""
    if here.project is None:
        return
    try:
        target = hardware.read_hardware_page(here.project, "cpu").target
    except (BadEntry, Misuse) as error:
        yield DoctorRow(name="page", state="missing", found=str(error), stops=("cpu",))
        return
    yield measurement_row(here.project, target, "took 20 s on two cores, and wants an idle machine")


def measurement_row(project: Project, target: Target, costs: str) -> DoctorRow:
    """Whether ceilings and noise of the machine at hand, a device of this target, were measured.

    Args:
        project: where measurements are kept.
        target: the device kind.
        costs: what measuring takes.

    Raises:
        MachineLacks: the machine is no such device.
    """
    try:
        found = measurement_store.load_measurement(project, identity.identify_machine(target))
    except CorruptRecord as error:
        return DoctorRow(name="ceilings and noise", state="missing", found=str(error), stops=(target.kind,))
    if found is None:
        means = f"`warpsmith start` measures them first; that {costs}"
        return DoctorRow(
            name="ceilings and noise", state="gap", found="not measured on this machine yet", means=means
        )
    noise = "" if found.noise else ", noise not"
    return DoctorRow(name="ceilings and noise", state="ok", found=f"measured {found.measured}{noise}")


def _ready(here: Survey, language: Language) -> list[Kind]:
    """The kinds of target at hand that a language can be timed on now."""
    return [kind for kind in here.kinds if kind in language.targets and language.missing(kind) is None]


def _language(here: Survey, language: Language, served: set[Kind]) -> DoctorRow:
    ready = _ready(here, language)
    version = _version(here, language)
    if ready:
        return DoctorRow(name=language.name, state="ok", found=version)
    wanted = [kind for kind in here.kinds if kind in language.targets]
    if not wanted:
        lacks = language.missing("cpu")
        means = "" if lacks else "on `--target cpu` it tells whether a version is right, never how fast it is"
        found = lacks or f"{version}, no device that it can be timed on"
        return DoctorRow(name=language.name, state="gap", found=found, means=means)
    return DoctorRow(
        name=language.name,
        state="missing",
        found=language.missing(wanted[0]) or "",
        means="its versions cannot be judged here",
        stops=tuple(kind for kind in wanted if kind not in served),
    )


def _version(here: Survey, language: Language) -> str:
    """The version of the package of that name, else of the compiler."""
    compiler = system.find_cxx_compiler() if "cpu" in language.targets else None
    if compiler is None:
        return here.version(language.name) or "ready"
    return tool.run_tool([*compiler, "--version"], _SECONDS).output.partition("\n")[0]
