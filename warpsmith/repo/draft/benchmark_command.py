"""Benchmark of a repository: pytest-benchmark, asv, a script, or a skeleton that measures nothing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from warpsmith.repo.draft.build_system import BuildSystem
from warpsmith.repo.draft.draft_line import DraftLine
from warpsmith.repo.draft.repository_files import RepositoryFiles

SCRIPT = "warpsmith_bench.py"
"""Script that a draft may add to the repository's root."""

_SKELETONS = Path(__file__).parent / "skeletons"
_FIXTURE = re.compile(r"def test_\w+\([^)]*\bbenchmark\b")
_HEADER = re.compile(r"""["']([A-Za-z_]\w*(?:,\s*[A-Za-z_]\w*)+)(?:\\n)?["']""")
_MEASURED = re.compile(
    r"(^|_)(ns|us|ms|s|sec|secs|seconds?|time|latency|gbps|gflops|tflops|throughput)($|_)", re.I
)
_HIGHER = re.compile(r"gbps|flops|throughput|per_s", re.I)


@dataclass(frozen=True)
class BenchmarkDraft:
    """Lines of the settings on the benchmark, and the script to add."""

    lines: tuple[DraftLine, ...]
    """The lines."""
    script: str | None
    """Text of the script to write to `SCRIPT`; None if the repository has its own."""


def draft_benchmark(files: RepositoryFiles, kernel: str, build: BuildSystem) -> BenchmarkDraft:
    """Draft the benchmark: pytest-benchmark, asv, a script that prints CSV, any script, or a skeleton."""
    path = f"PYTHONPATH={build.search_path} " if build.search_path else ""
    fixtures = [name for name in files.list_ending(".py") if _FIXTURE.search(files.text(name))]
    if fixtures:
        source = f"{', '.join(fixtures[:3])}: tests with the fixture `benchmark`"
        doubt = "pytest-benchmark must be installed"
        return _with_script(path, "pytest_benchmark_table.py", {"FILES": fixtures}, source, doubt)
    asv = next(iter(files.list_named("asv.conf.json")), None)
    if asv:
        folder = _asv_folder(files, asv)
        doubt = "the script calls asv's `time_` functions itself, without asv's environments"
        return _with_script(path, "asv_table.py", {"FOLDER": folder}, f"{asv}, with the folder {folder}", doubt)
    scripts = _scripts(files, kernel)
    for name in scripts:
        header = _find_header(files.text(name))
        if header:
            return BenchmarkDraft(_script_lines(path, name, header), None)
    if scripts:
        return BenchmarkDraft(_script_lines(path, scripts[0], None), None)
    doubt = f"no benchmark was recognised. {SCRIPT} measures nothing and fails until you complete it"
    return _with_script(path, "empty_table.py", {}, f"`warpsmith repo init`, which adds {SCRIPT}", doubt)


def _with_script(path: str, skeleton: str, values: dict[str, object], source: str, doubt: str) -> BenchmarkDraft:
    text = (_SKELETONS / skeleton).read_text()
    for name, value in values.items():
        line = re.search(rf"^{name}: [^=]+ = .*$", text, re.MULTILINE)
        if line:
            assignment = f"{line[0].partition(' = ')[0]} = {json.dumps(value)}"
            text = text[: line.start()] + assignment + text[line.end() :]
    keys = re.search(r"^KEYS = (\(.*\))$", text, re.M)
    columns = re.findall(r"\w+", keys[1]) if keys else []
    lines = (
        DraftLine("benchmark", f"{path}python {SCRIPT}", source, doubt),
        DraftLine("keys", columns, f"{SCRIPT}, KEYS", "" if values else "name what distinguishes your workloads"),
        DraftLine("metrics", {"ms": "lower"}, SCRIPT),
        DraftLine("quick", {"environment": "BENCH_ROWS"}, f"{SCRIPT}, which runs only the rows in that variable"),
    )
    return BenchmarkDraft(lines, text)


def _script_lines(path: str, name: str, header: list[str] | None) -> tuple[DraftLine, ...]:
    command = f"{path}python {name}"
    if header is None:
        doubt = "it was not seen to print a table in CSV with a header, which a judgement reads; make it print one"
        return (
            DraftLine("benchmark", command, f"the name of {name}", doubt),
            DraftLine("keys", ["workload"], "", "name the columns that identify a row"),
            DraftLine("metrics", {"ms": "lower"}, "", "name the measured columns"),
        )
    measured = [column for column in header if _MEASURED.search(column)] or header[-1:]
    guess = "" if any(_MEASURED.search(column) for column in header) else "the last column is a guess"
    keys = [
        column for column in header if column not in measured and column.lower() not in ("check", "ok", "status")
    ]
    better = {column: "higher" if _HIGHER.search(column) else "lower" for column in measured}
    source = f"the header `{','.join(header)}` in {name}"
    return (
        DraftLine("benchmark", command, f"the name of {name}"),
        DraftLine("keys", keys or header[:1], source, "make sure that together they identify a row"),
        DraftLine("metrics", better, source, guess or "make sure of the directions"),
    )


def _scripts(files: RepositoryFiles, kernel: str) -> list[str]:
    """List benchmark scripts, those named after the kernel first."""
    stem = PurePosixPath(kernel).stem.strip("_").lower()
    scripts = [
        path
        for path in files.list_ending(".py")
        if re.search(r"bench", PurePosixPath(path).stem)
        or {"benchmark", "benchmarks"} & set(PurePosixPath(path).parts[:-1])
    ]
    scripts = [path for path in scripts if not re.match(r"test_|conftest|__init__", PurePosixPath(path).name)]
    return sorted(scripts, key=lambda path: (stem not in path.lower(), path.count("/"), path))


def _find_header(text: str) -> list[str] | None:
    """Find a header of CSV in a script's strings: the names of columns, one of which is a time or a rate."""
    headers = [re.split(r",\s*", match[1]) for match in _HEADER.finditer(text)]
    return next((header for header in headers if any(_MEASURED.search(column) for column in header)), None)


def _asv_folder(files: RepositoryFiles, path: str) -> str:
    match = re.search(r'"benchmark_dir"\s*:\s*"([^"]+)"', files.text(path))
    folder = PurePosixPath(path).parent / (match[1] if match else "benchmarks")
    return folder.as_posix()
