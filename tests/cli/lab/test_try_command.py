"""`warpsmith try`: a line for each variant, a log, and a new file with the fastest text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner, Result

from warpsmith.cli.lab import workbench as command
from warpsmith.core.evaluation import Interval, Resources
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.lab.tuning import workbench
from warpsmith.lab.tuning.workbench import VariantResult, Workbench

pytestmark = pytest.mark.usefixtures("forked_workers", "forked_scripts")

DEFINITION = """\
from warpsmith import Definition, TensorSpec, Workload
definition = Definition(
    name="square", description="y = x * x", axes={"n": "length"},
    inputs={"x": TensorSpec(shape=("n",))}, outputs={"y": TensorSpec(shape=("n",))}, flops="n",
    workloads=(Workload(name="large", axes={"n": 5000}), Workload(name="tail", axes={"n": 7}, set="odd")),
)
def reference(x):
    return x * x
"""
KERNEL = '#include <warpsmith.hpp>\nconstexpr int TILE = 64;\nextern "C" void run(const Tensor& x, Tensor& y) {}\n'
RESULTS = (
    VariantResult(variant="a.cpp TILE=16", state="not built", message="error: no"),
    VariantResult(
        variant="a.cpp TILE=64", state="timed", seconds={"large": 4e-6}, speedup=1.0,
        interval=Interval(low=0.9, high=1.1),
    ),
    VariantResult(
        variant="a.cpp TILE=32", state="timed", seconds={"large": 2e-6}, speedup=2.0,
        interval=Interval(low=1.9, high=2.1),
        resources=(Resources(kernel="run", registers=40, spill_bytes=8, shared_bytes=512),),
    ),
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command in a project with one operator, where the workbench yields `RESULTS`."""
    definition = tmp_path / "kernels" / "square" / "definition.py"
    definition.parent.mkdir(parents=True)
    definition.write_text(DEFINITION, encoding="utf-8")
    (tmp_path / "warpsmith.toml").write_text("")
    (tmp_path / "a.cpp").write_text(KERNEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def results(self: Workbench, _: object, before_baselines: Callable[[], None]) -> Iterator[VariantResult]:
        self.anchor_seconds, self.null_seconds = {"large": 4e-6}, {"large": 1e-6}
        self.stopwatch.seconds = {"build": 1.0, "time": 2.5}
        for result in RESULTS:
            self.results[result.variant] = result
            yield result
        before_baselines()

    monkeypatch.setattr(Workbench, "run", results)
    monkeypatch.setattr(workbench, "start_host", lambda *_: nullcontext())
    app = typer.Typer()
    command.register(app)
    app.callback()(lambda: None)
    fixed = ["try", "square", "a.cpp", "--target", "cpu", "--sweep", "TILE=16,32,64"]
    return lambda *options: CliRunner().invoke(app, [*fixed, *options], catch_exceptions=False)


def test_lines_and_log(run: Callable[..., Result], tmp_path: Path):
    result = run()
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "3 variants on cpu, each first checked at tail, large"
    assert lines[1].split()[:4] == ["variant", "large", "over", "the"]
    assert lines[3].split()[:4] == ["null", "kernel", "1.00", "us"]
    assert lines[4].split() == ["a.cpp", "TILE=16", "not", "built:", "error:", "no"]
    assert "2.00x [1.90, 2.10]" in lines[6]
    assert lines[6].endswith("40, 8 B, 512 B")
    assert lines[8].startswith("fastest: a.cpp TILE=32")
    assert lines[-2] == "steps: build 1.0 s, time 2.5 s"
    (log,) = (tmp_path / ".warpsmith" / "tries").iterdir()
    *results, steps = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["variant"] for line in results] == [r.variant for r in RESULTS]
    assert steps == {"steps": {"build": 1.0, "time": 2.5}}
    assert log.name in lines[-1]


def test_json_has_one_result_a_line(run: Callable[..., Result]):
    lines = run("--json").stdout.splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["not built", "timed", "timed"]


def test_the_fastest_is_written_to_a_new_file(run: Callable[..., Result], tmp_path: Path):
    target = tmp_path / "kernels" / "square" / "cpp" / "v1.cpp"
    assert "written: kernels/square/cpp/v1.cpp" in run("--write", str(target)).stdout
    assert target.read_text() == KERNEL.replace("64", "32")
    with pytest.raises(Misuse, match="exists; name a new file"):
        run("--write", str(target))


def test_slips_change_nothing(run: Callable[..., Result], tmp_path: Path):
    with pytest.raises(Misuse, match=r"no workload `larg`; it has: large, tail"):
        run("--workload", "larg")
    with pytest.raises(Misuse, match="--input require --reference"):
        run("--inputs", "a.py")
    assert not (tmp_path / ".warpsmith").exists()


def test_why_needs_counters_and_starts_nothing(run: Callable[..., Result], tmp_path: Path, monkeypatch):
    with pytest.raises(MachineLacks, match="The target is cpu"):
        run("--why")
    monkeypatch.setattr("warpsmith.profiling.ncu.collect.unavailable_reason", lambda: "There is no ncu.")
    with pytest.raises(MachineLacks, match="There is no ncu"):
        run("--why", "--target", "h200")
    assert not (tmp_path / ".warpsmith").exists()


def test_the_reason_is_read_from_the_profiles_report(tmp_path: Path):
    pytest.importorskip("ncu_report", reason="needs ncu-report")
    data = Path(__file__).parents[2] / "data" / "ncu"
    profile = SimpleNamespace(details="softmax_h200.ncu-rep", workload="8192x8192", without="")
    text = command._hotspot_text(SimpleNamespace(root=data), profile, tmp_path / "a.py")
    assert text.splitlines()[0] == "why: sm at 8192x8192"
    assert "stalls: long_scoreboard 31.2 %" in text
    blind = SimpleNamespace(details="", without="stalls. None were read: no permission")
    assert "no permission" in command._hotspot_text(SimpleNamespace(root=data), blind, tmp_path / "a.py")


def test_a_function_is_enough(run: Callable[..., Result], tmp_path: Path):
    """With --reference the first argument is a kernel too, and no operator of the project is read."""
    (tmp_path / "other.py").write_text(
        "import torch\ndef cube(x):\n    return x * x * x\ndef make_inputs():\n    return [torch.randn(300)]\n"
    )
    (tmp_path / "square").write_text("")  # `square` is the first argument of the fixture: it must be a C++ file
    with pytest.raises(Misuse, match="square"):
        run("--reference", "other.py:cube")
    app = typer.Typer()
    command.register(app)
    app.callback()(lambda: None)
    arguments = ["try", "a.cpp", "--reference", "other.py:cube", "--target", "cpu", "--workload", "300-float32"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == (
        "1 variant on cpu, each first checked at 1-float32, 129-float32, 301-float32, 300-float32"
    )
    assert "- input x: normal" in result.stderr
    assert next((tmp_path / ".warpsmith" / "tries").iterdir()).name.startswith("cube-cpu-")
    assert not (tmp_path / "kernels" / "cube").exists()
