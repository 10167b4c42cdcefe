"""The machine at hand: what identifies it, what it runs, and where its measurement is kept."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

from warpsmith.core.base import Model
from warpsmith.core.hardware import Machine, Target
from warpsmith.errors import MachineLacks
from warpsmith.lab.machine import system

_LIBRARIES = (
    "torch",
    "triton",
    "numpy",
    # what compiles CUDA C++, CuTe DSL and cuTile
    "cuda-bindings",
    "cuda-core",
    "nvidia-cuda-nvrtc",
    "nvidia-cutlass-dsl",
    "apache-tvm-ffi",
    "cuda-tile",
    "nvidia-cuda-tileiras",
    "nvidia-cuda-nvcc",
    "nvidia-nvvm",
)
"""Packages whose releases a measured figure names."""
_QUERY = ("name", "uuid", "driver_version", "clocks.sm", "clocks.mem")


class Gpu(Model):
    """What the driver says of the first GPU that this process may use."""

    name: str
    """The driver's name of it."""
    uuid: str
    """Its UUID."""
    driver: str
    """The driver's version."""
    clocks: dict[str, int]
    """MHz as read: `sm`, `memory`."""


def identify_machine(target: Target) -> Machine:
    """The machine at hand, as a device of this kind; its id changes with device, driver, processor and cores.

    Raises:
        MachineLacks: the target is a GPU and this machine has none, or another one.
    """
    processor = f"{system.processor_model()}, {system.usable_cores()} cores"
    found = _expected_gpu(target) if target.kind == "gpu" else None
    device = found.name if found else system.processor_model()
    facts = (device, found.uuid if found else "", found.driver if found else "", processor)
    return Machine(
        id=f"{target.id}-{hashlib.sha256('|'.join(facts).encode()).hexdigest()[:10]}",
        target=target.id,
        device=device,
        uuid=found.uuid if found else None,
        driver=found.driver if found else None,
        clocks=found.clocks if found else {},
        processor=processor,
        libraries=dict(_libraries(tuple(system.find_cxx_compiler() or ()))),
    )


def visible_gpu() -> Gpu | None:
    """The first GPU that `CUDA_VISIBLE_DEVICES` leaves visible, as NVIDIA's driver reports it; None: none."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    if chosen in ("", "-1"):
        return None
    try:
        import pynvml  # noqa: F401
    except ImportError:
        return _gpu_of_smi(chosen)
    return _gpu_of_nvml(chosen)


def _expected_gpu(target: Target) -> Gpu:
    found = visible_gpu()
    if found is None:
        raise MachineLacks(f"This machine has no GPU that NVIDIA's driver reports; `{target.id}` needs one.")
    if not matches_target(target, found.name):
        raise MachineLacks(f"This machine's GPU is `{found.name}`, which is not `{target.id}`; name its target.")
    return found


def matches_target(target: Target, device: str) -> bool:
    """Whether a driver's device name is the target's: equal to an alias, so that variants stay apart."""
    return device.casefold() in {name.casefold() for name in (*target.aliases, target.name)}


@functools.cache
def _libraries(compiler: tuple[str, ...]) -> dict[str, str]:
    """Their versions, and the compiler's; looked up once, since each judgement names them."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    said = _output([*compiler, "--version"]) if compiler else None
    if said:
        found["compiler"] = said.splitlines()[0]
    return found


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
    said = _output(
        ["nvidia-smi", f"--id={chosen}", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"]
    )
    fields = [field.strip() for field in said.splitlines()[0].split(",")] if said else []
    if len(fields) != len(_QUERY):
        return None
    name, uuid, driver, *clocks = fields
    read = dict(zip(("sm", "memory"), clocks, strict=True))
    return Gpu(
        name=name,
        uuid=uuid,
        driver=driver,
        clocks={clock: int(value) for clock, value in read.items() if value.isdigit()},
    )


def _output(command: list[str]) -> str | None:
    """What a short command prints; None where it is missing, fails or takes longer than ten seconds."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
