"""Sanitizers of the gate: all four tools of NVIDIA's compute-sanitizer run at once over calls of a version.

They find mistakes, not malice, since a version can detect them.
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
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from warpsmith.core import gate_rules
from warpsmith.core.definition import Definition, Tolerance, Workload
from warpsmith.core.trust import Check
from warpsmith.lab.instrumented import sanitizer_report, sanitizer_target
from warpsmith.lab.instrumented.sanitizer_report import SanitizerReport
from warpsmith.lab.instrumented.sanitizer_target import SanitizerRequest, WorkloadInputs
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.workers import compiled_cache
from warpsmith.lab.workers.scratch import remove_scratch
from warpsmith.languages.base import Build
from warpsmith.languages.shared import tool
from warpsmith.passed_environment import tool_environment
from warpsmith.temporary import TemporaryFolder

PRINT_LIMIT = 1000
"""Number of errors after which a tool stops printing; it continues to count."""

TOOLS: Mapping[str, tuple[str, ...]] = {
    # Padding: without it, a write past one buffer may land in the next one, where it is allowed. Errors of the
    # CUDA API are left out: PyTorch and Triton probe for features that a driver lacks, and real errors raise
    # exceptions.
    "memcheck": ("--padding", str(gate_rules.SANITIZER_PADDING_BYTES), "--report-api-errors", "no"),
    "racecheck": (),
    # Copies are left out: only a kernel that reads unwritten memory is an error.
    "initcheck": ("--check-api-memory-access", "no"),
    "synccheck": (),
}
"""Tools with their own options, in the order in which their errors are reported."""

# A kernel ends at its first error and the program continues, so that an error in a library's kernel hides no
# other. Host backtraces are left out: unwinding Python is slow and has crashed programs.
_OPTIONS = ("--destroy-on-device-error", "kernel", "--show-backtrace", "device", "--print-limit", str(PRINT_LIMIT),
            "--target-processes", "application-only")  # fmt: skip

_UNCACHED_TOOLS = ("memcheck", "initcheck")
"""Tools that need every tensor in its own allocation: in a block of PyTorch's cache, the memory past a tensor may
be written."""

_UNSET = ("TRITON_INTERPRET", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING")
"""Environment variables to remove: they keep kernels off the device or change how memory is allocated."""

_FIRST_PORT, _PORTS = 49152, 20
_HEAD, _TAIL = 4 << 20, 64 << 10
_VERSION = re.compile(r"\b20\d\d\.\d+\.\d+")


@dataclass(frozen=True)
class SanitizerResult:
    """Results of the sanitizers for one version."""

    checks: tuple[Check, ...]
    """Checks, one per tool."""
    failure: str | None = None
    """First error in the version's own kernels."""
    broken: str | None = None
    """Reason why an available tool gave no result, if no tool found an error; the version may then be unsound."""


def choose_sanitized_workloads(
    definition: Definition, workloads: Sequence[Workload], kernels: Mapping[str, set[str]]
) -> list[Workload]:
    """Choose the fewest workloads that launch every kernel, sorted by size.

    The smallest odd workload and the smallest timed one within `gate_rules.SANITIZED_ELEMENTS` are always chosen.
    If no timed one is that small, the largest workload that is takes its place. A workload that launches a kernel
    that no smaller one launches may have any size.

    Args:
        definition: the definition that the workloads belong to; it gives their numbers of elements.
        workloads: timed and odd workloads to choose from.
        kernels: kernels that each workload launches, by workload name, as far as known.
    """
    by_size = sorted(workloads, key=definition.elements)
    filled = [workload for workload in by_size if definition.elements(workload)]
    fitting = [workload for workload in filled if definition.elements(workload) <= gate_rules.SANITIZED_ELEMENTS]
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
    report: Callable[[str], None],
    compiled: Path | None = None,
    seconds: float = 60.0,
) -> SanitizerResult:
    """Call a version on fresh inputs of these workloads under every tool, with a limit of `seconds` for each tool.

    Kernels that workers of the same source left in `compiled` are not compiled again.

    If the tool is missing or does not support this device, its checks count as not run; that is not a failure. Nor
    is the limit where a workload is beyond `gate_rules.SANITIZED_ELEMENTS`: a tool may take minutes there.
    """
    program = find_compute_sanitizer()
    if program is None:
        gap = "no compute-sanitizer on PATH or next to nvcc; it comes with the CUDA toolkit"
        return SanitizerResult(tuple(Check(name=name, ran=False, how=gap) for name in TOOLS))
    report(f"sanitizers: {', '.join(workload.name for workload in workloads)}")
    nonce = secrets.token_hex(16)
    with (
        TemporaryFolder("sanitizers") as folder,
        TemporaryFolder("sanitizers-said") as output,
    ):
        prepared = Path(folder).resolve() / "prepared"
        _prepare(prepared, file, build, language, workloads)
        names = ", ".join(workload.name for workload in workloads)
        large = any(file.definition.elements(each) > gate_rules.SANITIZED_ELEMENTS for each in workloads)
        runs = _ToolRuns(program, prepared, Path(output), nonce, seconds, names, large, compiled)
        with ThreadPoolExecutor(len(TOOLS)) as pool:
            outcomes = list(pool.map(runs.outcome, TOOLS))
    failure = next((outcome.failure for outcome in outcomes if outcome.failure), None)
    broken = next((outcome.broken for outcome in outcomes if outcome.broken), None)
    return SanitizerResult(tuple(outcome.check for outcome in outcomes), failure, None if failure else broken)


def find_compute_sanitizer() -> str | None:
    """Return the path of compute-sanitizer: on PATH, or next to nvcc."""
    nvcc = shutil.which("nvcc")
    folders = [str(Path(nvcc).parent), str(Path(nvcc).resolve().parent)] if nvcc else []
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(folders))


@dataclass(frozen=True)
class _ToolOutcome:
    """Outcome of one tool."""

    check: Check
    failure: str | None = None
    broken: str | None = None


@dataclass(frozen=True)
class _ToolRuns:
    """Runs of all tools over the same calls."""

    program: str
    prepared: Path
    output: Path
    nonce: str
    seconds: float
    names: str
    large: bool
    """True if a workload is larger than those that the limit is meant for."""
    compiled: Path | None

    def outcome(self, name: str) -> _ToolOutcome:
        """Run one tool and judge what it printed."""
        began = time.monotonic()
        in_time = self._run(name)
        report = sanitizer_report.read_sanitizer_output(_read_head_and_tail(self._output(name)), self.nonce)
        return self._judged(name, report, in_time, time.monotonic() - began)

    def _run(self, name: str) -> bool:
        """Run one tool and return whether it ended in time.

        Its output goes to a file, since a process that outlives it could hold a pipe open.
        """
        port = _FIRST_PORT + _PORTS * list(TOOLS).index(name)
        scratch = shutil.copytree(self.prepared, self.prepared.with_name(name), copy_function=os.link)
        if self.compiled is not None:
            compiled_cache.restore_compiled(self.compiled, scratch)
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
            remove_scratch(scratch)
        return True

    def _output(self, name: str) -> Path:
        return self.output / f"{name}.txt"

    def _judged(self, name: str, report: SanitizerReport, in_time: bool, seconds: float) -> _ToolOutcome:
        own = [finding for finding in report.findings if not finding.library]
        total = max(report.errors or 0, len(report.findings))
        total_note = f" ({total} errors in all)" if total > 1 else ""
        if own:
            failure = f"{name}: {own[0]}{total_note}"
            return _ToolOutcome(Check(name=name, ran=True, how=failure), failure=failure)
        if report.unprinted:
            # The version's own errors may be among those that the tool did not print.
            first = report.findings[0] if report.findings else "errors"
            failure = f"{name}: {first}, and more that were not printed{total_note}"
            return _ToolOutcome(Check(name=name, ran=True, how=failure), failure=failure)
        if any(sanitizer_report.UNSUPPORTED in complaint for complaint in report.complaints):
            unsupported = (
                "compute-sanitizer says `Device not supported` about this GPU or the virtual machine around it"
            )
            return _ToolOutcome(Check(name=name, ran=False, how=unsupported))
        reason = self._broken(report, in_time)
        if not in_time and self.large:
            return _ToolOutcome(Check(name=name, ran=False, how=f"{reason} at {self.names}"))
        if reason:
            return _ToolOutcome(Check(name=name, ran=False, how=reason), broken=f"{name} gave no result: {reason}")
        version = f" ({_version(self.program)})"
        success = f"0 errors at {self.names} in {seconds:.1f} s{version}{_side_notes(report)}"
        return _ToolOutcome(Check(name=name, ran=True, how=success))

    def _broken(self, report: SanitizerReport, in_time: bool) -> str:
        """Return why a run without errors proves nothing; empty if it does prove something."""
        if not in_time:
            return f"it did not end within {self.seconds:g} s"
        if report.failed:
            return f"the version failed under it, at {report.failed}"
        if report.complaints:
            return report.complaints[0]
        if not report.finished:
            last = f"; its last output was: {report.last_line}" if report.last_line else ""
            return f"the program did not reach its end{last}"
        if report.errors is None:
            return "it ended without a summary"
        if report.errors and not report.findings:
            return f"it counted {report.errors} errors and printed none"
        return ""


def _prepare(
    scratch: Path, file: DefinitionFile, build: Build, language: str, workloads: Sequence[Workload]
) -> None:
    """Copy everything that the program needs into one folder, since the sandbox hides the original files."""
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
    without_tolerance = file.definition.model_copy(update={"tolerance": Tolerance()})
    request = SanitizerRequest(
        definition=without_tolerance,
        language=language,
        source=build.source.name,
        artifact=build.artifact.name,
        device="cuda",
        cases=tuple(cases),
    )
    sanitizer_target.write_request(scratch, request)


def _environment(exact: bool) -> dict[str, str]:
    """Return the environment of tool and program: no secrets, and the allocator that the tool needs."""
    environment = {name: value for name, value in tool_environment().items() if name not in _UNSET}
    environment |= {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C",
    }
    return environment | ({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"} if exact else {})


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the rest of the tool's process group, even if the tool itself has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read_head_and_tail(path: Path) -> str:
    """Return the beginning and the end of an output; the tool prints nothing in between."""
    with path.open("rb") as output:
        head = output.read(_HEAD)
        output.seek(max(_HEAD, path.stat().st_size - _TAIL))
        return (head + output.read()).decode(errors="replace")


def _side_notes(report: SanitizerReport) -> str:
    """Describe findings that deserve a look but fail no version."""
    notes = [f"in a library: {report.findings[0]}"] if report.findings else []
    notes += [f"a warning: {report.warnings[0]}"] if report.warnings else []
    return f"; noted {'; '.join(notes)}" if notes else ""


def _version(program: str) -> str:
    try:
        match = _VERSION.search(tool.run_tool([program, "--version"], 5.0).output)
    except (OSError, TimeoutError):
        match = None
    return match[0] if match else "version unknown"


def _launched_kernels(kernels: Mapping[str, set[str]], workloads: Sequence[Workload]) -> set[str]:
    return set().union(*(kernels.get(workload.name, set()) for workload in workloads))
