from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpsmith import project as projects
from warpsmith.core.hardware import Ceiling, Measurement, Target
from warpsmith.errors import CorruptRecord, MachineLacks
from warpsmith.lab.machine import identity, measurement_store, system
from warpsmith.project import Project

CPU = Target(id="cpu", name="Host CPU", kind="cpu", vendor="any", architecture="any", isa="any", figures={})
H200 = Target(
    id="h200",
    name="NVIDIA H200 SXM",
    kind="gpu",
    vendor="NVIDIA",
    architecture="Hopper",
    isa="sm_90a",
    aliases=("NVIDIA H200",),
    figures={},
)
GPU = identity.Gpu(name="NVIDIA H200", uuid="GPU-1", driver="580.1", clocks={"sm": 1980, "memory": 3201})


@pytest.fixture
def looked_up_anew() -> Iterator[None]:
    identity._libraries.cache_clear()
    yield
    identity._libraries.cache_clear()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs/knowledge")


def measurement(value: float = 30.0) -> Measurement:
    ceiling = Ceiling(value=value, unit="GB/s", best=value, spread=0.01, how="a test")
    return Measurement(
        machine=identity.identify_machine(CPU), measured="2026-11-21 14:05", ceilings={"copy": ceiling}
    )


def test_the_id_is_stable_and_the_facts_are_there() -> None:
    first, second = identity.identify_machine(CPU), identity.identify_machine(CPU)
    assert first == second
    assert first.id.startswith("cpu-")
    assert len(first.id) == len("cpu-") + 10
    assert first.processor == f"{first.device}, {system.usable_cores()} cores"
    assert first.libraries["python"] == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.usefixtures("looked_up_anew")
def test_what_compiles_is_named_and_what_is_absent_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {
        "torch": "2.11.0+cu130",
        "cuda-core": "1.2.2",
        "cuda-bindings": "13.5.0",
        "nvidia-cuda-nvrtc": "13.0.88",
    }
    there |= {"nvidia-cutlass-dsl": "4.8.1", "cuda-tile": "1.7.0", "nvidia-cuda-tileiras": "13.4.92"}

    def version(name: str) -> str:
        if name not in there:
            raise identity.PackageNotFoundError(name)
        return there[name]

    monkeypatch.setattr(identity, "version", version)
    monkeypatch.setattr(system, "find_cxx_compiler", lambda: None)
    assert {
        name: found for name, found in identity.identify_machine(CPU).libraries.items() if name != "python"
    } == there


@pytest.mark.usefixtures("looked_up_anew")
def test_libraries_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(identity, "_output", lambda command: asked.append(command) or "made up 1.0")
    monkeypatch.setattr(system, "find_cxx_compiler", lambda: ["c++"])
    first = identity.identify_machine(CPU).libraries
    first["torch"] = "changed"
    assert identity.identify_machine(CPU).libraries["torch"] != "changed"
    assert asked.count(["c++", "--version"]) == 1
    monkeypatch.setattr(system, "find_cxx_compiler", lambda: ["g++"])
    assert identity.identify_machine(CPU).libraries["compiler"] == "made up 1.0"
    assert asked.count(["g++", "--version"]) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("processor_model", lambda: "Other CPU"), ("usable_cores", lambda: 4096)]
)
def test_the_id_changes_with_processor_and_cores(monkeypatch: pytest.MonkeyPatch, name: str, value) -> None:
    before = identity.identify_machine(CPU).id
    monkeypatch.setattr(system, name, value)
    assert identity.identify_machine(CPU).id != before


@pytest.mark.parametrize("change", [{"uuid": "GPU-2"}, {"driver": "590.0"}])
def test_the_id_of_a_gpu_changes_with_uuid_and_driver(monkeypatch: pytest.MonkeyPatch, change) -> None:
    monkeypatch.setattr(identity, "visible_gpu", lambda: GPU)
    before = identity.identify_machine(H200)
    assert (before.device, before.uuid, before.clocks["sm"]) == ("NVIDIA H200", "GPU-1", 1980)
    monkeypatch.setattr(identity, "visible_gpu", lambda: GPU.model_copy(update=change))
    assert identity.identify_machine(H200).id != before.id


def test_clocks_as_read_leave_the_id_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "visible_gpu", lambda: GPU)
    before = identity.identify_machine(H200).id
    monkeypatch.setattr(identity, "visible_gpu", lambda: GPU.model_copy(update={"clocks": {"sm": 345}}))
    assert identity.identify_machine(H200).id == before


def test_no_gpu_and_a_variant_of_the_gpu_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "visible_gpu", lambda: None)
    with pytest.raises(MachineLacks, match="`h200` needs one"):
        identity.identify_machine(H200)
    monkeypatch.setattr(identity, "visible_gpu", lambda: GPU.model_copy(update={"name": "NVIDIA H200 NVL"}))
    with pytest.raises(MachineLacks, match="`NVIDIA H200 NVL`, which is not `h200`"):
        identity.identify_machine(H200)


def test_hidden_devices_are_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "_gpu_of_nvml", lambda chosen: GPU)
    monkeypatch.setattr(identity, "_gpu_of_smi", lambda chosen: GPU)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert identity.visible_gpu() is None
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert identity.visible_gpu() == GPU


def test_nvml_is_asked_for_the_visible_device(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    nvml = SimpleNamespace(
        NVMLError=RuntimeError,
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: asked.append(index) or "handle",
        nvmlDeviceGetHandleByUUID=lambda uuid: asked.append(uuid) or "handle",
        nvmlDeviceGetName=lambda handle: GPU.name,
        nvmlDeviceGetUUID=lambda handle: GPU.uuid,
        nvmlSystemGetDriverVersion=lambda: GPU.driver,
        nvmlDeviceGetClockInfo=lambda handle, kind: {1: 1980, 2: 3201}[kind],
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    for visible in ("3,1", "GPU-abc"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert identity.visible_gpu() == GPU
    assert asked == [3, "GPU-abc"]


def test_nvidia_smi_stands_in_for_nvml(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'NVIDIA H200, GPU-1, 580.1, 1980, [N/A]'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert identity.visible_gpu() == GPU.model_copy(update={"clocks": {"sm": 1980}})
    smi.write_text("#!/bin/sh\nexit 9\n")
    assert identity.visible_gpu() is None


@pytest.mark.parametrize(
    ("group", "files", "quota"),
    [
        ("0::/a/b\n", {"a/cpu.max": "150000 100000", "a/b/cpu.max": "max 100000"}, [1.5]),
        ("0::/\n", {"cpu.max": "400000 100000"}, [4.0]),
        (
            "4:memory:/x\n1:cpu,cpuacct:/y\n0::/\n",
            {"cpu/y/cpu.cfs_quota_us": "50000", "cpu/y/cpu.cfs_period_us": "100000"},
            [0.5],
        ),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, []),
    ],
)
def test_quotas_of_control_groups(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, group: str, files: dict[str, str], quota: list[float]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    (tmp_path / "self").write_text(group)
    monkeypatch.setattr(system, "_CGROUPS", tmp_path)
    monkeypatch.setattr(system, "_OWN_GROUPS", tmp_path / "self")
    assert list(system._quotas()) == quota


def test_usable_cores_are_the_lower_of_affinity_and_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    for quotas, cores in (([], 8), ([2.5, 16.0], 2), ([0.5], 1)):
        monkeypatch.setattr(system, "_quotas", lambda quotas=quotas: iter(quotas))
        assert system.usable_cores() == cores


def test_caches_count_once_however_many_cores_share_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    caches = {
        "index0": ("1", "Data", "32K"),
        "index2": ("2", "Unified", "512K"),
        "index3": ("3", "Unified", "32M"),
    }
    for core in (0, 1):
        for index, (level, kind, size) in caches.items():
            folder = tmp_path / f"cpu{core}/cache/{index}"
            folder.mkdir(parents=True)
            shared = "0-1" if level == "3" else str(core)
            facts = {"level": level, "type": kind, "size": size, "shared_cpu_list": shared}
            for name, value in facts.items():
                (folder / name).write_text(f"{value}\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr(system, "_CPUS", tmp_path)
    assert system.cache_bytes() == 32 * 2**20 + 2 * 512 * 2**10
    assert system.core_cache_bytes() == 512 * 2**10, "the larger of the two that a core has for itself"
    monkeypatch.setattr(system, "_CPUS", tmp_path / "none")
    assert system.cache_bytes() is None
    assert system.core_cache_bytes() is None


def test_a_measurement_comes_back_as_it_was_saved(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(projects, "SHIPPED", tmp_path / "shipped")  # this very machine may have a shipped one
    kept = measurement()
    assert measurement_store.load_measurement(project, kept.machine) is None
    path = measurement_store.save_measurement(project, kept)
    assert path == measurement_store.measurement_path(project, kept.machine)
    assert measurement_store.load_measurement(project, kept.machine) == kept


def test_the_projects_own_measurement_comes_before_a_shipped_one(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(projects, "SHIPPED", tmp_path / "shipped")
    shipped, own = measurement(10.0), measurement(20.0)
    there = Project(*[tmp_path / "shipped"] * 3, knowledge=tmp_path / "shipped/docs/knowledge")
    measurement_store.save_measurement(there, shipped)
    assert measurement_store.load_measurement(project, own.machine) == shipped
    measurement_store.save_measurement(project, own)
    assert measurement_store.load_measurement(project, own.machine) == own


@pytest.mark.parametrize("content", ["", "{}", "not json", '{"machine": NaN}'])
def test_a_corrupt_measurement_is_named(project: Project, content: str) -> None:
    here = identity.identify_machine(CPU)
    path = measurement_store.measurement_path(project, here)
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(CorruptRecord, match=f"{path.name} is not a valid measurement"):
        measurement_store.load_measurement(project, here)


def test_a_measurement_of_another_machine_is_refused(project: Project) -> None:
    kept = measurement()
    other = kept.machine.model_copy(update={"id": "cpu-0000000000"})
    path = measurement_store.save_measurement(project, kept)
    path.rename(measurement_store.measurement_path(project, other))
    with pytest.raises(CorruptRecord, match=f"belongs to the machine `{kept.machine.id}`"):
        measurement_store.load_measurement(project, other)
