"""The table of prior art: form, the row that an operator gets, and the command that prints it."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from warpsmith import project as projects
from warpsmith.cli.main import load_app
from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.errors import BadEntry
from warpsmith.knowledge import prior_art
from warpsmith.knowledge.check import check_knowledge
from warpsmith.project import SHIPPED

ROW = """\
- family: {family}
  title: Some operators
  words: [{words}]
  approaches:
  - text: One block keeps a whole row in its registers.
    source: owner/name
    path: a/b.py
    commit: {commit}
  checked: 2026-01-01
  until: {until}
"""


def table(*rows: dict[str, str]) -> str:
    return "prior_art:\n" + "".join(
        ROW.format(**{"words": row["family"], "commit": "a1" * 20, "until": "2026-06-01", **row}) for row in rows
    )


def definition(name: str, op_type: str = "other", description: str = "some values") -> Definition:
    return Definition(
        name=name, op_type=op_type, description=description, axes={"n": "length"},
        inputs={"x": TensorSpec(shape=("n",))}, outputs={"y": TensorSpec(shape=("n",))},
        flops="n", workloads=(Workload(name="w", axes={"n": 4}),),
    )  # fmt: skip


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "warpsmith.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    project = projects.find_project(tmp_path)
    project.knowledge.mkdir(parents=True)
    return project


def test_the_most_specific_row_comes_first(project):
    rows = table(
        {"family": "gemm", "words": "gemm, linear"},
        {"family": "quantized-gemm", "words": "int4 linear"},
        {"family": "norm", "words": "rms norm, rmsnorm"},
    )
    (project.knowledge / "prior-art.yaml").write_text(rows)
    families = [row.family for row in prior_art.find_prior_art(project, definition("int4_linear"))]
    assert families == ["quantized-gemm", "gemm"]
    assert [row.family for row in prior_art.find_prior_art(project, definition("mine", "norm"))] == ["norm"]
    described = definition("mine", description="A linear layer over int4 weights.")
    assert prior_art.find_prior_art(project, described)[0].family == "quantized-gemm"
    assert prior_art.find_prior_art(project, definition("mine")) == []


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"family": "a", "commit": "main"}, "commit"),
        ({"family": "a", "until": "soon"}, "until"),
        ({"family": "A b"}, "family"),
    ],
)
def test_what_is_not_pinned_is_no_table(project, row, message):
    (project.knowledge / "prior-art.yaml").write_text(table(row))
    with pytest.raises(BadEntry, match=message):
        prior_art.merge_prior_art(project)
    assert any(message in problem.message for problem in check_knowledge(project))


def test_the_check_finds_twins_and_dates_that_cannot_be(project):
    rows = table({"family": "gemm"}, {"family": "gemm"}, {"family": "scan", "until": "2025-01-01"})
    (project.knowledge / "prior-art.yaml").write_text(rows)
    messages = [problem.message for problem in check_knowledge(project) if "prior-art" in problem.message]
    assert len(messages) == 2
    assert "`gemm` has 2 rows; merge them." in messages[0]
    assert "`scan` ends on 2025-01-01, before it was checked" in messages[1]


def test_the_command_prints_pinned_files(project):
    (project.knowledge / "prior-art.yaml").write_text(table({"family": "gemm"}))
    printed = CliRunner().invoke(load_app(), ["knowledge", "prior-art"]).stdout
    assert "gemm: Some operators (read 2026-01-01)\n    One block keeps a whole row" in printed
    assert f"https://github.com/owner/name/blob/{'a1' * 20}/a/b.py" in printed


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("attention", "attention"), ("attention_backward", "attention-backward"), ("layer_norm", "norm"),
        ("int4_linear", "quantized-gemm"), ("linear", "gemm"),
        ("kl_loss", "loss"), ("embedding_bag_backward", "reduction"), ("cumsum", "scan"), ("top_k", "sampling"),
        ("rope_kv_write", "rope"), ("ragged_softmax", "softmax"), ("mla_decode", "mla"), ("grouped_gemm", "moe"),
    ],
)  # fmt: skip
def test_ordinary_names_lead_to_their_family(name, family, monkeypatch):
    monkeypatch.setattr(projects, "SHIPPED", SHIPPED)
    assert prior_art.find_prior_art(projects.find_project(SHIPPED), definition(name))[0].family == family


def test_every_shipped_operator_has_prior_art(project, monkeypatch):
    """The shipped table parses, and no shipped operator goes without."""
    from warpsmith.lab.operator import definition_file

    monkeypatch.setattr(projects, "SHIPPED", SHIPPED)
    shipped = projects.find_project(SHIPPED)
    for path in sorted(shipped.kernels.glob("*/definition.py")):
        loaded = definition_file.load_definition(path).definition
        assert prior_art.find_prior_art(shipped, loaded), loaded.name
