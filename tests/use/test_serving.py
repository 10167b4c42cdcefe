"""The best version as a data set for flashinfer-bench's apply."""

import json
import math

import pytest
import typer
from serving_samples import DOUBLE, judged
from typer.testing import CliRunner

from warpsmith import languages
from warpsmith.cli.campaign import new
from warpsmith.errors import BadDefinition, MachineLacks, Misuse, SolutionFailed
from warpsmith.languages.base import ExportedVersion
from warpsmith.use import choice, serving


def exported(source, definition, hits):
    return ExportedVersion(files={f"{source.stem}.py": hits}, language="python", takes_outputs=False)


@pytest.fixture
def double(shop, monkeypatch):
    """`double` with an accepted version that adds 1e-3 to the first element."""
    path = shop.project.definition_path("double")
    path.parent.mkdir(parents=True)
    path.write_text(DOUBLE)
    toy = languages.get("toy")
    toy.suffix, toy.targets, toy.export = ".toy", ("cpu",), exported

    def run(x):
        y = 2 * x
        y[0, 0] += 1e-3
        return y

    shop.accept("double", run)
    evaluation = judged(path.parent / "toy" / "v3.toy", small=2.0, large=4.0, slow=0.5)
    monkeypatch.setattr(choice, "read_judgement", lambda project, version: evaluation)
    return shop


def entries(folder):
    return [json.loads(line) for line in (folder / "traces/scale/double_h8.jsonl").read_text().splitlines()]


def test_traces_have_measured_errors_and_judged_times(double, tmp_path):
    told = []
    result = serving.export_for_serving(double.project, "double", tmp_path / "out", tell=told.append)
    assert (result.names, result.solution, result.workloads) == (("double_h8",), "toy/v3", ("small", "large"))
    assert {path.relative_to(tmp_path / "out").as_posix() for path in result.paths} == {
        "definitions/scale/double_h8.json",
        "solutions/warpsmith/scale/double_h8/double_h8_toy_v3.json",
        "traces/scale/double_h8.jsonl",
    }
    small, large = entries(tmp_path / "out")
    assert (small["workload"]["axes"], large["workload"]["axes"]) == ({"rows": 4}, {"rows": 40})
    evaluation = large["evaluation"]
    assert evaluation["status"] == "PASSED"
    assert evaluation["performance"] == {
        "latency_ms": 1000.0, "reference_latency_ms": 4000.0, "speedup_factor": 4.0,
    }  # fmt: skip
    assert math.isclose(evaluation["correctness"]["max_absolute_error"], 1e-3, rel_tol=0.01)
    assert "slow" in told[0]
    assert "later" in told[1]
    solution = json.loads((tmp_path / "out/solutions/warpsmith/scale/double_h8/double_h8_toy_v3.json").read_text())
    assert solution["sources"] == [{"path": "v3.py", "content": "double_h8_toy_v3"}]
    assert solution["spec"]["entry_point"] == "v3.py::run"


def test_limits_are_rounded_up(double, tmp_path):
    result = serving.export_for_serving(double.project, "double", tmp_path / "out")
    assert result.max_atol == 1e-2
    assert result.largest_relative <= result.max_rtol <= 1.1 * result.largest_relative
    assert not result.within_defaults


def test_others_in_the_data_set_stay_and_earlier_exports_go(double, tmp_path):
    out = tmp_path / "out"
    serving.export_for_serving(double.project, "double", out)
    definition = out / "definitions" / "scale" / "double_h8.json"
    definition.write_text("theirs")
    traces = out / "traces" / "scale" / "double_h8.jsonl"
    traces.write_text(json.dumps({"solution": "theirs"}) + "\n" + traces.read_text())
    serving.export_for_serving(double.project, "double", out)
    assert definition.read_text() == "theirs"
    assert [entry["solution"] for entry in entries(out)] == ["theirs", "double_h8_toy_v3", "double_h8_toy_v3"]


def test_a_result_that_is_not_finite_is_refused(double, tmp_path):
    path = double.project.kernels / "double" / "toy" / "v3.toy"
    double._runs[path] = lambda x: x / 0
    definition = double.project.definition_path("double")
    definition.write_text(definition.read_text() + "# PyTorch keeps an operator for each text.\n")
    with pytest.raises(SolutionFailed, match="not finite"):
        serving.export_for_serving(double.project, "double", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_size_that_no_input_shows_is_refused(double, tmp_path):
    path = double.project.definition_path("double")
    text = path.read_text().replace(
        '("rows", "cols"), dtype="float32")}, f', '("rows", "2 * rows"), dtype="float32")}, f'
    )
    path.write_text(text.replace("2 * x", "x.repeat(1, 2)[:, : 2 * x.shape[0]]"))
    with pytest.raises(BadDefinition, match=r"no input has the size 2 \* rows"):
        serving.export_for_serving(double.project, "double", tmp_path / "out")


def test_without_an_accepted_version_nothing_is_written(double, tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "rank_versions", lambda project, op: {})
    with pytest.raises(MachineLacks, match="no version was accepted for the CPU"):
        serving.export_for_serving(double.project, "double", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_prints_what_to_call(double):
    app = typer.Typer()
    new.register(app)
    result = CliRunner().invoke(app, ["export", "double", "--apply", "--name", "their_name"])
    assert result.exit_code == 0
    assert "flashinfer-apply/traces/scale/their_name.jsonl" in result.stdout
    assert 'on_miss_policy="use_def_best"' in result.stderr
    assert "WARPSMITH_HITS" in result.stderr
    assert "small, large" in result.stderr
    assert isinstance(CliRunner().invoke(app, ["export", "double", "--name", "x"]).exception, Misuse)
