"""Doctor's checks of languages and of the CPU target."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from warpsmith import languages
from warpsmith.core.hardware import Target
from warpsmith.errors import BadEntry, CorruptRecord, Misuse
from warpsmith.lab.doctor.models import DoctorRow, Kind
from warpsmith.lab.doctor.survey import Survey
from warpsmith.lab.machine import hardware, identity, measurement_store, system
from warpsmith.languages.base import Language, ReplaysLaunches
from warpsmith.languages.shared import tool
from warpsmith.project import Project
from warpsmith.temporary import TemporaryFolder

_SECONDS = 10.0


def check_languages(survey: Survey) -> Iterator[DoctorRow]:
    """Report what each language lacks.

    If no language serves a kind of target, every language of that kind stops it.
    """
    all_languages = [languages.get(name) for name in languages.names()]
    served = {kind for language in all_languages for kind in _ready(survey, language)}
    for language in all_languages:
        yield _language(survey, language, served)


def check_cores(survey: Survey) -> Iterator[DoctorRow]:
    """Report the processor and the number of usable cores."""
    yield DoctorRow(
        name="processor", state="ok", found=f"{system.processor_model()}, {system.usable_cores()} cores"
    )


def check_openmp(survey: Survey) -> Iterator[DoctorRow]:
    """Report whether the C++ compiler supports OpenMP."""
    compiler = system.find_cxx_compiler()
    if compiler is None:
        return  # The row of the language reports it.
    flags = ["-fopenmp", "-shared", "-fPIC", "-include", "omp.h", "-x", "c++", os.devnull]
    with TemporaryFolder() as folder:
        result = tool.run_tool([*compiler, *flags, "-o", Path(folder) / "openmp.so"], _SECONDS)
    if result.code == 0:
        yield DoctorRow(name="OpenMP", state="ok", found=f"`{' '.join(compiler)}` builds with OpenMP")
        return
    error = next((line for line in result.output.splitlines() if "error" in line), f"exit code {result.code}")
    yield DoctorRow(
        name="OpenMP",
        state="missing",
        found=f"`{' '.join(compiler)} -fopenmp` fails: {error}",
        means="`start`, `ceiling` and `judge` cannot build for the CPU",
        fix="Install the compiler's OpenMP library (Debian: `libgomp1` for g++, `libomp-dev` for clang).",
        stops=("cpu",),
    )


def check_cpu_measurement(survey: Survey) -> Iterator[DoctorRow]:
    """Report whether the CPU's ceilings and noise were measured."""
    if survey.project is None:
        return
    try:
        target = hardware.read_target_page(survey.project, "cpu").target
    except (BadEntry, Misuse) as error:
        yield DoctorRow(name="page", state="missing", found=str(error), stops=("cpu",))
        return
    yield measurement_row(survey.project, target, "took 20 s on two cores, and needs an idle machine")


def measurement_row(project: Project, target: Target, costs: str) -> DoctorRow:
    """Report whether ceilings and noise were measured on this machine, which is a device of this target.

    Args:
        project: where measurements are kept.
        target: the target.
        costs: what a measurement needs, for the row.

    Raises:
        MachineLacks: the machine is not such a device.
    """
    try:
        measurement = measurement_store.load_measurement(project, identity.identify_machine(target))
    except CorruptRecord as error:
        return DoctorRow(name="ceilings and noise", state="missing", found=str(error), stops=(target.kind,))
    if measurement is None:
        means = f"`warpsmith start` measures them first; that {costs}"
        return DoctorRow(
            name="ceilings and noise", state="gap", found="not measured on this machine yet", means=means
        )
    noise = "" if measurement.noise else ", noise not measured"
    return DoctorRow(name="ceilings and noise", state="ok", found=f"measured {measurement.measured}{noise}")


def _ready(survey: Survey, language: Language) -> list[Kind]:
    """Return the kinds of target on this machine that a language can be timed on."""
    return [kind for kind in survey.kinds if kind in language.targets and language.missing(kind) is None]


def _language(survey: Survey, language: Language, served: set[Kind]) -> DoctorRow:
    ready = _ready(survey, language)
    version = _version(survey, language)
    if ready:
        return DoctorRow(name=language.name, state="ok", found=version)
    usable = [kind for kind in survey.kinds if kind in language.targets]
    if not usable:
        gap = language.missing("cpu")
        means = "" if gap else "with `--target cpu`, it shows whether a version is correct, but not how fast it is"
        if not gap and isinstance(language, ReplaysLaunches):
            means += "; `start --port` judges versions for devices that are not here, by interpreter and compiler"
        finding = gap or f"{version}, no device that it can be timed on"
        return DoctorRow(name=language.name, state="gap", found=finding, means=means)
    return DoctorRow(
        name=language.name,
        state="missing",
        found=language.missing(usable[0]) or "",
        means="its versions cannot be judged on this machine",
        stops=tuple(kind for kind in usable if kind not in served),
    )


def _version(survey: Survey, language: Language) -> str:
    """Return the version of the package with the name of the language, else of the compiler."""
    compiler = system.find_cxx_compiler() if "cpu" in language.targets else None
    if compiler is None:
        return survey.version(language.name) or "ready"
    return tool.run_tool([*compiler, "--version"], _SECONDS).output.partition("\n")[0]
