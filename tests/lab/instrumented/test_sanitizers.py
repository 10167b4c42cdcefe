from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
import torch
from lab_samples import GIVEN, SQUARE
from test_sanitizer_report import BARRIER, CLEAN, OUT_OF_BOUNDS, RACE, UNINITIALIZED, WARNING

from warpsmith import landlock
from warpsmith.core import gate_rules
from warpsmith.core.definition import Tolerance, Workload
from warpsmith.lab.instrumented import sanitizer_target, sanitizers
from warpsmith.lab.sandbox import walls
from warpsmith.languages.base import Build

PLAIN = "def run(x):\n    return x * x\n"
CLEAN_RACES = CLEAN.replace(
    "ERROR SUMMARY: 0 errors", "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"
)

FAKE = """\
#!/bin/sh
# Plays what was recorded: the tool is the word after --tool, the nonce the last one.
[ "$1" = --version ] && { echo 'Version 2025.4.1.0 (build 1) (public-release)'; exit 0; }
tool=$2
echo "$@" > "$(dirname "$0")/$tool.args"
env > "$(dirname "$0")/$tool.env"
for nonce; do :; done
sed "s/NONCE/$nonce/g" "$(dirname "$0")/$tool.txt"
[ -f "$(dirname "$0")/$tool.hangs" ] && exec sleep 60
exit 0
"""


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A folder on PATH with a compute-sanitizer that plays `<tool>.txt`; by default all are clean."""
    folder = tmp_path / "cuda"
    folder.mkdir()
    (folder / "compute-sanitizer").write_text(FAKE)
    (folder / "compute-sanitizer").chmod(0o755)
    for tool in sanitizers.TOOLS:
        (folder / f"{tool}.txt").write_text(CLEAN_RACES if tool == "racecheck" else CLEAN)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.fixture
def judge(workshop):
    """`judge(...)`: run the sanitizers on a plain version."""

    def run(**changes):
        file = workshop.load("square", SQUARE)
        path = workshop.solution(PLAIN, "triton").path
        workloads = file.definition.workloads
        return sanitizers.run_sanitizers(
            file, Build(path, path, ()), "triton", workloads, lambda _: None, **changes
        )

    return run


def test_clean_runs_of_all_tools(tools, judge):
    found = judge()
    assert (found.failure, found.broken) == (None, None)
    assert [check.name for check in found.checks] == ["memcheck", "racecheck", "initcheck", "synccheck"]
    assert all(check.ran for check in found.checks)
    assert found.checks[0].how.startswith("0 errors at small, large in ")
    assert found.checks[0].how.endswith("s (2025.4.1)")


def test_what_the_tools_are_told(tools, judge, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("SOME_SECRET", "1")
    judge()
    memcheck, initcheck = (tools / "memcheck.args").read_text(), (tools / "initcheck.args").read_text()
    assert "--padding 4096" in memcheck
    assert "--check-api-memory-access no" in initcheck
    ports = [(tools / f"{tool}.args").read_text().partition("--port ")[2].split()[0] for tool in sanitizers.TOOLS]
    assert len(set(ports)) == 4
    around = {tool: (tools / f"{tool}.env").read_text() for tool in sanitizers.TOOLS}
    assert [tool for tool in around if "PYTORCH_NO_CUDA_MEMORY_CACHING=1" in around[tool]] == [
        "memcheck",
        "initcheck",
    ]
    assert "TRITON_INTERPRET" not in around["memcheck"]
    assert "SECRET" not in around["memcheck"]


def test_the_first_error_in_the_order_of_the_tools_is_the_failure(tools, judge):
    (tools / "synccheck.txt").write_text(BARRIER)
    (tools / "memcheck.txt").write_text(OUT_OF_BOUNDS)
    (tools / "racecheck.txt").write_text(RACE)
    (tools / "initcheck.txt").write_text("")
    found = judge()
    assert found.broken is None
    assert found.failure is not None
    assert found.failure.startswith("memcheck: Invalid __global__ write of size 4 bytes: out of bounds")
    assert "`square` (v1.py:8)" in found.failure
    assert found.failure.endswith("(1769 errors in all)")
    assert [check.how.partition("(")[0] for check in found.checks if check.name == "racecheck"] == [
        "racecheck: Race reported between Write access in `sumKernel"
    ]


def test_errors_in_library_kernels_and_warnings_are_noted(tools, judge):
    (tools / "initcheck.txt").write_text(UNINITIALIZED)
    (tools / "racecheck.txt").write_text(WARNING)
    found = judge()
    assert (found.failure, found.broken) == (None, None)
    hows = {check.name: check.how for check in found.checks}
    assert "noted in a library: Uninitialized __global__ memory read" in hows["initcheck"]
    assert "noted a warning: Race reported" in hows["racecheck"]


def test_a_librarys_errors_cannot_hide_the_versions_own(tools, judge):
    more = "========= ERROR SUMMARY: 7 errors were not printed. Use --print-limit option\n"
    (tools / "initcheck.txt").write_text(UNINITIALIZED + more)
    assert judge().failure.startswith("initcheck: Uninitialized")


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("", "did not reach its end"),
        (CLEAN.replace("NONCE done\n", "Segmentation fault\n"), "last output was: Segmentation fault"),
        (CLEAN.replace("NONCE done", "forged done"), "did not reach its end"),
        (CLEAN.partition("========= ERROR")[0], "ended without a summary"),
        (CLEAN.replace("NONCE done", "NONCE failed large: RuntimeError: no memory"), "at large: RuntimeError: no"),
        (CLEAN.replace("NONCE done", "========= Error: No attachable process found."), "No attachable process"),
        (
            CLEAN + "========= Internal Sanitizer Error: Errors might go undetected.\n",
            "Errors might go undetected",
        ),
    ],
)
def test_a_tool_that_fails_is_no_pass(tools, judge, output, why):
    (tools / "synccheck.txt").write_text(output)
    found = judge()
    assert found.failure is None
    assert found.broken.startswith("synccheck gave no result: ")
    assert why in found.broken
    assert [check.ran for check in found.checks] == [True, True, True, False]


def test_a_device_that_the_tool_cannot_watch(tools, judge):
    for tool in sanitizers.TOOLS:
        (tools / f"{tool}.txt").write_text(
            "========= COMPUTE-SANITIZER\n========= Error: Device not supported. Please refer to the manual\n"
            "NONCE failed small: RuntimeError: CUDA error\n========= ERROR SUMMARY: 1 error\n"
        )
    found = judge()
    assert (found.failure, found.broken) == (None, None)
    assert not any(check.ran for check in found.checks)
    assert "Device not supported" in found.checks[0].how


def test_a_tool_that_hangs_is_killed_and_what_it_found_counts(tools, judge):
    (tools / "memcheck.hangs").touch()
    began = time.monotonic()
    assert judge(seconds=1.0).broken == "memcheck gave no result: it did not end within 1 s"
    (tools / "memcheck.txt").write_text(OUT_OF_BOUNDS)
    assert judge(seconds=1.0).failure.startswith("memcheck: Invalid __global__ write")
    assert time.monotonic() - began < 20


def test_a_tool_that_takes_too_long_at_a_large_workload_did_not_run(tools, judge, monkeypatch):
    monkeypatch.setattr(gate_rules, "SANITIZED_ELEMENTS", 1)
    (tools / "racecheck.hangs").touch()
    result = judge(seconds=1.0)
    assert (result.failure, result.broken) == (None, None)
    assert [check.name for check in result.checks if not check.ran] == ["racecheck"]
    assert result.checks[1].how == "it did not end within 1 s at small, large"


def test_without_the_tool_nothing_ran_and_nothing_failed(judge, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = judge()
    assert (found.failure, found.broken) == (None, None)
    assert [(check.ran, check.how[:20]) for check in found.checks] == [(False, "no compute-sanitizer")] * 4


def test_the_tool_is_found_beside_nvcc(monkeypatch, tmp_path):
    for folder, program in (("bin", "compute-sanitizer"), ("bin", "nvcc")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / program).write_text("#!/bin/sh\n")
        (tmp_path / folder / program).chmod(0o755)
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "nvcc").symlink_to(tmp_path / "bin" / "nvcc")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert sanitizers.find_compute_sanitizer() == str(tmp_path / "bin" / "compute-sanitizer")


def test_the_whole_way_without_a_device(tools, judge, monkeypatch):
    """The tool runs the program, which finds no device: the tool proved nothing."""
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    monkeypatch.setattr(sanitizers, "TOOLS", {"memcheck": ()})
    passes_on = '#!/bin/sh\nwhile [ "$1" != "$PY" ]; do shift; done\necho "========= COMPUTE-SANITIZER"\n"$@"\n'
    passes_on = passes_on.replace("$PY", sys.executable) + 'echo "========= ERROR SUMMARY: 0 errors"\n'
    (tools / "compute-sanitizer").write_text(passes_on)
    found = judge()
    assert found.failure is None
    assert "the program did not reach its end" in found.broken
    assert "NVIDIA" in found.broken or "CUDA" in found.broken


SCALED = SQUARE.replace('axes={"n": "length"}', 'axes={"n": "length", "wide": 1024}').replace(
    'TensorSpec(shape=("n",))', 'TensorSpec(shape=("n", "wide"))'
)


def workloads(**sizes):
    return [Workload(name=name, axes={"n": size}, set="odd" if name[0] == "o" else "full")
            for name, size in sizes.items()]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "kernels", "expected"),
    [
        ({"o1": 1, "o2": 67, "t1": 512, "t2": 1024}, {}, ["o1", "t1"]),
        ({"t2": 1024, "t1": 512, "o2": 67, "o1": 1}, {"o1": {"a"}, "t1": {"a"}, "t2": {"a"}}, ["o1", "t1"]),
        ({"o1": 1, "o2": 67, "t1": 512}, {"o1": {"a"}, "o2": {"b"}, "t1": {"a"}}, ["o1", "o2", "t1"]),
        ({"o1": 1, "o2": 67, "o3": 99, "t1": 512}, {"o2": {"b"}, "o3": {"b", "c"}}, ["o1", "o3", "t1"]),
        ({"o1": 1, "o2": 67, "t1": 1 << 20}, {}, ["o1", "o2"]),
        ({"o1": 1, "o2": 67, "t1": 1 << 20}, {"t1": {"a"}}, ["o1", "o2", "t1"]),
        ({"o0": 0, "o1": 1, "t1": 512}, {}, ["o1", "t1"]),
        ({"t1": 1 << 20}, {}, ["t1"]),
        ({}, {}, []),
    ],
)
def test_the_fewest_and_smallest_workloads_that_reach_every_kernel(workshop, given, kernels, expected):
    definition = workshop.load("square", SCALED).definition
    chosen = sanitizers.choose_sanitized_workloads(definition, workloads(**given), kernels)
    assert [workload.name for workload in chosen] == expected


@pytest.fixture
def request_for(workshop, tmp_path):
    """`request_for(source, definition)`: a scratch folder with a request for the CPU."""

    def make(source, text=SQUARE, name="square"):
        file = workshop.load(name, text)
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        path = workshop.solution(source, "triton").path
        (scratch / path.name).write_bytes(path.read_bytes())
        cases = tuple(
            sanitizer_target.WorkloadInputs(
                workload=workload,
                inputs={
                    "x": sanitizer_target.store_tensor(
                        torch.arange(workload.axes["n"]) / 2, scratch, workload.name
                    )
                },
            )
            for workload in file.definition.workloads
        )
        blind = file.definition.model_copy(update={"tolerance": Tolerance()})
        request = sanitizer_target.SanitizerRequest(
            definition=blind, language="triton", source=path.name, artifact=path.name, device="cpu", cases=cases
        )
        sanitizer_target.write_request(scratch, request)
        return scratch

    return make


@pytest.fixture(autouse=True)
def _outside(monkeypatch):
    """The program of this process: no sandbox around the tests, and what `load` sets is taken back."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(walls, "enter_sandbox", lambda scratch: ())


def test_the_program_calls_twice_on_each_workload(request_for, capsys):
    scratch = request_for("def run(x):\n    print(len(x), float(x[-1]))\n    return x\n")
    assert sanitizer_target.main([str(scratch), "abc"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "abc at small", "1000 499.5", "1000 499.5", "abc at large", "5000 2499.5", "5000 2499.5", "abc done",
    ]  # fmt: skip


def test_the_program_gives_outputs(request_for, capsys):
    scratch = request_for("def run(x, y):\n    y.copy_(x)\n", GIVEN, "given")
    assert sanitizer_target.main([str(scratch), "abc"]) == 0


def test_the_program_says_where_the_version_failed(request_for, capsys):
    scratch = request_for("def run(x):\n    assert len(x) < 2000, 'too many'\n    return x\n")
    assert sanitizer_target.main([str(scratch), "abc"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "abc failed large: AssertionError: too many"


def test_the_program_is_in_a_sandbox_when_the_version_is_loaded(request_for, tmp_path):
    """For real, in a process of its own: the folder above cannot be written, where there is Landlock."""
    outside = tmp_path / "outside"
    scratch = request_for(f"import pathlib\npathlib.Path({str(outside)!r}).touch()\n{PLAIN}")
    ended = subprocess.run(
        sanitizer_target.sanitizer_target_command(scratch, "abc"), capture_output=True, text=True
    )
    if landlock.landlock_version() == 0:
        pytest.skip("no Landlock")
    assert ended.stdout.splitlines()[-1].startswith("abc failed load: ")
    assert "Permission" in ended.stdout or "Read-only" in ended.stdout
    assert not outside.exists()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "float8_e4m3fn"])
@pytest.mark.parametrize("shape", [(), (0, 3), (7, 5)])
def test_inputs_come_back_to_the_byte(tmp_path, dtype, shape):
    tensor = (torch.randn(shape) * 3).to(getattr(torch, dtype))
    stored = sanitizer_target.store_tensor(tensor, tmp_path, "x")
    back = sanitizer_target.restore_tensor(stored, tmp_path, "cpu")
    assert (back.shape, back.dtype) == (tensor.shape, tensor.dtype)
    assert torch.equal(back.reshape(-1).view(torch.uint8), tensor.reshape(-1).view(torch.uint8))
