"""Doctor's checks of the GPU target; without a GPU, the first check reports that and the others yield nothing."""

from __future__ import annotations

import os
import re
import shutil
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from warpsmith import counter_access
from warpsmith.errors import BadEntry
from warpsmith.lab.doctor import packages
from warpsmith.lab.doctor.models import DoctorRow
from warpsmith.lab.doctor.survey import Survey
from warpsmith.lab.doctor.targets import measurement_row
from warpsmith.lab.machine import hardware

_DRIVER = Path("/dev/nvidiactl")
_CUDA = re.compile(r"^cuda\b.*=\s*['\"](\d+)[\d.]*['\"]", re.MULTILINE)


def check_device(survey: Survey) -> Iterator[DoctorRow]:
    """Report the first visible GPU."""
    if survey.gpu:
        yield DoctorRow(name="device", state="ok", found=f"{survey.gpu.name}, driver {survey.gpu.driver}")
        return
    means = "GPU targets cannot be judged on this machine"
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() in ("", "-1")
    if not _DRIVER.exists():
        finding = "none that NVIDIA's driver reports"
        yield DoctorRow(name="device", state="gap", found=finding, means=means, stops=("gpu",))
    elif hidden:
        finding = "hidden by CUDA_VISIBLE_DEVICES"
        yield DoctorRow(name="device", state="gap", found=finding, means=means, stops=("gpu",))
    else:
        yield DoctorRow(
            name="device",
            state="missing",
            found="NVIDIA's driver is installed, but nvidia-ml-py and nvidia-smi read no GPU",
            means=means,
            fix="Run `nvidia-smi`: it must list the GPU that CUDA_VISIBLE_DEVICES names; fix its errors.",
            stops=("gpu",),
        )


def check_target(survey: Survey) -> Iterator[DoctorRow]:
    """Report the hardware page that names the GPU, and whether this GPU was measured."""
    if survey.gpu is None or survey.project is None:
        return
    try:
        target = hardware.find_local_target(survey.project)
    except BadEntry as error:
        yield DoctorRow(name="target", state="missing", found=str(error), stops=("gpu",))
        return
    if target is None or target.kind != "gpu":
        yield DoctorRow(
            name="target",
            state="missing",
            found=f"no hardware page has `{survey.gpu.name}` among its aliases",
            means="commands that choose the target end with code 4; `--target cpu` still works",
            fix="Write docs/knowledge/hardware/<target>.md with that alias and its sourced figures.",
            stops=("gpu",),
        )
        return
    yield DoctorRow(name="target", state="ok", found=target.id)
    yield measurement_row(survey.project, target, "needs an idle GPU")


def check_cuda(survey: Survey) -> Iterator[DoctorRow]:
    """Report whether PyTorch is built for a CUDA version that the driver supports."""
    if survey.gpu is None or survey.version("torch") is None:
        return
    built = torch_cuda_version()
    supported = survey.readings.cuda // 1000 if survey.readings and survey.readings.cuda else None
    means = "GPU targets cannot be judged on this machine"
    if built is None:
        finding = f"torch {survey.version('torch')} is built without CUDA"
        fix = "Install PyTorch for CUDA: https://pytorch.org/get-started/locally has the command."
        yield DoctorRow(name="CUDA", state="missing", found=finding, means=means, fix=fix, stops=("gpu",))
    elif supported is not None and supported < built:
        finding = f"torch is built for CUDA {built}, the driver supports CUDA {supported}"
        fix = f"Install a newer driver, or PyTorch for CUDA {supported}."
        yield DoctorRow(name="CUDA", state="missing", found=finding, means=means, fix=fix, stops=("gpu",))
    else:
        yield DoctorRow(name="CUDA", state="ok", found=f"torch built for {built}")


def check_c_compiler(survey: Survey) -> Iterator[DoctorRow]:
    """Report the C compiler and Python's header, with which Triton and `torch.compile` build their launchers."""
    if survey.gpu is None:
        return
    chosen = os.environ.get("CC") or next((name for name in ("gcc", "clang") if shutil.which(name)), None)
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    means = "Triton and `torch.compile` cannot build their kernel launchers"
    if chosen is None:
        fix = "Install `gcc` or `clang`, or set CC."
        yield DoctorRow(
            name="C compiler", state="missing", found="none on PATH", means=means, fix=fix, stops=("gpu",)
        )
    elif not header.is_file():
        fix = "Install Python's headers (Debian, Ubuntu: `python3-dev`)."
        yield DoctorRow(
            name="C compiler", state="missing", found=f"no {header}", means=means, fix=fix, stops=("gpu",)
        )
    else:
        yield DoctorRow(name="C compiler", state="ok", found=chosen)


def check_gpu_clocks(survey: Survey) -> Iterator[DoctorRow]:
    """Report whether clocks are locked or throttled."""
    if survey.gpu is None:
        return
    if survey.readings is None:
        yield DoctorRow(
            name="clocks, persistence, MIG",
            state="missing",
            found="unknown: the package nvidia-ml-py does not answer",
            means="verdicts say `trust reduced`, since rounds at a lower clock are not left out",
            fix="" if survey.version("nvidia-ml-py") else packages.advise_useful_extras(survey),
        )
        return
    current, top = survey.gpu.clocks.get("sm"), survey.readings.sm_clock_max
    setting = "clocks set by a user" if survey.readings.clocks_set else "no lock detected"
    reasons = ", ".join(survey.readings.reasons or ()) or "nothing"
    finding = f"SM {current or '?'} of {top or '?'} MHz, {setting}, limited by: {reasons}"
    if survey.readings.slowed:
        means = "`judge` and `ceiling` would time a slowed GPU"
        fix = "Let the GPU cool down or fix its power supply, then run `warpsmith doctor` again."
        yield DoctorRow(name="clocks", state="missing", found=finding, means=means, fix=fix)
    else:
        yield DoctorRow(name="clocks", state="ok", found=finding)


def check_persistence(survey: Survey) -> Iterator[DoctorRow]:
    """Report whether the driver stays loaded."""
    if survey.readings is None or survey.readings.persistence is None:
        return
    if survey.readings.persistence:
        yield DoctorRow(name="persistence", state="ok", found="on")
    else:
        means = "the driver is loaded again for each process while the GPU is unused, so commands start later"
        fix = "As administrator: `nvidia-smi -pm 1`."
        yield DoctorRow(name="persistence", state="gap", found="off", means=means, fix=fix)


def check_mig(survey: Survey) -> Iterator[DoctorRow]:
    """Report whether the GPU is partitioned."""
    if survey.readings is None:
        return
    if survey.readings.mig:
        means = "kernels run on a slice of the GPU, but the target's page describes the whole GPU"
        fix = "Use a GPU without MIG, or as administrator: `nvidia-smi -mig 0`."
        yield DoctorRow(name="MIG", state="missing", found="on", means=means, fix=fix)
    else:
        yield DoctorRow(name="MIG", state="ok", found="not supported" if survey.readings.mig is None else "off")


def check_counters(survey: Survey) -> Iterator[DoctorRow]:
    """Report whether this user may read the GPU's performance counters."""
    if survey.gpu is None:
        return
    means = "profiles use only timings and the compiler's report"
    try:
        restricted = counter_access.counters_are_closed()
    except OSError:
        finding = f"unknown: {counter_access.PARAMETERS} cannot be read"
        yield DoctorRow(name="performance counters", state="gap", found=finding, means=means)
        return
    if not restricted:
        yield DoctorRow(name="performance counters", state="ok", found="permitted")
    else:
        yield DoctorRow(
            name="performance counters",
            state="missing",
            found="restricted to administrators",
            means=means,
            fix="As administrator: put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into a file under"
            " /etc/modprobe.d, then reload the driver or restart;"
            " for a container, start it with the capability SYS_ADMIN instead.",
        )


def torch_cuda_version() -> int | None:
    """Return the major CUDA version that the installed PyTorch is built for, without importing PyTorch."""
    spec = find_spec("torch")
    file = Path(spec.origin).with_name("version.py") if spec and spec.origin else None
    match = _CUDA.search(file.read_text()) if file and file.is_file() else None
    return int(match[1]) if match else None
