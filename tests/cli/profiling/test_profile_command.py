"""`warpsmith profile` on reports, recorded campaigns and scripts; on versions the lab's own tests run it."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
REPORT = ROOT / "tests" / "data" / "ncu" / "softmax_h200.ncu-rep"
CAMPAIGN = "rmsnorm-cpp-cpu-20261121"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A project with the campaign that ships."""
    for part in ("kernels/rmsnorm", "devlog/rmsnorm"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / "warpsmith.toml").write_text("")
    return tmp_path


def profile(*arguments: str | Path, at: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "warpsmith", "profile", *map(str, arguments)]
    return subprocess.run(command, cwd=at, capture_output=True, text=True, timeout=120)


def test_a_report_is_explained_without_a_gpu(tmp_path):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = profile("--report", REPORT, at=tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 10
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Evidence: hardware counters")
    assert "Advice: ncu " in done.stdout
    assert "**Bottleneck: memory.** The DRAM is at 81.4 %" in done.stdout
    assert "at-the-limit" not in done.stdout, "a bare report does not know its operator"
    assert "what the operator needs as fast" not in done.stdout
    assert "Nothing that this profile can name." in done.stdout
    assert len(done.stdout) / 3.5 < 600


def test_a_report_as_a_model(tmp_path):
    found = json.loads(profile("--report", REPORT, "--json", at=tmp_path).stdout)
    assert found["evidence"] == "counters"
    values = {metric["name"]: metric["value"] for metric in found["metrics"]}
    assert values["occupancy_pct"] == pytest.approx(93.2, abs=0.1)
    assert values["registers_per_thread"] == 32


def test_one_kernel_of_a_report(tmp_path):
    assert profile("--report", REPORT, "--kernel", "sm", at=tmp_path).returncode == 0
    done = profile("--report", REPORT, "--kernel", "gemm", at=tmp_path)
    assert done.returncode == 2
    assert "sm" in done.stderr


@pytest.mark.parametrize(("content", "code"), [(None, 3), (b"", 2), (b"no report", 2)])
def test_a_report_that_does_not_read(tmp_path, content, code):
    path = tmp_path / "x.ncu-rep"
    if content is not None:
        path.write_bytes(content)
    done = profile("--report", path, at=tmp_path)
    assert done.returncode in (code, 3), done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_what_moved_between_two_versions(recorded):
    done = profile("--diff", "v3", "v4", "--campaign", CAMPAIGN, at=recorded)
    assert done.returncode == 0, done.stderr
    head, *rows, last = done.stdout.splitlines()
    assert head == "cpp/v3 -> cpp/v4 (by timings)"
    assert any(row.split()[0] == "dram_pct" for row in rows)
    assert last == "hypothesis: dram_pct by +5: not as predicted"


def test_versions_that_were_not_made_one_from_the_other(recorded):
    done = profile("--diff", "cpp/v1", "cpp/v5", "--campaign", CAMPAIGN, at=recorded)
    assert "hypothesis" not in done.stdout
    assert "time_us " in done.stdout
    assert "e+" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--diff", "v1", "v9", "--campaign", CAMPAIGN], 3, "no profile of cpp/v9"),
        (["--diff", "v1", "x", "--campaign", CAMPAIGN], 2, "`cpp/x` is no version"),
        ([], 2, "is at REPORT of round 5"),
        (["--kind", "trace"], 2, "Give one of"),
        (["a.py", "--report", "b.ncu-rep"], 2, "Give one of"),
        (["a.py", "--kind", "magic"], 2, "Unknown kind `magic`"),
        (["a.py", "--kind", "trace"], 3, "There is no script"),
    ],
)
def test_misuse(recorded, arguments, code, words):
    done = profile(*arguments, at=recorded)
    assert done.returncode == code
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_script_is_traced(tmp_path):
    (tmp_path / "step.py").write_text(
        "import sys, torch\nx = torch.rand(256, 256)\n"
        "for _ in range(3):\n    x = (x @ x).softmax(-1)\nprint(sys.argv[1])\n"
    )
    done = profile("step.py", "--kind", "trace", "--", "an-argument", at=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "an-argument" in done.stderr
    assert "Trace: .warpsmith/traces/step/" in done.stderr
    assert "mm" in done.stdout


def test_a_report_of_an_amd_gpu_names_its_bottleneck(tmp_path):
    report = ROOT / "tests" / "data" / "rocprof" / "compute" / "kernel_mi200"
    done = profile("--report", report, at=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "**Bottleneck: memory: vL1D waits for L2.**" in done.stdout
    assert "\n- memory: vL1D returns data too slowly: MemUnitStalled\n" in done.stdout
    assert done.stdout.count("a thread trace (--att)") == 1
    as_json = json.loads(profile("--report", report, "--json", at=tmp_path).stdout)
    assert as_json["kernels"][0]["bottleneck"] == "memory: vL1D waits for L2"


def test_the_peak_of_hbm_comes_from_the_devices_page(tmp_path):
    report = ROOT / "tests" / "data" / "rocprof" / "passes"
    done = profile("--report", report, "--kernel", "row_softmax", at=tmp_path)
    assert "**Bottleneck: memory: HBM bandwidth.**" in done.stdout, done.stderr
