"""The gate's sanitizers: NVIDIA's compute-sanitizer over calls of a version, all four tools at once.

They find mistakes, not malice: a version can tell that it is watched.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from warpsmith import files
from warpsmith.core.definition import Definition, Tolerance, Workload
from warpsmith.core.trust import Check
from warpsmith.lab.instrumented import sanitizer_report, sanitizer_target, target_program
from warpsmith.lab.instrumented.sanitizer_report import SanitizerReport
from warpsmith.lab.instrumented.sanitizer_target import SanitizerRequest, WorkloadInputs
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.languages.base import Build
from warpsmith.languages.shared import tool

MOST_ELEMENTS = 2**22
"""Elements of inputs and outputs that a workload may have: the tools slow kernels by ten to hundreds of times."""

PRINT_LIMIT = 1000
"""Errors that a tool prints; it goes on counting."""

TOOLS: Mapping[str, tuple[str, ...]] = {
    # Padding: else what is written past one buffer may lie in the next one, where it is allowed. Errors of the
    # CUDA API are left out: PyTorch and Triton probe for what a driver lacks, and real ones are exceptions.
    "memcheck": ("--padding", "4096", "--report-api-errors", "no"),
    "racecheck": (),
    # Copies are left out: only what a kernel reads before anybody wrote it is an error.
    "initcheck": ("--check-api-memory-access", "no"),
    "synccheck": (),
}
"""The tools in the order in which their errors are told, each with its own options."""

# A kernel ends at its first error and the program goes on, so that an error in a library's kernel hides no other.
# Host backtraces are left out: unwinding Python is slow, and has crashed programs.
_OPTIONS = ("--destroy-on-device-error", "kernel", "--show-backtrace", "device", "--print-limit", str(PRINT_LIMIT),
            "--target-processes", "application-only")  # fmt: skip

_UNCACHED_TOOLS = ("memcheck", "initcheck")
"""Tools that need every tensor in an allocation of its own: in a block of PyTorch's cache, what lies past a tensor
is memory that may be written."""

_UNSET = ("TRITON_INTERPRET", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING")
"""Settings under which kernels would not run on the device, or memory would lie otherwise."""

_FIRST_PORT, _PORTS = 49152, 20
_HEAD, _TAIL = 4 << 20, 64 << 10
_VERSION = re.compile(r"\b20\d\d\.\d+\.\d+")


@dataclass(frozen=True)
class SanitizerResult:
    """What the sanitizers say of one version."""

    checks: tuple[Check, ...]
    """One a tool."""
    failure: str | None = None
    """The first error of the version's own."""
    broken: str | None = None
    """Why a tool that is here says nothing, where no other found an error; nobody knows whether it is sound."""


def choose_sanitized_workloads(
    definition: Definition, workloads: Sequence[Workload], kernels: Mapping[str, set[str]]
) -> list[Workload]:
    """The fewest workloads that launch every kernel, smallest first.

    The smallest odd one and the smallest timed one are always among them; where that is larger than
    `MOST_ELEMENTS`, the largest one that is not. What launches a kernel that no smaller one does may be any size.

    Args:
        definition: of which they are; says how many elements each has.
        workloads: to choose from, timed and odd ones.
        kernels: workload name to the kernels that it launches, as far as known.
    """
    by_size = sorted(workloads, key=definition.elements)
    filled = [workload for workload in by_size if definition.elements(workload)]
    fitting = [workload for workload in filled if definition.elements(workload) <= MOST_ELEMENTS]
    firsts = [
        next((workload for workload in fitting if not workload.timed), None),
        next((workload for workload in fitting if workload.timed), fitting[-1] if fitting else None),
    ]
    always = {workload.name for workload in firsts if workload is not None}
    chosen = [workload for workload in filled if workload.name in always]
    for workload in filled:
        if _launched_kernels(kernels, [workload]) - _launched_kernels(kernels, chosen):
            chosen.append(workload)
    for workload in [workload for workload in chosen if workload.name not in always]:
        others = [other for other in chosen if other is not workload]
        if _launched_kernels(kernels, [workload]) <= _launched_kernels(kernels, others):
            chosen = others
    return sorted(chosen, key=by_size.index) or filled[:1]


def run_sanitizers(
    file: DefinitionFile,
    build: Build,
    language: str,
    workloads: Sequence[Workload],
    tell: Callable[[str], None],
    seconds: float = 60.0,
) -> SanitizerResult:
    """Call a version on fresh inputs of these workloads under every tool, each with `seconds` of time.

    Where the tool is missing, or cannot watch this device, its checks did not run; that is no failure.
    """
    program = find_compute_sanitizer()
    if program is None:
        lacks = "no compute-sanitizer on PATH or beside nvcc; it comes with the CUDA toolkit"
        return SanitizerResult(tuple(Check(name=name, ran=False, how=lacks) for name in TOOLS))
    tell(f"sanitizers: {', '.join(workload.name for workload in workloads)}")
    nonce = secrets.token_hex(16)
    with (
        tempfile.TemporaryDirectory(prefix="warpsmith-sanitizers-") as folder,
        tempfile.TemporaryDirectory(prefix="warpsmith-sanitizers-said-") as said,
    ):
        prepared = Path(folder).resolve() / "prepared"
        _prepare(prepared, file, build, language, workloads)
        one = _ToolRuns(program, prepared, Path(said), nonce, seconds, ", ".join(w.name for w in workloads))
        with ThreadPoolExecutor(len(TOOLS)) as pool:
            outcomes = list(pool.map(one.outcome, TOOLS))
    failure = next((outcome.failure for outcome in outcomes if outcome.failure), None)
    broken = next((outcome.broken for outcome in outcomes if outcome.broken), None)
    return SanitizerResult(tuple(outcome.check for outcome in outcomes), failure, None if failure else broken)


def find_compute_sanitizer() -> str | None:
    """Where compute-sanitizer is: on PATH, or beside nvcc."""
    nvcc = shutil.which("nvcc")
    beside = [str(Path(nvcc).parent), str(Path(nvcc).resolve().parent)] if nvcc else []
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(beside))


@dataclass(frozen=True)
class _ToolOutcome:
    """What one tool came to."""

    check: Check
    failure: str | None = None
    broken: str | None = None


@dataclass(frozen=True)
class _ToolRuns:
    """One run of all tools over the same calls."""

    program: str
    prepared: Path
    said: Path
    nonce: str
    seconds: float
    names: str

    def outcome(self, name: str) -> _ToolOutcome:
        """Run one tool and judge what it printed."""
        began = time.monotonic()
        in_time = self._run(name)
        report = sanitizer_report.read_sanitizer_output(_read_head_and_tail(self._output(name)), self.nonce)
        return self._judged(name, report, in_time, time.monotonic() - began)

    def _run(self, name: str) -> bool:
        """Whether it ended in time. Its output goes to a file: a pipe could be held open by what outlives it."""
        port = _FIRST_PORT + _PORTS * list(TOOLS).index(name)
        scratch = shutil.copytree(self.prepared, self.prepared.with_name(name), copy_function=os.link)
        command = [self.program, "--tool", name, *_OPTIONS, "--port", str(port), *TOOLS[name]]
        command += sanitizer_target.sanitizer_target_command(scratch, self.nonce)
        with self._output(name).open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=scratch,
                env=_environment(name in _UNCACHED_TOOLS),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            process.wait(self.seconds)
        except subprocess.TimeoutExpired:
            return False
        finally:
            _end(process)
            files.clear(scratch)
        return True

    def _output(self, name: str) -> Path:
        return self.said / f"{name}.txt"

    def _judged(self, name: str, report: SanitizerReport, in_time: bool, seconds: float) -> _ToolOutcome:
        own = [finding for finding in report.findings if not finding.library]
        total = max(report.errors or 0, len(report.findings))
        many = f" ({total} errors in all)" if total > 1 else ""
        if own:
            failure = f"{name}: {own[0]}{many}"
            return _ToolOutcome(Check(name=name, ran=True, how=failure), failure=failure)
        if report.unprinted:
            # The version's own errors could stand among those that the tool did not print.
            failure = (
                f"{name}: {report.findings[0] if report.findings else 'errors'}, and more than are printed{many}"
            )
            return _ToolOutcome(Check(name=name, ran=True, how=failure), failure=failure)
        if any(sanitizer_report.UNSUPPORTED in complaint for complaint in report.complaints):
            how = "compute-sanitizer says `Device not supported`: of this GPU, or of the virtual machine around it"
            return _ToolOutcome(Check(name=name, ran=False, how=how))
        why = self._broken(report, in_time)
        if why:
            return _ToolOutcome(Check(name=name, ran=False, how=why), broken=f"{name} says nothing: {why}")
        version = f" ({_version(self.program)})"
        how = f"0 errors at {self.names} in {seconds:.1f} s{version}{_side_notes(report)}"
        return _ToolOutcome(Check(name=name, ran=True, how=how))

    def _broken(self, report: SanitizerReport, in_time: bool) -> str:
        """Why the silence of this run proves nothing; empty: it does."""
        if not in_time:
            return f"it did not end within {self.seconds:g} s"
        if report.failed:
            return f"the version failed under it, at {report.failed}"
        if report.complaints:
            return report.complaints[0]
        if not report.done:
            return f"the program did not come to its end{f'; it last said: {report.said}' if report.said else ''}"
        if report.errors is None:
            return "it ended without its summary"
        if report.errors and not report.findings:
            return f"it counted {report.errors} errors and told none"
        return ""


def _prepare(
    scratch: Path, file: DefinitionFile, build: Build, language: str, workloads: Sequence[Workload]
) -> None:
    """Lay out all that the program needs: the sandbox hides the places where it is kept."""
    scratch.mkdir()
    cases: list[WorkloadInputs] = []
    number, seed = itertools.count(), secrets.randbits(62)
    for workload in workloads:
        drawn = Inputs(file, workload, seed + len(cases), "cpu").draw()
        inputs = {
            name: sanitizer_target.store_tensor(tensor, scratch, f"input-{next(number)}")
            for name, tensor in drawn.items()
        }
        cases.append(WorkloadInputs(workload=workload, inputs=inputs))
    for path in {build.source, build.artifact}:
        shutil.copy(path, scratch / path.name)
    blind = file.definition.model_copy(update={"tolerance": Tolerance()})
    request = SanitizerRequest(
        definition=blind,
        language=language,
        source=build.source.name,
        artifact=build.artifact.name,
        device="cuda",
        cases=tuple(cases),
    )
    sanitizer_target.write_request(scratch, request)


def _environment(exact: bool) -> dict[str, str]:
    """What tool and program see: no credentials, and the allocator that the tool needs."""
    kept = {
        name: value for name, value in target_program.without_secrets(os.environ).items() if name not in _UNSET
    }
    kept |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C"}
    return kept | ({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"} if exact else {})


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the tool's process group, whether or not the tool itself has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read_head_and_tail(path: Path) -> str:
    """The beginning and the end of an output: what lies between was not printed by the tool."""
    with path.open("rb") as output:
        head = output.read(_HEAD)
        output.seek(max(_HEAD, path.stat().st_size - _TAIL))
        return (head + output.read()).decode(errors="replace")


def _side_notes(report: SanitizerReport) -> str:
    """What deserves a look and fails nobody."""
    noted = [f"in a library: {report.findings[0]}"] if report.findings else []
    noted += [f"a warning: {report.warnings[0]}"] if report.warnings else []
    return f"; noted {'; '.join(noted)}" if noted else ""


def _version(program: str) -> str:
    try:
        found = _VERSION.search(tool.run_tool([program, "--version"], 5.0).output)
    except (OSError, TimeoutError):
        found = None
    return found[0] if found else "version unknown"


def _launched_kernels(kernels: Mapping[str, set[str]], workloads: Sequence[Workload]) -> set[str]:
    return set().union(*(kernels.get(workload.name, set()) for workload in workloads))
