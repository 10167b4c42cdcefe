"""Compilation of a version for targets that are not here, and the record of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warpsmith import files, languages
from warpsmith.core.base import this_minute
from warpsmith.core.definition import Definition
from warpsmith.core.port.check import LaunchFigures
from warpsmith.core.text import Tell
from warpsmith.errors import Misuse
from warpsmith.lab.machine import hardware, identity, provenance
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.languages.base import BuildFailed, Listing, Relaunches
from warpsmith.port import features
from warpsmith.port.advice import advise_constants
from warpsmith.port.devices import PortDevice
from warpsmith.port.models import Numerics, Outcome, PortedKernel, PortRecord, PortTarget
from warpsmith.port.versions import PortVersion
from warpsmith.profiling.assembly import inspect, notices
from warpsmith.profiling.assembly.models import CompiledKernel, kernel_occupancy
from warpsmith.profiling.assembly.notices import KernelContext
from warpsmith.project import Project
from warpsmith.temporary import TemporaryFolder

_STAGES = re.compile(r"num_stages (\d+)")
_OPTIONS = re.compile(r", num_warps \d+.*$")
_REFUSAL = "will not launch"
_ERROR_LINES = 6
_TEMPORARY = re.compile(r"/tmp/\S+")
_NOISE = re.compile(r"=+$|ld\.lld:|please share the reproducer|`ptxas` stderr|.*LLD failed to link")


@dataclass(frozen=True)
class PortRequest:
    """A version and the devices to compile it for."""

    project: Project
    """Project of the version."""
    file: DefinitionFile
    """Definition of the operator."""
    solution: PortVersion
    """The version or draft."""
    origin: PortDevice
    """Device that it was written for."""
    devices: Sequence[PortDevice]
    """Targets."""
    accepted_on: str | None = None
    """Device kind on which it stands accepted."""


def require_portable(language: str) -> Relaunches:
    """Return a language that compiles for devices of several vendors; raises Misuse for another one."""
    compiler = languages.get(language)
    if not isinstance(compiler, Relaunches):
        portable = [name for name in languages.names() if isinstance(languages.get(name), Relaunches)]
        raise Misuse(f"Versions in `{language}` are not ported; `warpsmith port` compiles: {', '.join(portable)}.")
    return compiler


def compile_port(request: PortRequest, numerics: Numerics, tell: Tell) -> PortRecord:
    """Compile a version for its origin and for every target, and return the record.

    Raises:
        BuildFailed: it does not compile for its origin.
        MachineLacks: a compiler is missing.
        Misuse: its language does not compile for other devices.
    """
    tell(f"{request.solution.name}: compiling for {request.origin.arch}")
    own, origin = _compile_target(request, request.origin, ())
    if origin.outcome == "does not compile":
        raise BuildFailed(f"{request.solution.path} does not compile for {request.origin.arch}: {origin.error}")
    targets = []
    for device in request.devices:
        if device == request.origin:
            targets.append(origin)
            continue
        tell(f"{request.solution.name}: compiling for {device.arch}")
        targets.append(_compile_target(request, device, own)[1])
    machine = identity.identify_machine(hardware.read_target_page(request.project, "cpu").target)
    compilers = ("python", "torch", *languages.get(request.solution.language).packages)
    return PortRecord(
        definition=request.file.definition.name,
        definition_sha256=request.file.sha256,
        solution=request.solution.name,
        solution_sha256=files.file_sha256(request.solution.path),
        accepted_on=request.accepted_on,
        lab_sha256=provenance.lab_sha256(),
        libraries={name: machine.libraries[name] for name in compilers if name in machine.libraries},
        made=this_minute(),
        numerics=numerics,
        origin=origin,
        targets=tuple(targets),
    )


def _compile_target(
    request: PortRequest, device: PortDevice, own: Sequence[CompiledKernel]
) -> tuple[list[CompiledKernel], PortTarget]:
    """Compile for one device; return its kernels and the target of the record.

    Args:
        request: the version.
        device: the device.
        own: the version compiled for its origin; empty while the origin itself is compiled.
    """
    compiler, definition = require_portable(request.solution.language), request.file.definition
    source = request.solution.path
    text = f"{source.read_text(errors='replace')} {' '.join(_dtypes(request.file))}"
    facts = {
        "target": device.target,
        "arch": device.arch,
        "warp_size": device.limits.warp_size if device.limits else 64 if device.arch.startswith("gfx") else 32,
        "most_warps": device.limits.warps if device.limits else None,
        "lacks": features.missing_features(request.origin.arch, device.arch),
        "losses": features.feature_losses(
            request.origin.arch, device.arch, text, own, replaced=compiler.replaces_instructions
        ),
    }
    with TemporaryFolder() as folder:
        try:
            workloads = definition.select("representative")
            settings = compiler.assemble_relaunches(source, definition, workloads, device.arch, Path(folder))
        except BuildFailed as error:
            refusal = {**facts, "outcome": "does not compile", "error": first_lines(error)}
            return [], PortTarget.model_validate(refusal)
        kernels = [
            [inspect.read_assembly(each, source, request.project) for each in listing] for listing in settings
        ]
        notes = describe_notices(kernels[0], settings[0], request.solution.language, device.arch, definition)
    ported = tuple(_ported_kernel(kernel, kernels[1:], device) for kernel in kernels[0])
    fitting = {**facts, "outcome": _outcome(ported), "kernels": ported, "notes": notes}
    return kernels[0], PortTarget.model_validate(fitting)


def _ported_kernel(
    kernel: CompiledKernel, changed: Sequence[Sequence[CompiledKernel]], device: PortDevice
) -> PortedKernel:
    own = launch_figures(kernel, device)
    variants = [
        figures
        for setting in changed
        for other in setting
        if (other.name, _specialisation(other)) == (kernel.name, _specialisation(kernel))
        and set(other.workloads) & set(kernel.workloads)
        and (figures := launch_figures(other, device)) != own
        and (figures.num_warps, figures.num_stages) != (own.num_warps, own.num_stages)
    ]
    variants = list(dict.fromkeys(variants))
    return PortedKernel(
        name=kernel.name,
        workloads=kernel.workloads,
        variant=kernel.variant,
        own=own,
        changed=tuple(variants),
        instructions=kernel.instructions,
        counts=kernel.counts,
        advice=tuple(advise_constants(own, variants, device.limits.warps if device.limits else None)),
    )


def launch_figures(kernel: CompiledKernel, device: PortDevice) -> LaunchFigures:
    """Return the figures of a compiled kernel on a device."""
    occupancy = kernel_occupancy(kernel, device.limits) if device.limits else None
    stages = _STAGES.search(kernel.variant)
    widths: Counter[int] = notices.access_widths(kernel, "global loads")
    return LaunchFigures(
        num_warps=kernel.block_warps or 1,
        num_stages=int(stages[1]) if stages else None,
        registers=kernel.resources.registers or 0,
        spill_bytes=kernel.resources.spill_bytes or 0,
        shared_bytes=kernel.resources.shared_bytes or 0,
        resident_warps=occupancy.warps if occupancy else None,
        limit=occupancy.limit if occupancy else "",
        load_bits=max(widths, key=lambda bits: bits * widths[bits], default=None),
        obstacle=next((note for note in kernel.resources.notes if _REFUSAL in note), ""),
    )


def _outcome(kernels: Sequence[PortedKernel]) -> Outcome:
    if any(kernel.own.obstacle for kernel in kernels):
        return "needs other constants"
    return "spills" if any(kernel.own.spill_bytes for kernel in kernels) else "transfers"


def describe_notices(
    kernels: Sequence[CompiledKernel],
    listings: Sequence[Listing],
    language: str,
    arch: str,
    definition: Definition,
) -> list[str]:
    """Return the notices, each with the kernels that it is true of."""
    contexts = [
        KernelContext(kernel, listing, language, arch, definition)
        for kernel, listing in zip(kernels, listings, strict=True)
    ]
    lines = []
    for notice in notices.find_notices(contexts):
        names = dict.fromkeys(kernels[number - 1].name for number in notice.kernels)
        lines.append(f"{', '.join(names)}: {notice.text}")
    return lines


def _dtypes(file: DefinitionFile) -> set[str]:
    """Return the types of all tensors at all workloads."""
    definition = file.definition
    specs = [*definition.tensor_inputs.values(), *definition.outputs.values()]
    return {definition.dtype(spec, workload) for workload in definition.workloads for spec in specs}


def _specialisation(kernel: CompiledKernel) -> str:
    """Return what a kernel was compiled for, without its launch options."""
    return _OPTIONS.sub("", kernel.variant)


def first_lines(error: BuildFailed) -> str:
    """Return the compiler's first lines, without the fence around them, temporary files and advice."""
    lines = [line.strip() for line in str(error).splitlines()[1:] if line.strip() not in ("", "```", "^")]
    plain = [_TEMPORARY.sub("...", line) for line in lines if not _NOISE.match(line)]
    return " | ".join(plain[:_ERROR_LINES])[:600] or str(error)[:600]
