"""Run a program under NVIDIA Nsight Compute (ncu); if there is no report, explain why in one sentence."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from filelock import FileLock, Timeout

from warpsmith import counter_access, files
from warpsmith.errors import MachineLacks, MissingInput, SolutionFailed, TimedOut, WarpsmithError
from warpsmith.languages.shared import tool
from warpsmith.profiling.ncu import metrics as ncu_metrics
from warpsmith.profiling.ncu import report as ncu_report

SUFFIX = ".ncu-rep"
"""File suffix of reports."""

PERMISSION = (
    "This user may not read the GPU's performance counters (ERR_NVGPUCTRPERM): run as root, or as administrator"
    " put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into a file under /etc/modprobe.d and reload the"
    " driver or restart; a container needs the capability SYS_ADMIN."
)
"""Message for a user who may not read the counters, with the cure."""

_KNOWN_ERRORS: tuple[tuple[str, str], ...] = (
    ("ERR_NVGPUCTRPERM", PERMISSION),
    (
        "LibraryNotLoaded",
        "The driver here has no profiling library (LibraryNotLoaded), as in sandboxes and some virtual machines:"
        " profile where the driver gives out its counters.",
    ),
    (
        "driver is not compatible with Nsight Compute",
        "This ncu does not fit the driver: install the Nsight Compute of the CUDA version in `nvidia-smi`.",
    ),
    (
        "failed to connect to the CUDA driver",
        "This ncu does not reach the CUDA driver: install the Nsight Compute of the CUDA version in"
        " `nvidia-smi`, and keep stub libraries off LD_LIBRARY_PATH.",
    ),
    (
        "driver resource was unavailable",
        "Another program holds the GPU's counters, often DCGM: stop it, or pause it by `dcgmi profile --pause`.",
    ),
    (
        "InterprocessLockFailed",
        "ncu cannot take its lock, nsight-compute-lock in the temporary folder: remove that file.",
    ),
    (
        "Profiling is not supported on",
        "This ncu does not support the GPU here; `ncu --list-chips` names those that it does.",
    ),
)
"""Known outputs of ncu, each with its explanation."""

_NCU_LINE = re.compile(r"==(?:ERROR|WARNING|PROF)== ?")
_EXIT = re.compile(r"The application returned an error code \((\d+)\)")
_HEADINGS = ("An error was reported by", "An error occurred while trying to profile")
_MAX_RUNS = 3
_DRIVER = Path("/dev/nvidiactl")
_USUAL_PATHS = (
    "/usr/local/cuda/bin/ncu",
    "/usr/local/cuda-*/bin/ncu",
    "/opt/nvidia/nsight-compute/*/ncu",
    "/opt/cuda/bin/ncu",
)


@dataclass(frozen=True)
class LaunchSelection:
    """Selection of a program's launches to profile."""

    kernel: str | None = None
    """Name of a kernel without parameters, or `regex:PATTERN`; None: every kernel."""
    skip: int = 0
    """Number of matching launches that run unprofiled first."""
    most: int | None = None
    """Largest number of profiled launches; None: all."""
    whole: bool = False
    """True if launches outside cudaProfilerStart and cudaProfilerStop count as well."""


def collect_report(
    command: Sequence[str | Path],
    out: Path,
    *,
    sections: Sequence[str] | Literal["full"] = ncu_metrics.SECTIONS,
    metrics: Sequence[str] | None = None,
    launches: LaunchSelection | None = None,
    timeout: float = 300.0,
) -> Path:
    """Run `command` under ncu and return the path of the report.

    Only one profile runs on each GPU at a time: a second one waits, and the wait counts against the time limit.
    Clocks are not changed; caches are flushed before each replay.

    Args:
        command: the program and its arguments.
        out: path of the report; `.ncu-rep` is appended if it is missing.
        sections: names of ncu's sections, or `full` for every section, for a report to open in ncu's own viewer.
        metrics: metrics in addition to those of the sections; None: those that the reader's table needs.
        launches: selection of launches; None: all between cudaProfilerStart and cudaProfilerStop.
        timeout: seconds.

    Raises:
        MachineLacks: no ncu, or it cannot read counters here.
        MissingInput: no launch matched.
        SolutionFailed: the program itself failed.
        TimedOut: it exceeded the limit; all its processes were ended.
    """
    program = find_ncu()
    if program is None:
        raise MachineLacks(_missing_message())
    names = ncu_metrics.requested_metrics() if metrics is None else tuple(metrics)
    request = _ReportRequest("full" if sections == "full" else tuple(sections), names)
    selection = launches or LaunchSelection()
    deadline = time.monotonic() + timeout
    with _exclusive_gpu(timeout), tempfile.TemporaryDirectory(prefix="report-", dir=_user_folder()) as folder:
        report = Path(folder) / f"report{SUFFIX}"
        for _ in range(_MAX_RUNS):
            output = _run([program, *_options(request, selection, report), *command], report, deadline, timeout)
            if report.is_file() and output.code == 0:
                path = out if out.name.endswith(SUFFIX) else out.with_name(out.name + SUFFIX)
                files.write_file(path, report.read_bytes())
                return path
            fewer = request.without_names_in("\n".join(output.errors))
            if fewer == request:
                break
            request = fewer  # metrics of another ncu release or chip count as absent
    raise _failure(output, selection.kernel)


def find_ncu() -> str | None:
    """Return the path of ncu: on PATH, else the newest where CUDA is installed; None if there is none."""
    on_path = shutil.which("ncu")
    if on_path:
        return on_path
    candidates = [path for usual in _USUAL_PATHS for path in Path("/").glob(usual[1:]) if os.access(path, os.X_OK)]
    return str(max(candidates, key=lambda path: _numbers(str(path)))) if candidates else None


def unavailable_reason() -> str | None:
    """Return why counters cannot be read on this machine; None if no reason is known without trying.

    To collect them may take minutes, so what reads them is looked for first.
    """
    if find_ncu() is None:
        return _missing_message()
    if lacks := ncu_report.missing_reader():
        return lacks
    if not _DRIVER.exists():
        return "This machine has no GPU that NVIDIA's driver reports: profile on one that has."
    try:
        return PERMISSION if counter_access.counters_are_closed() else None
    except OSError:
        return None  # ncu will report it


class _ReportRequest(NamedTuple):
    """Sections and metrics to collect."""

    sections: tuple[str, ...] | Literal["full"]
    metrics: tuple[str, ...]

    def without_names_in(self, errors: str) -> _ReportRequest:
        """Return the request without the sections and metrics that ncu's errors name."""

        def remaining(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(n for n in names if not re.search(rf"(?<!\w){re.escape(n)}(?!\w|\.\w)", errors))

        return _ReportRequest(
            "full" if self.sections == "full" else remaining(self.sections), remaining(self.metrics)
        )


class _NcuOutput(NamedTuple):
    """Exit code and output of ncu and the program."""

    code: int
    tool: str
    """Output of ncu."""
    program: str
    """Output of the program, and of ncu before its log was open."""

    @property
    def lines(self) -> list[str]:
        """Lines that ncu printed."""
        own = self.tool or self.program
        return [line for line in own.splitlines() if _NCU_LINE.match(line)]

    @property
    def errors(self) -> list[str]:
        """Errors of ncu, without headings and without the exit code of the program."""
        errors = [line.removeprefix("==ERROR==").strip() for line in self.lines if line.startswith("==ERROR==")]
        return [error for error in errors if error and not error.startswith(_HEADINGS) and not _EXIT.search(error)]


def _options(request: _ReportRequest, launches: LaunchSelection, report: Path) -> list[str]:
    options = ["--config-file", "off", "--clock-control", "none", "--cache-control", "all"]
    options += ["--target-processes", "all", "--replay-mode", "kernel"]
    options += ["--profile-from-start", "on" if launches.whole else "off"]
    if request.sections == "full":
        options += ["--set", "full"]
    else:
        options += [part for section in request.sections for part in ("--section", section)]
    if request.metrics:
        options += ["--metrics", ",".join(request.metrics)]
    if launches.kernel is not None:
        options += ["--kernel-name", launches.kernel]
    options += ["--launch-skip", str(launches.skip)] if launches.skip else []
    options += ["--launch-count", str(launches.most)] if launches.most is not None else []
    return [*options, "--log-file", str(_log_path(report)), "-f", "-o", str(report), "--"]


def _run(command: Sequence[str | Path], report: Path, deadline: float, timeout: float) -> _NcuOutput:
    """Run ncu once. Its messages go to a file, so that they do not mix with the program's output."""
    environment = {
        "TMPDIR": str(_user_folder()),  # for ncu's lock: in a shared /tmp, another user's lock cannot be opened
        "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT": "1",  # no section files from the home folder
    }
    log = _log_path(report)
    log.unlink(missing_ok=True)
    try:
        result = tool.run_tool(command, max(deadline - time.monotonic(), 0.1), environment=environment)
    except TimeoutError as error:
        raise TimedOut(
            f"The profile took more than {timeout:g} s and was ended: take a smaller workload or raise the limit."
        ) from error
    except OSError as error:
        raise MachineLacks(
            f"{command[0]} does not start ({error.strerror}): install Nsight Compute anew."
        ) from error
    return _NcuOutput(result.code, log.read_text(errors="replace") if log.is_file() else "", result.output)


def _failure(output: _NcuOutput, kernel: str | None) -> WarpsmithError:
    """Explain a run without a report. Known causes come first, because ncu prints more errors after the cause."""
    printed = "\n".join(output.lines)
    explanation = next((sentence for mark, sentence in _KNOWN_ERRORS if mark in printed), None)
    if explanation or output.errors:
        return MachineLacks(explanation or f"ncu failed: {output.errors[0]}")
    exit_code = _EXIT.search(printed)
    if exit_code:
        return SolutionFailed(f"The profiled program ended with code {exit_code[1]}.\n{_last_lines(output)}")
    if output.code and "No kernels were profiled" not in printed:
        return MachineLacks(f"ncu failed with code {output.code}.\n{_last_lines(output)}")
    missing = f"No launch of the kernel `{kernel}`" if kernel else "No kernel"
    return MissingInput(f"{missing} was profiled: the program launches none, or under another name.")


def _last_lines(output: _NcuOutput) -> str:
    lines = [line for line in output.program.splitlines() if line.strip() and not _NCU_LINE.match(line)]
    return tool.fence_lines(lines[-8:] or ["it printed nothing"])


@contextmanager
def _exclusive_gpu(timeout: float) -> Iterator[None]:
    """Hold the GPU's lock for this profile."""
    device = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() or "none"
    lock = FileLock(_user_folder() / f"ncu-{re.sub(r'[^A-Za-z0-9-]', '_', device)}.lock", timeout=timeout)
    try:
        lock.acquire()
    except Timeout:
        raise TimedOut(f"Another profile held the GPU for {timeout:g} s: wait until it is done.") from None
    try:
        yield
    finally:
        lock.release()


def _user_folder() -> Path:
    """Return this user's own folder for locks and unfinished reports."""
    folder = Path(tempfile.gettempdir()) / f"warpsmith-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise MachineLacks(f"{folder} belongs to another user: remove it, or set TMPDIR to a folder of your own.")
    return folder


def _log_path(report: Path) -> Path:
    return report.with_name("ncu.log")


def _missing_message() -> str:
    return "There is no ncu on PATH or where CUDA is installed: install NVIDIA Nsight Compute."


def _numbers(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path)]
