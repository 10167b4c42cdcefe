"""Files of AMD's profilers that have no times or counters of launches, or none that can be read here."""

from __future__ import annotations

from pathlib import Path

_TRACE = "has no times of kernels"
_SUMMARY = "has sums over launches, not each launch"

_KINDS = (
    (("hip_api_trace.csv", "hip_runtime_api_trace.csv", "hip_compiler_api_trace.csv"), _TRACE),
    (("hsa_api_trace.csv", "hsa_core_api_trace.csv", "rccl_api_trace.csv", "marker_api_trace.csv"), _TRACE),
    (("memory_copy_trace.csv", "memory_allocation_trace.csv", "scratch_memory_trace.csv"), _TRACE),
    (("_stats.csv", ".stats.csv"), _SUMMARY),
    (("agent_info.csv",), "describes devices alone"),
    (("pc_sampling_host_trap.csv", "pc_sampling_stochastic.csv"), "has samples, without times of kernels"),
    ((".pftrace",), "is a trace for Perfetto's viewer, which is not read here"),
    ((".otf2",), "is a trace for OTF2's viewers, which is not read here"),
    ((".att",), "is a raw thread trace; `rocprofv3 --att` decodes it where its decoder is installed"),
    (("results.csv",), "is of the older `rocprof`, whose columns are not read here"),
)
"""Endings of names, and what such files are."""

ASK_FOR = "`rocprofv3 --kernel-trace --pmc COUNTER... --output-format csv -- PROGRAM`"
"""Command that writes files with all that is read."""


def describe_unread(path: Path) -> str:
    """Say what a file of AMD's profilers is, or return an empty string for files that are not theirs."""
    return next((text for endings, text in _KINDS if path.name.endswith(endings)), "")


def describe_unread_files(folder: Path) -> str:
    """Name one file of each unread kind in a folder, or return an empty string."""
    kinds: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if text := describe_unread(path):
            kinds.setdefault(text, path)
    return "; ".join(f"{path.relative_to(folder)} {text}" for text, path in kinds.items())
