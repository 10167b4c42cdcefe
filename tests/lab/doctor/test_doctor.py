"""The doctor: what each check says of machines that have or lack something, and the answer."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from warpsmith import counter_access, languages
from warpsmith import packages as requirements
from warpsmith import project as projects
from warpsmith.core.hardware import Ceiling, Measurement, Noise
from warpsmith.core.trust import Check
from warpsmith.errors import MachineLacks
from warpsmith.lab.doctor import checks, installation
from warpsmith.lab.doctor import (
    gpu as doctor_gpu,
)
from warpsmith.lab.doctor import (
    nvml as doctor_nvml,
)
from warpsmith.lab.doctor import (
    packages as doctor_packages,
)
from warpsmith.lab.doctor import (
    targets as doctor_targets,
)
from warpsmith.lab.doctor import (
    tools as doctor_tools,
)
from warpsmith.lab.doctor import (
    trust as doctor_trust,
)
from warpsmith.lab.doctor.models import KINDS, DoctorGroup, DoctorReport, DoctorRow, Readiness
from warpsmith.lab.doctor.nvml import GpuState
from warpsmith.lab.doctor.survey import DoctorCheck as Looks
from warpsmith.lab.doctor.survey import Survey, take_survey
from warpsmith.lab.machine import hardware, identity, measurement_store
from warpsmith.languages.shared.tool import ToolResult
from warpsmith.project import Project

GPU = identity.Gpu(name="NVIDIA H200", uuid="GPU-1", driver="580.1", clocks={"sm": 345})
READ = GpuState(cuda=13000, sm_clock_max=1980, reasons=("idle",), persistence=True, mig=False)
OK = DoctorRow(name="fine", state="ok", found="there")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "warpsmith.toml").write_text("")
    return projects.find_project(tmp_path)


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """`put(name, script)`: a program on a PATH that holds nothing else but the system's own shell tools."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    for name in ("CXX", "CC", "CUDA_VISIBLE_DEVICES", "CLAUDECODE"):
        monkeypatch.delenv(name, raising=False)

    def put(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return put


def has(**packages: str) -> Callable[[str], str | None]:
    """A Python environment with the newest of everything but what is given."""
    given = {name.replace("_", "-"): version for name, version in packages.items()}
    return lambda name: given.get(name, "99.0") or None


def only(check: Looks, here: Survey) -> DoctorRow:
    (row,) = check(here)
    return row


def answer(*rows: DoctorRow) -> DoctorReport:
    return DoctorReport.of([DoctorGroup(name="all", rows=rows)])


# The rule


def test_ready_where_nothing_that_the_loop_would_use_is_missing() -> None:
    found = answer(OK, DoctorRow(name="device", state="gap", found="none", stops=("gpu",)))
    assert (found.answer, found.judges, found.first) == (Readiness.READY, ("cpu",), None)


def test_one_missing_row_makes_it_ready_with_gaps() -> None:
    found = answer(OK, DoctorRow(name="triton", state="missing", found="none", stops=("gpu",)))
    assert (found.answer, found.judges, found.first) == (Readiness.GAPS, ("cpu",), None)


def test_not_ready_where_every_kind_of_target_is_stopped() -> None:
    device = DoctorRow(name="device", state="gap", found="no GPU", stops=("gpu",))
    compiler = DoctorRow(name="cpp", state="missing", found="Install g++.", stops=("cpu",))
    found = answer(device, compiler)
    assert (found.answer, found.judges, found.first) == (Readiness.NOT_READY, (), "Install g++.")


def test_what_stops_most_comes_first() -> None:
    compiler = DoctorRow(name="cpp", state="missing", found="Install g++.", stops=("cpu",))
    torch = DoctorRow(name="judging", state="missing", found="torch is not installed", fix="Run pip.", stops=KINDS)
    assert answer(compiler, torch).first == "Run pip."


def test_a_row_that_is_ok_needs_nothing() -> None:
    with pytest.raises(ValidationError, match="`ok` must have no `fix`"):
        DoctorRow(name="x", state="ok", found="y", stops=("cpu",))


# The checks together


def test_checks_are_made_at_once_and_told_in_order(project: Project) -> None:
    both = threading.Barrier(2, timeout=20)

    def waits(here: Survey) -> list[DoctorRow]:
        return [DoctorRow(name=str(both.wait() * 0), state="ok", found="met")]

    found = checks.run_checks(Survey(project), {"one": (waits, waits), "two": (lambda here: [OK],)})
    assert [(group.name, len(group.rows)) for group in found.groups] == [("one", 2), ("two", 1)]


@pytest.mark.parametrize(
    "error", [MachineLacks("no such device"), OSError("no such device"), ValueError("no such device")]
)
def test_a_check_that_cannot_be_made_is_a_row(project: Project, error: Exception) -> None:
    def fails_to_look(here: Survey) -> list[DoctorRow]:
        raise error

    found = checks.run_checks(Survey(project), {"one": (fails_to_look,)})
    (row,) = found.groups[0].rows
    assert (row.name, row.state, row.found) == (
        "fails to look",
        "missing",
        "could not be checked: no such device",
    )


def test_every_check_stands_in_the_list() -> None:
    listed = {check for group in checks.CHECKS.values() for check in group}
    modules = (doctor_gpu, installation, doctor_targets, doctor_tools, doctor_trust)
    defined = {
        value
        for module in modules
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__
        and not name.startswith("_")
        and list(getattr(value, "__annotations__", {})) == ["survey", "return"]
    }
    assert listed == defined


# Packages


@pytest.mark.parametrize(
    ("version", "bounds", "fits"),
    [
        ("2.13.0+cpu", ">=2.11", True),
        ("2.9.1", ">=2.11", False),
        ("3.11.7", "<3.14,>=3.11", True),
        ("3.14.0rc1", ">=3.11,<3.14", False),
        ("4.8.1", "==4.8.1", True),
        ("4.8.2", "==4.8.1", False),
    ],
)
def test_bounds(version: str, bounds: str, fits: bool) -> None:
    assert doctor_packages.version_fits(version, bounds) is fits


def test_missing_and_old_packages_are_one_command(project: Project) -> None:
    here = Survey(project, version=has(torch="2.5.1", matplotlib="", numpy=""))
    lab, plots = only(installation.check_judging, here), only(installation.check_plots, here)
    assert "numpy is not installed" in lab.found
    assert "torch 2.5.1 is not >=2.11" in lab.found
    assert (lab.state, lab.stops, plots.state, plots.stops) == ("missing", KINDS, "missing", ())
    assert lab.fix == plots.fix == f"Run `{requirements.install_command('lab', 'plots')}`."


def test_the_gpu_extra_is_asked_for_where_there_is_a_gpu(project: Project) -> None:
    lacks = has(nvidia_ml_py="")
    assert "nvidia-ml-py>" in doctor_packages.advise_useful_extras(Survey(project, gpu=GPU, version=lacks))
    assert "nvidia-ml-py" not in doctor_packages.advise_useful_extras(Survey(project, version=lacks))


def test_base_dependencies_stop_everything(project: Project) -> None:
    row = only(installation.check_dependencies, Survey(project, version=has(jinja2="")))
    assert (row.found, row.stops) == ("jinja2 is not installed", KINDS)
    assert "'jinja2>=3.1'" in row.fix


def test_an_untested_python_is_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation.requirements, "python_bounds", lambda: ">=4.0,<4.2")
    row = only(installation.check_python, Survey(project))
    assert (row.state, row.stops) == ("missing", ())
    assert ">=4.0,<4.2" in row.found


# The project


def test_a_configuration_that_does_not_parse_stops_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (tmp_path / "warpsmith.toml").write_text("kernels =\n")
    here = take_survey(tmp_path)
    found = checks.run_checks(here)
    assert found.answer is Readiness.NOT_READY
    assert "warpsmith.toml does not parse" in (found.first or "")


def test_folders_that_take_no_files_stop_everything(project: Project) -> None:
    assert only(installation.check_writable, Survey(project)).state == "ok"
    project.devlog.write_text("a file where a folder should be")
    project.devlog.chmod(0o755)  # a program may be written and executed as a folder may
    row = only(installation.check_writable, Survey(project))
    assert (row.state, row.stops) == ("missing", KINDS)
    assert row.found == "devlog cannot be written"


def test_little_disk_is_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "GiB free" in only(installation.check_disk, Survey(project)).found
    monkeypatch.setattr(installation, "_DISK", 2**80)
    assert only(installation.check_disk, Survey(project)).state == "missing"


# Languages and the CPU


def of_languages(here: Survey) -> dict[str, DoctorRow]:
    return {row.name: row for row in doctor_targets.check_languages(here)}


def test_without_compiler_the_cpu_is_stopped(project: Project, put: Callable[[str, str], None]) -> None:
    row = of_languages(Survey(project))["cpp"]
    assert (row.state, row.stops) == ("missing", ("cpu",))
    assert "install `g++`" in row.found
    assert list(doctor_targets.check_openmp(Survey(project))) == []
    put("g++", "echo 'g++ (Test) 14.2.0'")
    row = of_languages(Survey(project))["cpp"]
    assert (row.state, row.found) == ("ok", "g++ (Test) 14.2.0")


def test_a_language_without_device_is_a_gap(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages.get("triton"), "missing", lambda kind: None, raising=False)
    row = of_languages(Survey(project, version=has(triton="3.7.1")))["triton"]
    assert (row.state, row.stops) == ("gap", ())
    assert "3.7.1" in row.found


def test_a_language_that_cannot_use_the_gpu_stops_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages.get("triton"), "missing", lambda kind: "triton is not there.", raising=False)
    row = of_languages(Survey(project, gpu=GPU))["triton"]
    assert (row.state, row.found, row.stops) == ("missing", "triton is not there.", ("gpu",))


def test_a_kind_that_another_language_serves_is_not_stopped(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, lacks in (("cpp", None), ("triton", "triton is not there.")):
        monkeypatch.setattr(languages.get(name), "missing", lambda kind, lacks=lacks: lacks, raising=False)
        monkeypatch.setattr(languages.get(name), "targets", ("cpu", "gpu"), raising=False)
    row = of_languages(Survey(project, gpu=GPU))["triton"]
    assert (row.state, row.stops) == ("missing", ())


def test_a_compiler_without_openmp_stops_the_cpu(project: Project, put: Callable[[str, str], None]) -> None:
    put("c++", "exit 0")
    assert only(doctor_targets.check_openmp, Survey(project)).state == "ok"
    put("c++", "echo \"fatal error: 'omp.h' file not found\" >&2; exit 1")
    row = only(doctor_targets.check_openmp, Survey(project))
    assert (row.state, row.stops) == ("missing", ("cpu",))
    assert "'omp.h' file not found" in row.found


def test_measurements_are_found_awaited_or_corrupt(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu = hardware.read_target_page(project, "cpu").target
    monkeypatch.setattr(projects, "SHIPPED", tmp_path / "shipped")  # this very machine may have a shipped one
    assert doctor_targets.measurement_row(project, cpu, "takes a while").state == "gap"
    here = identity.identify_machine(cpu)
    ceiling = Ceiling(value=30, unit="GB/s", best=30, spread=0.01, how="a test")
    kept = Measurement(machine=here, measured="2026-11-21 14:05", ceilings={"copy": ceiling})
    path = measurement_store.save_measurement(project, kept)
    assert (
        doctor_targets.measurement_row(project, cpu, "").found == "measured 2026-11-21 14:05, noise not measured"
    )
    noise = Noise(floor=0.01, trials=9, how="a test")
    measurement_store.save_measurement(project, kept.model_copy(update={"noise": noise}))
    assert doctor_targets.measurement_row(project, cpu, "").found == "measured 2026-11-21 14:05"
    path.write_text("{}")
    row = doctor_targets.measurement_row(project, cpu, "")
    assert (row.state, row.stops) == ("missing", ("cpu",))


def test_a_broken_page_of_the_cpu_stops_it(project: Project) -> None:
    page = project.knowledge / "hardware/cpu.md"
    page.parent.mkdir(parents=True)
    page.write_text("no front matter")
    row = only(doctor_targets.check_cpu_measurement, Survey(project))
    assert (row.state, row.stops) == ("missing", ("cpu",))


# The GPU


def test_without_gpu_one_row_says_so(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_gpu, "_DRIVER", tmp_path / "none")
    rows = list(itertools.chain.from_iterable(check(Survey(project)) for check in checks.CHECKS["GPU"]))
    assert [(row.name, row.state, row.stops) for row in rows] == [("device", "gap", ("gpu",))]


def test_a_driver_that_shows_no_gpu_is_told_apart_from_a_hidden_one(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_gpu, "_DRIVER", tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert only(doctor_gpu.check_device, Survey(project)).state == "missing"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    row = only(doctor_gpu.check_device, Survey(project))
    assert (row.state, row.found) == ("gap", "hidden by CUDA_VISIBLE_DEVICES")


def test_nvidia_smi_gives_the_device_and_its_target(
    project: Project, put: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    put("nvidia-smi", "echo 'NVIDIA H200, GPU-1, 580.1, 1980, 3201'")
    here = take_survey(project.root)
    assert here.readings is None
    assert here.kinds == KINDS
    assert only(doctor_gpu.check_device, here).found == "NVIDIA H200, driver 580.1"
    target, measured = doctor_gpu.check_target(here)
    assert (target.state, target.found) == ("ok", "h200")
    assert measured.name == "ceilings and noise"
    clocks = only(doctor_gpu.check_gpu_clocks, here)
    assert (clocks.state, "trust reduced" in clocks.means) == ("missing", True)
    put("nvidia-smi", "echo 'NVIDIA Newest, GPU-1, 580.1, 1980, 3201'")
    row = only(doctor_gpu.check_target, take_survey(project.root))
    assert (row.state, row.stops) == ("missing", ("gpu",))
    assert "`NVIDIA Newest`" in row.found


@pytest.mark.parametrize(
    ("text", "driver", "state", "found"),
    [
        ("cuda: Optional[str] = None\n", 13000, "missing", "without CUDA"),
        ("__version__ = '2.13.0'\ncuda: Optional[str] = '13.0'\n", 13000, "ok", "built for 13"),
        ("cuda = '13.0'\n", 12080, "missing", "the driver supports CUDA 12"),
        ("cuda = '12.8'\n", 13000, "ok", "built for 12"),
        ("cuda = '13.0'\n", None, "ok", "built for 13"),
    ],
)
def test_torch_must_be_built_for_what_the_driver_runs(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    driver: int | None,
    state: str,
    found: str,
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise AssertionError('it must not be imported')")
    (tmp_path / "torch/version.py").write_text(text)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    row = only(doctor_gpu.check_cuda, Survey(project, gpu=GPU, readings=GpuState(cuda=driver)))
    assert (row.state, row.stops) == (state, () if state == "ok" else ("gpu",))
    assert found in row.found


def test_launchers_need_a_c_compiler(project: Project, put: Callable[[str, str], None]) -> None:
    assert only(doctor_gpu.check_c_compiler, Survey(project, gpu=GPU)).stops == ("gpu",)
    put("gcc", "exit 0")
    row = only(doctor_gpu.check_c_compiler, Survey(project, gpu=GPU))
    assert row.found == "gcc" or "Python.h" in row.found


@pytest.mark.parametrize(
    ("change", "state", "found"),
    [
        ({}, "ok", "SM 345 of 1980 MHz, no lock detected, limited by: idle"),
        ({"reasons": ("clock setting",)}, "ok", "set by a user"),
        ({"applications_clock": 1500, "applications_default": 1980}, "ok", "set by a user"),
        ({"applications_clock": 1500}, "ok", "no lock detected"),
        ({"reasons": ("temperature (hardware)",)}, "missing", "limited by: temperature"),
    ],
)
def test_clocks(project: Project, change: dict[str, object], state: str, found: str) -> None:
    row = only(doctor_gpu.check_gpu_clocks, Survey(project, gpu=GPU, readings=READ.model_copy(update=change)))
    assert (row.state, row.stops) == (state, ())
    assert found in row.found


def test_mig_and_persistence(project: Project) -> None:
    fine = Survey(project, gpu=GPU, readings=READ)
    assert only(doctor_gpu.check_mig, fine).state == only(doctor_gpu.check_persistence, fine).state == "ok"
    split = Survey(project, gpu=GPU, readings=READ.model_copy(update={"mig": True, "persistence": False}))
    assert only(doctor_gpu.check_mig, split).state == "missing"
    assert only(doctor_gpu.check_persistence, split).state == "gap"


@pytest.mark.parametrize(
    ("parameters", "capabilities", "state"),
    [
        ("EnableMSI: 1\nRmProfilingAdminOnly: 0\n", "0000000000000000", "ok"),
        ("EnableMSI: 1\nRmProfilingAdminOnly: 1\n", "00000000a80425fb", "missing"),
        ("EnableMSI: 1\nRmProfilingAdminOnly: 1\n", "000001ffffffffff", "ok"),
        (None, "000001ffffffffff", "gap"),
    ],
)
def test_counters(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    parameters: str | None,
    capabilities: str,
    state: str,
) -> None:
    if parameters is not None:
        (tmp_path / "params").write_text(parameters)
    (tmp_path / "status").write_text(f"Name:\tpython\nCapEff:\t{capabilities}\n")
    monkeypatch.setattr(counter_access, "PARAMETERS", tmp_path / "params")
    monkeypatch.setattr(counter_access, "_STATUS", tmp_path / "status")
    row = only(doctor_gpu.check_counters, Survey(project, gpu=GPU))
    assert row.state == state
    assert ("NVreg_RestrictProfilingToAdminUsers=0" in row.fix) is (state == "missing")


def test_the_management_library_is_read_by_the_names_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = pytest.importorskip("pynvml")

    def refuses(*arguments: object) -> None:
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)

    says = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByUUID": lambda uuid: uuid,
        "nvmlSystemGetCudaDriverVersion": lambda: 13000,
        "nvmlDeviceGetMaxClockInfo": lambda handle, clock: 1980,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: (
            nvml.nvmlClocksEventReasonGpuIdle | nvml.nvmlClocksEventReasonHwSlowdown
        ),
        "nvmlDeviceGetApplicationsClock": refuses,
        "nvmlDeviceGetDefaultApplicationsClock": refuses,
        "nvmlDeviceGetPersistenceMode": lambda handle: nvml.NVML_FEATURE_ENABLED,
        "nvmlDeviceGetMigMode": lambda handle: [nvml.NVML_DEVICE_MIG_DISABLE, nvml.NVML_DEVICE_MIG_ENABLE],
    }
    for name, function in says.items():
        monkeypatch.setattr(nvml, name, function)
    expected = READ.model_copy(update={"reasons": ("idle", "hardware slowdown")})
    assert doctor_nvml.read_gpu_state("GPU-1") == expected
    assert expected.slowed == ("hardware slowdown",)
    monkeypatch.setattr(nvml, "nvmlDeviceGetHandleByUUID", refuses)
    assert doctor_nvml.read_gpu_state("GPU-1") is None


# What a verdict could not hold


def test_the_walls_are_tried_in_a_process_that_ends(project: Project) -> None:
    rows = list(doctor_trust.check_walls(Survey(project)))
    names = {name for row in rows for name in (row.found if row.state == "ok" else row.name[9:]).split(", ")}
    assert names >= {"network", "files", "signals", "memory of others", "limits"}
    assert list(Path(projects.__file__).parents[1].iterdir()), "this process is not shut in"


def test_a_wall_that_does_not_hold_is_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    found = (Check(name="files", ran=True, how="Landlock"), Check(name="network", ran=False, how="too old"))
    monkeypatch.setattr(doctor_trust, "_test_walls", lambda: found)
    held, open_ = doctor_trust.check_walls(Survey(project))
    assert (held.state, held.found) == ("ok", "files")
    assert (open_.name, open_.state, open_.found) == ("sandbox, network", "missing", "too old")
    assert "trust reduced" in open_.means


def test_walls_that_cannot_be_tried_are_a_row(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_trust.tool, "run_tool", lambda *command: ToolResult(1, "OSError: no space"))
    (row,) = checks.run_checks(Survey(project), {"one": (doctor_trust.check_walls,)}).groups[0].rows
    assert (row.state, "ended with code 1: OSError: no space" in row.found) == ("missing", True)


def test_sanitizers_are_wanted_where_there_is_a_gpu(project: Project, put: Callable[[str, str], None]) -> None:
    assert only(doctor_trust.check_sanitizer, Survey(project)).state == "gap"
    row = only(doctor_trust.check_sanitizer, Survey(project, gpu=GPU))
    assert (row.state, "trust reduced" in row.means, "CUDA toolkit" in row.fix) == ("missing", True, True)
    put("compute-sanitizer", "echo Version 2025.3.1.0")
    row = only(doctor_trust.check_sanitizer, Survey(project, gpu=GPU))
    assert (row.state, row.found) == ("ok", "2025.3.1.0")
    put("compute-sanitizer", "exit 3")
    assert only(doctor_trust.check_sanitizer, Survey(project, gpu=GPU)).state == "missing"


# Programs


@pytest.mark.parametrize(
    ("name", "says", "version"),
    [
        ("ncu", "NVIDIA (R) Nsight Compute\nCopyright (c) 2018-2026\nVersion 2026.3.1.0", "2026.3.1.0"),
        ("cuobjdump", "cuobjdump: NVIDIA (R) tool\nCopyright (c) 2005-2026\nrelease 13.0, V13.0.39", "13.0"),
        ("claude", "2.1.329 (Claude Code)", "2.1.329"),
        ("sbatch", "slurm 24.05.4", "24.05.4"),
    ],
)  # fmt: skip
def test_versions_are_read(put: Callable[[str, str], None], name: str, says: str, version: str) -> None:
    put(name, f"echo '{says}'")
    assert doctor_tools.find_program(name)[2:] == (version, True)


def test_a_program_that_hangs_fails_or_is_none_does_not_work(
    put: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_tools, "_SECONDS", 0.2)
    assert doctor_tools.find_program("tool") == ("tool", None, "", False)
    for script, says in (
        ("exec /bin/sleep 60", "does not answer"),
        ("echo 1.2; exit 3", "does not report its version"),
        ("echo hello", "does not report its version"),
    ):
        put("tool", script)
        found = doctor_tools.find_program("tool")
        assert (found.works, says in found.report) == (False, True)
    (tmp_path / "bin/tool").write_bytes(b"\x7fELF no program")
    assert "does not answer" in doctor_tools.find_program("tool").report


def test_tools_that_nothing_uses_are_never_missing(project: Project, put: Callable[[str, str], None]) -> None:
    for check in (doctor_tools.check_disassemblers, doctor_tools.check_slurm):
        row = only(check, Survey(project))
        assert (row.state, row.fix, row.stops) == ("gap", "", ())
        assert row.means.startswith("not used yet")
    put("sbatch", "echo 24.05")
    assert only(doctor_tools.check_slurm, Survey(project)).state == "gap"
    put("srun", "echo 24.05")
    row = only(doctor_tools.check_slurm, Survey(project))
    assert (row.state, row.found) == ("ok", "sbatch 24.05, srun 24.05 (not used yet)")


def test_profilers(project: Project, put: Callable[[str, str], None]) -> None:
    lacks = Survey(project, gpu=GPU, version=has(ncu_report=""))
    ncu, reader = doctor_tools.check_profilers(lacks)
    assert (ncu.state, ncu.found, reader.state) == ("gap", "not on PATH", "gap")
    assert "uses timings" in ncu.means
    assert "pip install" in reader.fix
    put("ncu", "echo 2026.3")
    ncu, reader = doctor_tools.check_profilers(Survey(project, gpu=GPU, version=has(ncu_report="2026.3.1")))
    assert (ncu.state, ncu.found, reader.state) == ("ok", "2026.3", "ok")
    row = only(doctor_tools.check_profilers, Survey(project, version=has(ncu_report="")))
    assert "--report" in row.means


def test_agents(project: Project, put: Callable[[str, str], None]) -> None:
    lacks = Survey(project, version=has(claude_agent_sdk=""))
    rows = [only(check, lacks) for check in checks.CHECKS["agents"]]
    assert [(row.name, row.state) for row in rows] == [
        ("claude", "gap"),
        ("claude-agent-sdk", "gap"),
        ("git", "gap"),
    ]
    assert "'claude-agent-sdk>=" in rows[1].fix
    put("git", "echo git version 2.39.5")
    put("claude", "echo '2.1.329 (Claude Code)'")
    rows = [only(check, Survey(project, version=has())) for check in checks.CHECKS["agents"]]
    assert [(row.state, row.found) for row in rows] == [("ok", "2.1.329"), ("ok", "99.0"), ("ok", "2.39.5")]


def test_inside_claude_code_it_needs_no_path(
    project: Project, put: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    row = only(doctor_tools.check_claude, Survey(project, version=has()))
    assert (row.state, row.found) == ("ok", "this command runs in Claude Code")


# This machine


def test_this_machine_is_left_as_it_is(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    before = sorted(project.root.iterdir())
    found = checks.examine_machine(project.root)
    assert sorted(project.root.iterdir()) == before
    assert [group.name for group in found.groups] == list(checks.CHECKS)
    assert DoctorReport.of(found.groups) == found
    assert DoctorReport.model_validate_json(found.model_dump_json()) == found
