"""Runs a program under NVIDIA Nsight Compute (ncu) for a report, and says in one sentence why there is none."""

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

SUFFIX = ".ncu-rep"
"""What the name of a report ends in."""

PERMISSION = (
    "This user may not read the GPU's performance counters (ERR_NVGPUCTRPERM): run as root, or as administrator"
    " put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into a file under /etc/modprobe.d and reload the"
    " driver or restart; a container needs the capability SYS_ADMIN."
)
"""Why counters stay closed to a user, and what opens them."""

_LACKS: tuple[tuple[str, str], ...] = (
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
"""What ncu prints, and what that means."""

_SAID = re.compile(r"==(?:ERROR|WARNING|PROF)== ?")
_EXIT = re.compile(r"The application returned an error code \((\d+)\)")
_HEADINGS = ("An error was reported by", "An error occurred while trying to profile")
_TRIES = 3
_DRIVER = Path("/dev/nvidiactl")
_USUAL = (
    "/usr/local/cuda/bin/ncu",
    "/usr/local/cuda-*/bin/ncu",
    "/opt/nvidia/nsight-compute/*/ncu",
    "/opt/cuda/bin/ncu",
)


@dataclass(frozen=True)
class Launches:
    """Which launches of a program are profiled."""

    kernel: str | None = None
    """A kernel's name without parameters, or `regex:PATTERN`; None: every kernel."""
    skip: int = 0
    """Matching launches that run first, unprofiled."""
    most: int | None = None
    """The most launches that are profiled; None: all."""
    whole: bool = False
    """Whether launches outside of cudaProfilerStart and cudaProfilerStop count as well."""


def collect(
    command: Sequence[str | Path],
    out: Path,
    *,
    sections: Sequence[str] | Literal["full"] = ncu_metrics.SECTIONS,
    metrics: Sequence[str] | None = None,
    launches: Launches | None = None,
    timeout: float = 300.0,
) -> Path:
    """Run `command` under ncu; the report.

    One profile at a time for each GPU: another one waits, and that counts against the time limit. Clocks are left
    alone; caches are emptied before each replay.

    Args:
        command: the program and its arguments.
        out: where the report goes; `.ncu-rep` is appended where it is missing.
        sections: sections of ncu by name, or `full`: every section, for a report to be opened in ncu's own window.
        metrics: beside those of the sections; None: what the reader's table needs.
        launches: which of them are profiled; None: all between cudaProfilerStart and cudaProfilerStop.
        timeout: seconds.

    Raises:
        MachineLacks: no ncu, or it cannot read counters here.
        MissingInput: no launch matched.
        SolutionFailed: the program itself failed.
        TimedOut: it outlasted the limit; nothing of it is left running.
    """
    program = find()
    if program is None:
        raise MachineLacks(_absent())
    wanted = ncu_metrics.requested() if metrics is None else tuple(metrics)
    asked = _Asked("full" if sections == "full" else tuple(sections), wanted)
    chosen = launches or Launches()
    deadline = time.monotonic() + timeout
    with _alone(timeout), tempfile.TemporaryDirectory(prefix="report-", dir=_folder()) as place:
        made = Path(place) / f"report{SUFFIX}"
        for _ in range(_TRIES):
            said = _run([program, *_options(asked, chosen, made), *command], made, deadline, timeout)
            if made.is_file() and said.code == 0:
                path = out if out.name.endswith(SUFFIX) else out.with_name(out.name + SUFFIX)
                files.write_file(path, made.read_bytes())
                return path
            fewer = asked.without_those_in("\n".join(said.errors))
            if fewer == asked:
                break
            asked = fewer  # of another release or chip: what is not there counts as absent
    raise _failure(said, chosen.kernel)


def find() -> str | None:
    """The ncu program: on PATH, else the newest in the folders where CUDA is installed; None: there is none."""
    found = shutil.which("ncu")
    if found:
        return found
    here = [path for usual in _USUAL for path in Path("/").glob(usual[1:]) if os.access(path, os.X_OK)]
    return str(max(here, key=lambda path: _numbers(str(path)))) if here else None


def available() -> str | None:
    """Why counters cannot be read here, as far as that shows without trying; None: nothing speaks against."""
    if find() is None:
        return _absent()
    if not _DRIVER.exists():
        return "This machine has no GPU that NVIDIA's driver reports: profile on one that has."
    try:
        return PERMISSION if counter_access.counters_are_closed() else None
    except OSError:
        return None  # ncu will say


class _Asked(NamedTuple):
    """What ncu is asked to collect."""

    sections: tuple[str, ...] | Literal["full"]
    metrics: tuple[str, ...]

    def without_those_in(self, errors: str) -> _Asked:
        """The same, less those that ncu's errors name."""

        def kept(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(n for n in names if not re.search(rf"(?<!\w){re.escape(n)}(?!\w|\.\w)", errors))

        return _Asked("full" if self.sections == "full" else kept(self.sections), kept(self.metrics))


class _Said(NamedTuple):
    """How ncu ended and what was printed."""

    code: int
    tool: str
    """By ncu."""
    program: str
    """By the program, and by ncu where it printed before its log was open."""

    @property
    def lines(self) -> list[str]:
        """What ncu printed."""
        own = self.tool or self.program
        return [line for line in own.splitlines() if _SAID.match(line)]

    @property
    def errors(self) -> list[str]:
        """ncu's own errors, without headings and without how the program ended."""
        found = [line.removeprefix("==ERROR==").strip() for line in self.lines if line.startswith("==ERROR==")]
        return [error for error in found if error and not error.startswith(_HEADINGS) and not _EXIT.search(error)]


def _options(asked: _Asked, launches: Launches, made: Path) -> list[str]:
    options = ["--config-file", "off", "--clock-control", "none", "--cache-control", "all"]
    options += ["--target-processes", "all", "--replay-mode", "kernel"]
    options += ["--profile-from-start", "on" if launches.whole else "off"]
    if asked.sections == "full":
        options += ["--set", "full"]
    else:
        options += [part for section in asked.sections for part in ("--section", section)]
    if asked.metrics:
        options += ["--metrics", ",".join(asked.metrics)]
    if launches.kernel is not None:
        options += ["--kernel-name", launches.kernel]
    options += ["--launch-skip", str(launches.skip)] if launches.skip else []
    options += ["--launch-count", str(launches.most)] if launches.most is not None else []
    return [*options, "--log-file", str(_log(made)), "-f", "-o", str(made), "--"]


def _run(command: Sequence[str | Path], made: Path, deadline: float, timeout: float) -> _Said:
    """One run of ncu; what it prints goes to a file, so that the program's own output does not mix with it."""
    environment = {
        "TMPDIR": str(_folder()),  # ncu's lock lies there: in a shared /tmp another user's cannot be opened
        "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT": "1",  # the sections as installed, none from the home
    }
    log = _log(made)
    log.unlink(missing_ok=True)
    try:
        ended = tool.run_tool(command, max(deadline - time.monotonic(), 0.1), environment=environment)
    except TimeoutError as error:
        raise TimedOut(
            f"The profile took more than {timeout:g} s and was ended: take a smaller workload or raise the limit."
        ) from error
    except OSError as error:
        raise MachineLacks(
            f"{command[0]} does not start ({error.strerror}): install Nsight Compute anew."
        ) from error
    return _Said(ended.code, log.read_text(errors="replace") if log.is_file() else "", ended.output)


def _failure(said: _Said, kernel: str | None) -> WarpsmithError:
    """What a run without a report means. ncu goes on printing after a cause, so known causes come first."""
    printed = "\n".join(said.lines)
    known = next((sentence for mark, sentence in _LACKS if mark in printed), None)
    if known or said.errors:
        return MachineLacks(known or f"ncu failed: {said.errors[0]}")
    ended = _EXIT.search(printed)
    if ended:
        return SolutionFailed(f"The profiled program ended with code {ended[1]}.\n{_last_words(said)}")
    if said.code and "No kernels were profiled" not in printed:
        return MachineLacks(f"ncu failed with code {said.code}.\n{_last_words(said)}")
    what = f"No launch of the kernel `{kernel}`" if kernel else "No kernel"
    return MissingInput(f"{what} was profiled: the program launches none, or under another name.")


def _last_words(said: _Said) -> str:
    lines = [line for line in said.program.splitlines() if line.strip() and not _SAID.match(line)]
    return tool.fence_lines(lines[-8:] or ["it printed nothing"])


@contextmanager
def _alone(timeout: float) -> Iterator[None]:
    """Hold the GPU for this profile."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() or "none"
    lock = FileLock(_folder() / f"ncu-{re.sub(r'[^A-Za-z0-9-]', '_', chosen)}.lock", timeout=timeout)
    try:
        lock.acquire()
    except Timeout:
        raise TimedOut(f"Another profile held the GPU for {timeout:g} s: wait until it is done.") from None
    try:
        yield
    finally:
        lock.release()


def _folder() -> Path:
    """This user's own folder for locks and unfinished reports."""
    folder = Path(tempfile.gettempdir()) / f"warpsmith-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise MachineLacks(f"{folder} belongs to somebody else: remove it, or set TMPDIR to a folder of your own.")
    return folder


def _log(made: Path) -> Path:
    return made.with_name("ncu.log")


def _absent() -> str:
    return "There is no ncu on PATH or where CUDA is installed: install NVIDIA Nsight Compute."


def _numbers(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path)]
