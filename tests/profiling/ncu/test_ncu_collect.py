"""ncu is a shell script here that prints what the real one prints; running, waiting and killing are real."""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import pairwise
from textwrap import dedent

import pytest
from filelock import FileLock

from warpsmith import counter_access
from warpsmith.errors import MachineLacks, MissingInput, SolutionFailed, TimedOut
from warpsmith.profiling.ncu import collect as ncu_collect
from warpsmith.profiling.ncu import metrics as ncu_metrics
from warpsmith.profiling.ncu.collect import LaunchSelection, collect_report

CONNECTED = "==PROF== Connected to process 9012 (/usr/bin/python3.12)"
NOTHING = "==WARNING== No kernels were profiled."

ARGUMENTS = """\
#!/bin/sh
echo run >> {seen}.runs
: > {seen}
while [ "$1" != -- ]; do
  case "$1" in --log-file) log=$2;; -o) out=$2;; esac
  echo "$1" >> {seen}
  shift
done
shift
"""

PERMISSION = f"""\
{CONNECTED}
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the\
 target device 0. For instructions on enabling permissions and to get more information see\
 https://developer.nvidia.com/ERR_NVGPUCTRPERM
==PROF== Disconnected from process 9012
{NOTHING}
"""
LIBRARY = f"""\
{CONNECTED}

==ERROR== An error was reported by the counter measurement library:
==ERROR== Failed to initialize the profiler: LibraryNotLoaded. Check that a compatible driver library is loaded.
==PROF== Trying to shutdown target application
==ERROR== The application returned an error code (9).
"""
DRIVER = """\
==ERROR== Cuda driver is not compatible with Nsight Compute.
==WARNING== Failed to load Nsight Compute CUDA modules.
==ERROR== The application returned an error code (139).
"""
STUB = """\
==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).
==ERROR== The application returned an error code (1).
"""
HELD = f"""\
{CONNECTED}
==ERROR== An error was reported by the driver

==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is\
 concurrently collecting profiling data. See https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#faq\
 for more details.
==ERROR== Failed to profile "softmax" in process 9012
==PROF== Trying to shutdown target application
==ERROR== The application returned an error code (9).
==ERROR== An error occurred while trying to profile.
{NOTHING}
"""
CLOCKS = f"""\
{CONNECTED}
==ERROR== An error was reported by the driver

==ERROR== Cannot lock GPU clock frequencies on MIG! Try locking the clocks externally.
==ERROR== Failed to profile "softmax" in process 9012
==ERROR== An error occurred while trying to profile.
{NOTHING}
"""
CHILDREN = "==WARNING== Profiling kernels launched by child processes requires the --target-processes all option."
ENDED = f"""\
{CONNECTED}
==PROF== Disconnected from process 9012
==ERROR== The application returned an error code (1).
{NOTHING}
"""


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """`ncu(body)`: put a script of that body on PATH; returns what reads the options of its last run."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    seen = tmp_path / "seen"

    def make(body: str, folder="bin"):
        program = tmp_path / folder / "ncu"
        program.parent.mkdir(exist_ok=True)
        program.write_text(ARGUMENTS.format(seen=seen) + dedent(body))
        program.chmod(0o755)
        return lambda: seen.read_text().splitlines()

    make.runs = lambda: len((tmp_path / "seen.runs").read_text().splitlines())
    return make


def says(text: str, code: int = 0) -> str:
    """A script that writes to ncu's log, runs the program, makes no report and ends so."""
    return f'cat > "$log" <<\'END\'\n{text}\nEND\n"$@"\nexit {code}\n'


def test_the_report_and_what_ncu_is_asked_for(ncu, tmp_path):
    options = ncu('echo "$1-$2" > "$out"')
    report = collect_report(["program", "argument"], tmp_path / "here" / "report")
    assert report == tmp_path / "here" / "report.ncu-rep"
    assert report.read_text() == "program-argument\n"
    asked = options()
    pairs = list(pairwise(asked))
    assert ("--clock-control", "none") in pairs
    assert ("--cache-control", "all") in pairs
    assert ("--profile-from-start", "off") in pairs
    assert ("--target-processes", "all") in pairs
    assert [second for first, second in pairs if first == "--section"] == list(ncu_metrics.SECTIONS)
    assert ("--metrics", ",".join(ncu_metrics.requested_metrics())) in pairs
    assert not {"--kernel-name", "--launch-skip", "--launch-count", "--set"} & set(asked)
    own = tmp_path / "temporary" / f"warpsmith-{ncu_collect.os.getuid()}"
    assert not [path for path in own.iterdir() if path.name.startswith("report-")]


def test_the_full_set_and_a_choice_of_launches(ncu, tmp_path):
    options = ncu(': > "$out"')
    chosen = LaunchSelection(kernel="regex:soft", skip=1, most=2, whole=True)
    report = collect_report(["p"], tmp_path / "r.ncu-rep", sections="full", metrics=[], launches=chosen)
    assert report == tmp_path / "r.ncu-rep"
    text = " ".join(options())
    assert "--set full --kernel-name regex:soft --launch-skip 1 --launch-count 2" in text
    assert "--profile-from-start on" in text
    assert "--section" not in text
    assert "--metrics" not in text


@pytest.mark.parametrize(
    ("printed", "error", "words"),
    [
        (PERMISSION, MachineLacks, "NVreg_RestrictProfilingToAdminUsers=0"),
        (LIBRARY, MachineLacks, "LibraryNotLoaded"),
        (DRIVER, MachineLacks, "does not fit the driver"),
        (STUB, MachineLacks, "does not reach the CUDA driver"),
        (HELD, MachineLacks, "DCGM"),
        ("==ERROR== InterprocessLockFailed", MachineLacks, "nsight-compute-lock"),
        (CLOCKS, MachineLacks, "ncu failed: Cannot lock GPU clock frequencies on MIG!"),
        (f"{CONNECTED}\n{NOTHING}\n{CHILDREN}", MissingInput, "No launch of the kernel `soft` was profiled"),
    ],
)
@pytest.mark.parametrize("code", [0, 1])
def test_why_there_is_no_report(ncu, tmp_path, printed, error, words, code):
    ncu(says(printed, code))
    with pytest.raises(error) as raised:
        collect_report(["true"], tmp_path / "report", launches=LaunchSelection(kernel="soft"))
    assert words in str(raised.value)
    assert not (tmp_path / "report.ncu-rep").exists()


def test_a_version_that_launches_nothing(ncu, tmp_path):
    ncu(says(f"{CONNECTED}\n{NOTHING}"))
    with pytest.raises(MissingInput, match="No kernel was profiled"):
        collect_report(["true"], tmp_path / "report")


def test_the_program_fails(ncu, tmp_path):
    ncu(says(ENDED, 1))
    with pytest.raises(SolutionFailed, match=r"ended with code 1") as raised:
        collect_report(["sh", "-c", "echo RuntimeError: no such shape >&2; exit 1"], tmp_path / "report")
    assert "RuntimeError: no such shape" in str(raised.value)


def test_what_the_program_prints_is_not_taken_for_ncus_words(ncu, tmp_path):
    ncu(says(f"{CONNECTED}\n{NOTHING}"))
    with pytest.raises(MissingInput):
        collect_report(["echo", "==ERROR== ERR_NVGPUCTRPERM"], tmp_path / "report")


def test_ncu_that_fails_before_its_log_is_open(ncu, tmp_path):
    ncu("echo '==ERROR== unrecognised option'; exit 1")
    with pytest.raises(MachineLacks, match="ncu failed: unrecognised option"):
        collect_report(["true"], tmp_path / "report")


def test_a_report_beside_a_failure_is_not_kept(ncu, tmp_path):
    ncu(': > "$out"; ' + says(ENDED, 1))
    with pytest.raises(SolutionFailed):
        collect_report(["true"], tmp_path / "report")
    assert not (tmp_path / "report.ncu-rep").exists()


def test_what_this_ncu_does_not_know_is_left_out(ncu, tmp_path):
    options = ncu(
        """\
        for name in New old_metric; do
          if grep -qw "$name" {0}; then
            echo "==ERROR== Failed to find metric regex:^$name\\.(sum|min|max|avg|pct)\\$" > "$log"
            exit 1
          fi
        done
        : > "$out"
        """.replace("{0}", str(tmp_path / "seen"))
    )
    collect_report(["p"], tmp_path / "report", sections=["New", "Newer"], metrics=["old_metric", "d_metric"])
    assert options().count("--section") == 1
    assert "Newer" in options()
    assert "d_metric" in options()


def test_a_metric_that_cannot_be_left_out_ends_it(ncu, tmp_path):
    ncu("echo '==ERROR== Failed to find metric another' > \"$log\"; exit 1")
    with pytest.raises(MachineLacks, match="Failed to find metric another"):
        collect_report(["p"], tmp_path / "report")
    assert ncu.runs() == 1


def test_a_program_that_does_not_end_is_killed_with_its_children(ncu, tmp_path):
    alive = tmp_path / "alive"
    ncu('"$@"')
    started = time.monotonic()
    with pytest.raises(TimedOut, match=r"more than 0\.5 s"):
        collect_report(["sh", "-c", f"(sleep 2; touch {alive}) & sleep 9"], tmp_path / "report", timeout=0.5)
    assert time.monotonic() - started < 2
    time.sleep(2)
    assert not alive.exists()


def test_one_profile_at_a_time_for_each_gpu(ncu, tmp_path, monkeypatch):
    ncu(': > "$out"')
    own = tmp_path / "temporary" / f"warpsmith-{ncu_collect.os.getuid()}"
    own.mkdir(mode=0o700)
    with FileLock(own / "ncu-0.lock"):
        with pytest.raises(TimedOut, match="Another profile held the GPU"):
            collect_report(["p"], tmp_path / "report", timeout=0.2)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
        collect_report(["p"], tmp_path / "other", timeout=5)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    collect_report(["p"], tmp_path / "report", timeout=5)


def test_ncu_has_a_temporary_folder_of_this_user_alone(ncu, tmp_path):
    ncu('stat -c %a "$TMPDIR" > "$out"')
    assert collect_report(["p"], tmp_path / "report").read_text() == "700\n"


def test_no_ncu(ncu, tmp_path, monkeypatch):
    monkeypatch.setattr(ncu_collect, "_USUAL_PATHS", ())
    with pytest.raises(MachineLacks, match="There is no ncu"):
        collect_report(["p"], tmp_path / "report")
    assert "There is no ncu" in ncu_collect.unavailable_reason()


def test_the_newest_in_the_usual_folders_unless_one_is_on_path(ncu, tmp_path, monkeypatch):
    monkeypatch.setattr(ncu_collect, "_USUAL_PATHS", (f"{tmp_path}/cuda-*/ncu",))
    for version in ("cuda-12.9", "cuda-12.10", "cuda-9.2"):
        ncu("", folder=version)
    assert ncu_collect.find_ncu() == str(tmp_path / "cuda-12.10" / "ncu")
    ncu("")
    assert ncu_collect.find_ncu() == str(tmp_path / "bin" / "ncu")


@pytest.mark.parametrize(
    ("parameters", "capabilities", "found"),
    [
        ("RmProfilingAdminOnly: 0\n", "0000000000000000", None),
        ("RmProfilingAdminOnly: 1\n", "000001ffffffffff", None),
        ("RmProfilingAdminOnly: 1\n", "00000000a80425fb", ncu_collect.PERMISSION),
    ],
)
def test_counters_that_are_closed_to_this_user(ncu, tmp_path, monkeypatch, parameters, capabilities, found):
    ncu("")
    status = f"CapEff:\t{capabilities}\n"
    access = ((counter_access, "PARAMETERS", parameters), (counter_access, "_STATUS", status))
    for module, name, text in (*access, (ncu_collect, "_DRIVER", "")):
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(module, name, tmp_path / name)
    assert ncu_collect.unavailable_reason() == found
    monkeypatch.setattr(ncu_collect, "_DRIVER", tmp_path / "none")
    assert "no GPU" in ncu_collect.unavailable_reason()


def test_no_reader_of_reports(ncu, monkeypatch):
    ncu("")
    monkeypatch.setattr(ncu_collect.ncu_report.importlib.util, "find_spec", lambda _: None)
    assert "ncu-report is not installed" in ncu_collect.unavailable_reason()


@pytest.mark.gpu
def test_a_real_program(tmp_path):
    why = ncu_collect.unavailable_reason()
    if why:
        pytest.skip(why)
    code = (
        "import torch; c = torch.cuda.cudart(); x = torch.ones(1 << 20, device='cuda'); torch.cuda.synchronize()\n"
    )
    code += "c.cudaProfilerStart(); x.mul_(2); torch.cuda.synchronize(); c.cudaProfilerStop()"
    report = collect_report([sys.executable, "-c", code], tmp_path / "report", timeout=120)
    assert report.stat().st_size > 10_000
