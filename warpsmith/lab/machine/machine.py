"""The machine at hand: what identifies it, what it runs, and where its measurement is kept."""

from __future__ import annotations

import functools
import hashlib
import math
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.core.hardware import Machine, Measurement, Target
from warpsmith.core.problem import problem
from warpsmith.errors import CorruptRecord, MachineLacks
from warpsmith.project import Project

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
_CPUS = Path("/sys/devices/system/cpu")
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
_SIZES = {"K": 2**10, "M": 2**20, "G": 2**30}
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


def machine(target: Target) -> Machine:
    """The machine at hand, as a device of this kind; its id changes with device, driver, processor and cores.

    Raises:
        MachineLacks: the target is a GPU and this machine has none, or another one.
    """
    processor = f"{processor_model()}, {usable_cores()} cores"
    found = _expected_gpu(target) if target.kind == "gpu" else None
    device = found.name if found else processor_model()
    facts = (device, found.uuid if found else "", found.driver if found else "", processor)
    return Machine(
        id=f"{target.id}-{hashlib.sha256('|'.join(facts).encode()).hexdigest()[:10]}",
        target=target.id,
        device=device,
        uuid=found.uuid if found else None,
        driver=found.driver if found else None,
        clocks=found.clocks if found else {},
        processor=processor,
        libraries=dict(_libraries(tuple(compiler() or ()))),
    )


def measurement_path(project: Project, machine: Machine) -> Path:
    """Where the project keeps what was measured on this machine."""
    return project.measurements / f"{machine.id}.json"


def find_measurement(project: Project, machine: Machine) -> Path | None:
    """The machine's measurement on disk: the project's own, else a shipped one, else None."""
    name = measurement_path(project, machine).name
    places = [layer / "hardware" / "measured" / name for layer in project.knowledge_layers]
    return next((place for place in places if place.is_file()), None)


def load_measurement(project: Project, machine: Machine) -> Measurement | None:
    """What was measured on this machine; None where nothing was.

    Raises:
        CorruptRecord: the file does not validate, or is about another machine.
    """
    path = find_measurement(project, machine)
    if path is None:
        return None
    try:
        measurement = Measurement.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise CorruptRecord(
            f"{path} is no valid measurement ({problem(error)}); remove it and run `warpsmith ceiling`."
        ) from error
    if measurement.machine.id != machine.id:
        raise CorruptRecord(
            f"{path} is about the machine `{measurement.machine.id}`; remove it and run `warpsmith ceiling`."
        )
    return measurement


def save_measurement(project: Project, measurement: Measurement) -> Path:
    """Keep a measurement in the project, in place of an earlier one of the same machine."""
    path = measurement_path(project, measurement.machine)
    files.write(path, measurement.model_dump_json(indent=2) + "\n")
    return path


def gpu() -> Gpu | None:
    """The first GPU that `CUDA_VISIBLE_DEVICES` leaves visible, as NVIDIA's driver reports it; None: none."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    if chosen in ("", "-1"):
        return None
    try:
        import pynvml  # noqa: F401
    except ImportError:
        return _gpu_of_smi(chosen)
    return _gpu_of_nvml(chosen)


def processor_model() -> str:
    """The processor's model name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next((name for name in names if name), platform.processor() or platform.machine())


def usable_cores() -> int:
    """Cores that this process may keep busy: its affinity, or its control groups' quota where lower."""
    quota = min(_quotas(), default=math.inf)
    return max(1, int(min(len(os.sched_getaffinity(0)), quota)))


def cache_bytes() -> int | None:
    """Bytes of all distinct caches from the second level up that the usable cores reach; None: not known."""
    caches: dict[tuple[str, str], int] = {}
    for core in os.sched_getaffinity(0):
        for index in (_CPUS / f"cpu{core}" / "cache").glob("index[0-9]*"):
            try:
                level, kind, size, shared = (
                    (index / name).read_text().strip() for name in ("level", "type", "size", "shared_cpu_list")
                )
            except OSError:
                continue
            if int(level) >= 2 and kind != "Instruction":
                caches[level, shared] = int(size[:-1]) * _SIZES[size[-1]]
    return sum(caches.values()) or None


def compiler() -> list[str] | None:
    """The C++ compiler: `$CXX` with its arguments, else the first one on PATH; None: there is none."""
    chosen = shlex.split(os.environ.get("CXX", ""))
    candidates = [chosen] if chosen else [["c++"], ["g++"], ["clang++"]]
    return next((command for command in candidates if shutil.which(command[0])), None)


def _expected_gpu(target: Target) -> Gpu:
    found = gpu()
    if found is None:
        raise MachineLacks(f"This machine has no GPU that NVIDIA's driver reports; `{target.id}` needs one.")
    if not is_named(target, found.name):
        raise MachineLacks(f"This machine's GPU is `{found.name}`, which is not `{target.id}`; name its target.")
    return found


def is_named(target: Target, device: str) -> bool:
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


def _quotas() -> Iterator[float]:
    """Cores that each control group above this process grants, under either version of the interface."""
    try:
        groups = [line.split(":", 2) for line in _OWN_GROUPS.read_text().splitlines()]
    except OSError:
        return
    for _, controllers, group in groups:
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = _CGROUPS / "cpu" if controllers else _CGROUPS
        own = top / group.strip("/")
        for folder in (own, *own.parents):
            if folder.is_relative_to(top):
                yield from _quota(folder)


def _quota(folder: Path) -> Iterator[float]:
    try:
        if (folder / "cpu.max").is_file():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
    except (OSError, ValueError):
        return
    if quota.isdigit() and int(period) > 0:
        yield int(quota) / int(period)
