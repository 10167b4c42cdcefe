"""`warpsmith check`, and the same proof before `warpsmith start` writes anything."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from warpsmith.campaign import define
from warpsmith.cli.campaign import new, rounds
from warpsmith.errors import BadDefinition
from warpsmith.lab.calibration import measurement
from warpsmith.lab.proof.definition_proof import DefinitionProof
from warpsmith.project import find_project

DEFINITION = """
from warpsmith import Definition, TensorSpec, Tolerance, Workload
definition = Definition(
    name="total", description="mean of each row", axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"), distribution="uniform")},
    outputs={"y": TensorSpec(shape=("rows",))}, tolerance=Tolerance(reduction="REDUCTION"), flops="rows * cols",
    workloads=(Workload(name="small", axes={"rows": 8, "cols": 100}),),
)
def reference(x):
    return x.mean(-1)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "warpsmith.toml").write_text("")
    (tmp_path / "kernels" / "total").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measurement, "ensure_measurement", lambda *_: pytest.fail("measured before the proof"))

    def call(reduction, *arguments):
        (tmp_path / "kernels" / "total" / "definition.py").write_text(DEFINITION.replace("REDUCTION", reduction))
        app = typer.Typer()
        for group in (new, rounds):
            group.register(app)
        result = CliRunner().invoke(app, list(arguments))
        if isinstance(result.exception, BadDefinition):
            raise result.exception
        return result

    return call


def test_a_proven_definition(run):
    result = run("cols", "check", "total")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("total: PROVEN: ")
    assert " 0 would pass; the reference fills " in result.stdout
    assert "  workloads: odd-empty-rows, odd-ones, small, odd-primes, odd-uneven\n" in result.stdout


def test_axes_that_keep_their_sizes_are_named(run, tmp_path):
    result = run('cols", slack=2.0), constraints=("rows is even",), op_type=("', "check", "total")
    assert "declared sizes alone: rows" in result.stdout.replace("\n", " "), result.output


def test_integers_with_one_value_are_named(run):
    proof = DefinitionProof.model_validate_json(run("cols", "check", "total", "--json").stdout)
    assert proof.constants == {}
    lines = new._proof_lines(proof.model_copy(update={"constants": {"k": 50}}))
    assert any(line.startswith("  judged at k = 50 alone: ") for line in lines)


def test_what_no_program_could_call_is_said_before_a_campaign(run, tmp_path):
    assert "best() cannot run it" not in run("cols", "check", "total").stdout
    path = tmp_path / "kernels" / "total" / "definition.py"
    path.write_text(path.read_text().replace('shape=("rows", "cols")', 'shape=("(rows + 1) // 2", "cols")'))
    (line,) = new._unservable_lines(find_project(), "total")
    assert "no input determines the size of an output: `rows` uses `rows`" in line


def test_a_refused_definition_names_the_wrong_kernel_and_the_mend(run):
    result = run("10000000000000", "check", "total")
    assert result.exit_code == BadDefinition.exit_code == 2
    assert result.stdout.startswith("total: REFUSED: ")
    assert "  passes at " in result.stdout
    assert "  mend: set the reduction of y to at most " in result.stdout
    proof = json.loads(run("10000000000000", "check", "total", "--json").stdout)
    assert proof["counterexamples"]
    assert proof["mend"]


def test_start_refuses_it_and_writes_nothing(run, tmp_path):
    with pytest.raises(
        BadDefinition,
        match=r"a wrong kernel would pass at \S+: .*reduction of y",
    ):
        run("10000000000000", "start", "total", "--target", "cpu", "--language", "cpp")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kernels", "warpsmith.toml"]


def test_the_time_is_that_of_a_start(run, monkeypatch):
    seconds = []
    proof = define.definition_proof.prove_definition

    def spy(file, tell, limit=define.definition_proof.SECONDS):
        seconds.append(limit)
        return proof(file, tell, limit)

    monkeypatch.setattr(define.definition_proof, "prove_definition", spy)
    run("cols", "check", "total")
    run("cols", "check", "total", "--seconds", "3")
    assert seconds == [define.definition_proof.SECONDS, 3.0]
