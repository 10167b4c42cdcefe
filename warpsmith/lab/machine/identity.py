"""Identity of this machine: its device, driver, processor and libraries."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

from warpsmith import languages
from warpsmith.core.base import Model
from warpsmith.core.hardware import Machine, Target
from warpsmith.errors import MachineLacks
from warpsmith.lab.machine import system
from warpsmith.languages import support

_LIBRARIES = ("torch", "numpy")
"""Packages whose versions every measured figure records, in addition to those of the languages."""
_QUERY = ("name", "uuid", "driver_version", "clocks.sm", "clocks.mem")


class Gpu(Model):
    """First GPU that this process may use, as the driver reports it."""

    name: str
    """Name of the device."""
    uuid: str
    """UUID of the device."""
    driver: str
    """Version of the driver."""
    clocks: dict[str, int]
    """Current clocks in MHz: `sm` and `memory`."""


def identify_machine(target: Target) -> Machine:
    """Identify this machine as a device of this target.

    The id changes with the device, driver, processor and number of cores.

    Raises:
        MachineLacks: the target is a GPU, and this machine has none or a different one.
    """
    processor = f"{system.processor_model()}, {system.usable_cores()} cores"
    gpu = require_gpu(target) if target.kind == "gpu" else None
    device = gpu.name if gpu else system.processor_model()
    facts = (device, gpu.uuid if gpu else "", gpu.driver if gpu else "", processor)
    return Machine(
        id=f"{target.id}-{hashlib.sha256('|'.join(facts).encode()).hexdigest()[:10]}",
        target=target.id,
        device=device,
        uuid=gpu.uuid if gpu else None,
        driver=gpu.driver if gpu else None,
        clocks=gpu.clocks if gpu else {},
        processor=processor,
        libraries=dict(_libraries(tuple(system.find_cxx_compiler() or ()))),
    )


def visible_gpu() -> Gpu | None:
    """Return the first GPU that `CUDA_VISIBLE_DEVICES` leaves visible, as NVIDIA's driver reports it, or None."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    if chosen in ("", "-1"):
        return None
    try:
        import pynvml  # noqa: F401
    except ImportError:
        return _gpu_of_smi(chosen)
    return _gpu_of_nvml(chosen)


def list_gpus() -> list[tuple[str, str, str]]:
    """List index, UUID and name of every GPU that NVIDIA's driver reports."""
    try:
        import pynvml
    except ImportError:
        rows = (_output(["nvidia-smi", "--query-gpu=index,uuid,name", "--format=csv,noheader"]) or "").splitlines()
        fields = [tuple(part.strip() for part in row.split(",", 2)) for row in rows]
        return [(row[0], row[1], row[2]) for row in fields if len(row) == 3]
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return [
            (str(index), pynvml.nvmlDeviceGetUUID(handle), pynvml.nvmlDeviceGetName(handle))
            for index, handle in enumerate(handles)
        ]
    except pynvml.NVMLError:
        return []


def require_gpu(target: Target) -> Gpu:
    """Return the visible GPU of a target.

    Raises:
        MachineLacks: this machine has none or a different one, or the target is AMD's.
    """
    if target.vendor == "AMD":
        raise MachineLacks(support.amd_advice(target.id))
    gpu = visible_gpu()
    if gpu is None:
        raise MachineLacks(f"This machine has no GPU that NVIDIA's driver reports; `{target.id}` needs one.")
    if not matches_target(target, gpu.name):
        raise MachineLacks(
            f"This machine's GPU is `{gpu.name}`, which is not `{target.id}`; name the target of this GPU."
        )
    return gpu


def matches_target(target: Target, device: str) -> bool:
    """Return whether a driver's device name is the target's name or an alias; variants are different targets."""
    return device.casefold() in {name.casefold() for name in (*target.aliases, target.name)}


@functools.cache
def _libraries(compiler: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of the libraries and the compiler; cached, since each judgement records them."""
    versions = {"python": platform.python_version()}
    compilers = [package for name in languages.names() for package in languages.get(name).packages]
    for name in dict.fromkeys((*_LIBRARIES, *compilers)):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    output = _output([*compiler, "--version"]) if compiler else None
    if output:
        versions["compiler"] = output.splitlines()[0]
    return versions


def _gpu_of_nvml(chosen: str) -> Gpu | None:
    import pynvml

    try:
        pynvml.nvmlInit()
        by_index = chosen.isdigit()
        handle = (
            pynvml.nvmlDeviceGetHandleByIndex(int(chosen))
            if by_index
            else pynvml.nvmlDeviceGetHandleByUUID(chosen)
        )
        clocks = {"sm": pynvml.NVML_CLOCK_SM, "memory": pynvml.NVML_CLOCK_MEM}
        return Gpu(
            name=pynvml.nvmlDeviceGetName(handle),
            uuid=pynvml.nvmlDeviceGetUUID(handle),
            driver=pynvml.nvmlSystemGetDriverVersion(),
            clocks={name: pynvml.nvmlDeviceGetClockInfo(handle, kind) for name, kind in clocks.items()},
        )
    except pynvml.NVMLError:
        return None


def _gpu_of_smi(chosen: str) -> Gpu | None:
    output = _output(
        ["nvidia-smi", f"--id={chosen}", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"]
    )
    fields = [field.strip() for field in output.splitlines()[0].split(",")] if output else []
    if len(fields) != len(_QUERY):
        return None
    name, uuid, driver, *clocks = fields
    by_name = dict(zip(("sm", "memory"), clocks, strict=True))
    return Gpu(
        name=name,
        uuid=uuid,
        driver=driver,
        clocks={clock: int(value) for clock, value in by_name.items() if value.isdigit()},
    )


def _output(command: list[str]) -> str | None:
    """Return what a short command prints; None if it is missing, fails or takes longer than ten seconds."""
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip() or None
