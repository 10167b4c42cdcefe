"""Reader of compute-sanitizer's output: errors, complaints of the tool itself, and the progress of the program.

The tool starts its lines with `=========`. One space after that begins a report, and more spaces continue it:

    ========= Invalid __global__ write of size 4 bytes
    =========     at scale+0x1f0 in v1.py:12
    =========     by thread (65,0,0) in block (0,0,0)
    =========     Access to 0x7bd889c03041 is out of bounds
    ========= ERROR SUMMARY: 1 error

racecheck names both accesses in the lines of the report, and ends with `RACECHECK SUMMARY`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

UNSUPPORTED = "Device not supported"
"""Message of the tool about a device, or a virtual machine around it, that it does not support."""

_TOOL = re.compile(r"(?<!=)=========(?!=)(.*)")
_LOCATION = re.compile(r"(?:\bat |Device Frame: ?)(?P<kernel>\S.*?)[+:]0x[0-9a-f]+(?: in (?P<line>\S+))?")
_THREAD = re.compile(r"by thread \(.*?\) in block \(.*?\)")
_FAULT = re.compile(r"is (out of bounds|misaligned)")
_ERRORS = re.compile(r"ERROR SUMMARY: ([\d,]+) errors?\b(?! were)|RACECHECK SUMMARY: .*\(([\d,]+) errors?\b")
_UNPRINTED = re.compile(r"ERROR SUMMARY: ([\d,]+) errors? were not printed|([\d,]+) hazards? were not printed")
_HEADLINES = re.compile(r"COMPUTE-SANITIZER|(ERROR|RACECHECK|LEAK) SUMMARY|Target application returned an error")
_ENDED = re.compile(r"Error: process didn't terminate successfully", re.IGNORECASE)
_LEVEL = re.compile(r"^(error|warning): ", re.IGNORECASE)
_WARNING = re.compile(r"warning: ", re.IGNORECASE)
_KINDS = re.compile(
    r"(error: )?(Invalid|Uninitialized|Race|Potential|Barrier|Malloc|Warpgroup|Deadlock|Program hit|.*exception)",
    re.IGNORECASE,
)
_LIBRARY = re.compile(
    # C++ names, which Triton's kernels never have, and the few plain names that NVIDIA's libraries generate.
    r"(void |std::enable_if<.*?>::type )?("
    r"(at|c10|cub|thrust|cublas|cublasLt|cudnn|cusparse|cusolver|pytorch_flash|at_cuda_detail)::|"
    r"cutlass::Kernel2?<cutlass_|cutlass__5x_|internal::gemvx::|multi_tensor_apply_kernel<|"
    r"\(anonymous namespace\)::(softmax_warp|elementwise_kernel)|"
    r"(gemmk1|gemvNSP|gemv2[NT]|gemmSN_\w+|splitKreduce)_kernel<)|"
    r"(nvjet_\w*\d+x\d+|sm\d+_xmma_|cutlass_\d+_\w*(tensorop|wmma|simt)|(ampere|volta|turing|maxwell)_\w*gemm_\w*\d+x\d+|"
    r"ncclDevKernel)"
)


@dataclass(frozen=True)
class SanitizerFinding:
    """One error that the tool detected."""

    kind: str
    """Kind of error, in the tool's words."""
    kernel: str = ""
    """Name of the kernel; empty if the tool does not name it."""
    line: str = ""
    """File and line, if known."""
    thread: str = ""
    """Thread that made the error, if known."""
    workload: str = ""
    """Workload that was running when the error was printed."""

    @property
    def library(self) -> bool:
        """Return whether the kernel belongs to PyTorch or to one of NVIDIA's libraries, and not to the version."""
        return _LIBRARY.match(self.kernel) is not None

    def __str__(self) -> str:
        kernel = f" in `{self.kernel[:120]}`" if self.kernel else ""
        line = f" ({self.line})" if self.line else ""
        thread = f" {self.thread}" if self.thread else ""
        return f"{self.kind}{kernel}{line}{thread}{f' at {self.workload}' if self.workload else ''}"[:400]


@dataclass
class SanitizerReport:
    """Output of one run of one tool."""

    findings: list[SanitizerFinding] = field(default_factory=list)
    """Errors in the order of the output."""
    warnings: list[SanitizerFinding] = field(default_factory=list)
    """Warnings of the tool, such as races inside a warp."""
    complaints: list[str] = field(default_factory=list)
    """Steps that the tool could not do; it may have missed errors because of them."""
    errors: int | None = None
    """Total number of errors that the tool counted; None if it printed no summary."""
    unprinted: int = 0
    """Errors that were counted but not printed."""
    finished: bool = False
    """True if the program reached its end."""
    failed: str = ""
    """Failure that the program reported: the workload and the error."""
    last_line: str = ""
    """Last line of the program's other output."""


def read_sanitizer_output(output: str, nonce: str) -> SanitizerReport:
    """Read the combined output of tool and program; only lines that start with the `nonce` are the program's
    own."""
    report, workload, block = SanitizerReport(), "", list[str]()
    for line in [*output.splitlines(), "========="]:
        tool = _TOOL.search(line)
        text = tool[1] if tool else ""
        if block and not text.startswith("  "):
            _sort_block(report, block, workload)
            block = []
        if text.startswith("  ") and block:
            block.append(text.strip())
        elif text.strip():
            block = [text.strip()]
        elif line.startswith(f"{nonce} at "):
            workload = line.removeprefix(f"{nonce} at ")
        elif line.startswith(f"{nonce} failed "):
            report.failed = line.removeprefix(f"{nonce} failed ")
        elif line == f"{nonce} done":
            report.finished = True
        elif line.strip() and not tool:
            report.last_line = "".join(char for char in line.strip() if char.isprintable())[:200]
    return report


def _sort_block(report: SanitizerReport, block: list[str], workload: str) -> None:
    """Add one block of lines of the tool to the report."""
    head = block[0]
    if _HEADLINES.match(head):
        report.unprinted += sum(_numbers(_UNPRINTED, head))
        for errors in _numbers(_ERRORS, head):
            report.errors = errors
    elif _ENDED.match(head):
        report.last_line = "the process did not terminate successfully"
    elif _WARNING.search(head):
        report.warnings.append(_finding(block, workload))
    elif (finding := _finding(block, workload)).kernel or finding.thread or _KINDS.match(head):
        report.findings.append(finding)
    else:
        report.complaints.append(" ".join(block)[:300])


def _numbers(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    for match in pattern.finditer(text):
        yield int(next(filter(None, match.groups())).replace(",", ""))


def _finding(block: list[str], workload: str) -> SanitizerFinding:
    head, rest = _LEVEL.sub("", block[0]), block[1:]
    locations = [location for text in (head, *rest) if (location := _LOCATION.search(text))]
    frames = [location for location in locations if location[0].startswith("Device Frame")]
    location = frames[-1] if frames else next(iter(locations), None)  # The outermost frame is the kernel.
    thread = next((match[0] for text in rest if (match := _THREAD.search(text))), "")
    fault = next((f": {match[1]}" for text in rest if (match := _FAULT.search(text))), "")
    return SanitizerFinding(
        kind=(head.partition(" at ")[0] + fault)[:200],
        kernel=location["kernel"] if location else "",
        line=(location["line"] or "") if location else "",
        thread=thread,
        workload=workload,
    )
