"""The doctor's checks of the GPU target; without a GPU the first one says so, and the others are silent."""

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


def check_device(here: Survey) -> Iterator[DoctorRow]:
    """The first GPU that is visible."""
    if here.gpu:
        yield DoctorRow(name="device", state="ok", found=f"{here.gpu.name}, driver {here.gpu.driver}")
        return
    means = "GPU targets cannot be judged here"
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() in ("", "-1")
    if not _DRIVER.exists():
        found = "none that NVIDIA's driver reports"
        yield DoctorRow(name="device", state="gap", found=found, means=means, stops=("gpu",))
    elif hidden:
        found = "hidden by CUDA_VISIBLE_DEVICES"
        yield DoctorRow(name="device", state="gap", found=found, means=means, stops=("gpu",))
    else:
        yield DoctorRow(
            name="device",
            state="missing",
            found="NVIDIA's driver is there, but neither nvidia-ml-py nor nvidia-smi reads a GPU",
            means=means,
            fix="Run `nvidia-smi`: it must list the GPU that CUDA_VISIBLE_DEVICES names; mend what it says.",
            stops=("gpu",),
        )


def check_target(here: Survey) -> Iterator[DoctorRow]:
    """The hardware page that names the GPU, and whether such a device was measured here."""
    if here.gpu is None or here.project is None:
        return
    try:
        target = hardware.find_local_target(here.project)
    except BadEntry as error:
        yield DoctorRow(name="target", state="missing", found=str(error), stops=("gpu",))
        return
    if target is None or target.kind != "gpu":
        yield DoctorRow(
            name="target",
            state="missing",
            found=f"no hardware page has `{here.gpu.name}` among its aliases",
            means="commands that choose the target end with code 4; `--target cpu` goes on",
            fix="Write docs/knowledge/hardware/<target>.md with that alias and its sourced figures.",
            stops=("gpu",),
        )
        return
    yield DoctorRow(name="target", state="ok", found=target.id)
    yield measurement_row(here.project, target, "wants an idle GPU")


def check_cuda(here: Survey) -> Iterator[DoctorRow]:
    """Whether PyTorch is built for CUDA, and for one that the driver runs."""
    if here.gpu is None or here.version("torch") is None:
        return
    built = torch_cuda_version()
    runs = here.readings.cuda // 1000 if here.readings and here.readings.cuda else None
    means = "GPU targets cannot be judged here"
    if built is None:
        found = f"torch {here.version('torch')} is built without CUDA"
        fix = "Install PyTorch for CUDA: https://pytorch.org/get-started/locally has the command."
        yield DoctorRow(name="CUDA", state="missing", found=found, means=means, fix=fix, stops=("gpu",))
    elif runs is not None and runs < built:
        found = f"torch is built for CUDA {built}, the driver runs CUDA {runs}"
        fix = f"Install a newer driver, or PyTorch for CUDA {runs}."
        yield DoctorRow(name="CUDA", state="missing", found=found, means=means, fix=fix, stops=("gpu",))
    else:
        yield DoctorRow(name="CUDA", state="ok", found=f"torch built for {built}")


def check_c_compiler(here: Survey) -> Iterator[DoctorRow]:
    """The C compiler and Python's header that Triton, and so `torch.compile`, build their launchers with."""
    if here.gpu is None:
        return
    chosen = os.environ.get("CC") or next((name for name in ("gcc", "clang") if shutil.which(name)), None)
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    means = "Triton and `torch.compile` cannot build what launches their kernels"
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


def check_clocks(here: Survey) -> Iterator[DoctorRow]:
    """Whether clocks are set or held down."""
    if here.gpu is None:
        return
    if here.readings is None:
        yield DoctorRow(
            name="clocks, persistence, MIG",
            state="missing",
            found="not read: the package nvidia-ml-py does not answer",
            means="verdicts say `trust reduced`: rounds at a lower clock are not left out",
            fix="" if here.version("nvidia-ml-py") else packages.advise_useful_extras(here),
        )
        return
    now, top = here.gpu.clocks.get("sm"), here.readings.sm_clock_max
    setting = "set by somebody" if here.readings.clocks_set else "no lock seen"
    reasons = ", ".join(here.readings.reasons or ()) or "nothing"
    found = f"SM {now or '?'} of {top or '?'} MHz, {setting}, held down by: {reasons}"
    if here.readings.slowed:
        means = "`judge` and `ceiling` would time a slowed GPU"
        fix = "Let it cool, or see to its power, until `warpsmith doctor` no longer says so."
        yield DoctorRow(name="clocks", state="missing", found=found, means=means, fix=fix)
    else:
        yield DoctorRow(name="clocks", state="ok", found=found)


def check_persistence(here: Survey) -> Iterator[DoctorRow]:
    """Whether the driver stays loaded."""
    if here.readings is None or here.readings.persistence is None:
        return
    if here.readings.persistence:
        yield DoctorRow(name="persistence", state="ok", found="on")
    else:
        means = "the driver starts anew for each process while nothing holds the GPU: commands start later"
        fix = "As administrator: `nvidia-smi -pm 1`."
        yield DoctorRow(name="persistence", state="gap", found="off", means=means, fix=fix)


def check_mig(here: Survey) -> Iterator[DoctorRow]:
    """Whether the GPU is split."""
    if here.readings is None:
        return
    if here.readings.mig:
        means = "kernels run on a slice, but the target's page is about the whole GPU"
        fix = "Use a GPU without MIG, or as administrator: `nvidia-smi -mig 0`."
        yield DoctorRow(name="MIG", state="missing", found="on", means=means, fix=fix)
    else:
        yield DoctorRow(name="MIG", state="ok", found="not supported" if here.readings.mig is None else "off")


def check_counters(here: Survey) -> Iterator[DoctorRow]:
    """Whether this user may read the hardware's performance counters."""
    if here.gpu is None:
        return
    means = "profiles rest on timings and the compiler's report"
    try:
        closed = counter_access.counters_are_closed()
    except OSError:
        found = f"not known: {counter_access.PARAMETERS} cannot be read"
        yield DoctorRow(name="performance counters", state="gap", found=found, means=means)
        return
    if not closed:
        yield DoctorRow(name="performance counters", state="ok", found="permitted")
    else:
        yield DoctorRow(
            name="performance counters",
            state="missing",
            found="for administrators only",
            means=means,
            fix="As administrator: put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into a file under"
            " /etc/modprobe.d, then reload the driver or restart;"
            " for a container, start it with the capability SYS_ADMIN instead.",
        )


def torch_cuda_version() -> int | None:
    """The major version of CUDA that the installed PyTorch is built for, read without importing it."""
    spec = find_spec("torch")
    file = Path(spec.origin).with_name("version.py") if spec and spec.origin else None
    found = _CUDA.search(file.read_text()) if file and file.is_file() else None
    return int(found[1]) if found else None
