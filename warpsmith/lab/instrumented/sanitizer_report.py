"""What compute-sanitizer printed, read: errors, complaints of the tool itself, and how far the program came.

The tool starts its lines with `=========`. One space after that begins a report, more continue it:

    ========= Invalid __global__ write of size 4 bytes
    =========     at scale+0x1f0 in v1.py:12
    =========     by thread (65,0,0) in block (0,0,0)
    =========     Access to 0x7bd889c03041 is out of bounds
    ========= ERROR SUMMARY: 1 error

racecheck names both accesses in the report's own lines, and ends with `RACECHECK SUMMARY`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

UNSUPPORTED = "Device not supported"
"""What the tool says of a device, or of a virtual machine around it, that it cannot watch."""

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
    # C++ names, which no kernel of Triton has, and the few plain names that NVIDIA's libraries generate.
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
    """One error that the tool saw."""

    kind: str
    """What it is, in the tool's words."""
    kernel: str = ""
    """The kernel's name; empty where the tool does not say."""
    line: str = ""
    """File and line, where known."""
    thread: str = ""
    """The thread that did it, where known."""
    workload: str = ""
    """The workload that was last begun when it was printed."""

    @property
    def library(self) -> bool:
        """Whether the kernel is one of PyTorch's or of NVIDIA's libraries, and so not the version's own."""
        return _LIBRARY.match(self.kernel) is not None

    def __str__(self) -> str:
        where = f" in `{self.kernel[:120]}`" if self.kernel else ""
        line = f" ({self.line})" if self.line else ""
        thread = f" {self.thread}" if self.thread else ""
        return f"{self.kind}{where}{line}{thread}{f' at {self.workload}' if self.workload else ''}"[:400]


@dataclass
class SanitizerReport:
    """One run of one tool."""

    findings: list[SanitizerFinding] = field(default_factory=list)
    """Errors, in order."""
    warnings: list[SanitizerFinding] = field(default_factory=list)
    """What the tool only warns of, such as races inside a warp."""
    complaints: list[str] = field(default_factory=list)
    """What the tool could not do; what it missed by that is not known."""
    errors: int | None = None
    """Errors in all as the tool counted them; None: it never came to its summary."""
    unprinted: int = 0
    """Errors that were counted and not printed."""
    done: bool = False
    """Whether the program came to its end."""
    failed: str = ""
    """What the program said of its failure: the workload and the error."""
    said: str = ""
    """The last line of the program's other output."""


def read_sanitizer_output(output: str, nonce: str) -> SanitizerReport:
    """Read the output of tool and program together; only lines with the `nonce` are the program's own word."""
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
            report.done = True
        elif line.strip() and not tool:
            report.said = "".join(char for char in line.strip() if char.isprintable())[:200]
    return report


def _sort_block(report: SanitizerReport, block: list[str], workload: str) -> None:
    """Sort one report of the tool."""
    head = block[0]
    if _HEADLINES.match(head):
        report.unprinted += sum(_numbers(_UNPRINTED, head))
        for errors in _numbers(_ERRORS, head):
            report.errors = errors
    elif _ENDED.match(head):
        report.said = "the process did not end well"
    elif _WARNING.search(head):
        report.warnings.append(_finding(block, workload))
    elif (found := _finding(block, workload)).kernel or found.thread or _KINDS.match(head):
        report.findings.append(found)
    else:
        report.complaints.append(" ".join(block)[:300])


def _numbers(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    for match in pattern.finditer(text):
        yield int(next(filter(None, match.groups())).replace(",", ""))


def _finding(block: list[str], workload: str) -> SanitizerFinding:
    head, rest = _LEVEL.sub("", block[0]), block[1:]
    places = [place for text in (head, *rest) if (place := _LOCATION.search(text))]
    frames = [place for place in places if place[0].startswith("Device Frame")]
    place = frames[-1] if frames else next(iter(places), None)  # the outermost frame is the kernel
    thread = next((match[0] for text in rest if (match := _THREAD.search(text))), "")
    fault = next((f": {match[1]}" for text in rest if (match := _FAULT.search(text))), "")
    return SanitizerFinding(
        kind=(head.partition(" at ")[0] + fault)[:200],
        kernel=place["kernel"] if place else "",
        line=(place["line"] or "") if place else "",
        thread=thread,
        workload=workload,
    )
