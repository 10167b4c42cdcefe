"""The commands: data on stdout, people on stderr, exit codes of the errors."""

from __future__ import annotations

import json
import sys

import pytest
import typer

from warpsmith import files
from warpsmith.cli import knowledge
from warpsmith.errors import BadEntry, Misuse


@pytest.fixture
def run(project, put, monkeypatch, capsys):
    put("split")
    put("dead", title="Dead rows", status="refuted")
    monkeypatch.chdir(project.root)
    app = typer.Typer()
    app.callback()(lambda: None)
    knowledge.register(app)

    def call(*arguments: str) -> str:
        capsys.readouterr()
        app(["knowledge", *arguments], standalone_mode=False)
        return capsys.readouterr().out

    return call


def test_search_prints_id_title_when_and_path(run):
    assert run("search", "rows") == (
        "split: Split the rows\n    when: Rows are long\n    docs/knowledge/optimizations/split.md\n"
        "dead [refuted]: Dead rows\n    when: Rows are long\n    docs/knowledge/optimizations/dead.md\n"
    )
    assert run("search", "rows", "--limit", "1").count("when:") == 1


def test_nothing_fits_is_said_with_an_exit_code(run, capsys):
    with pytest.raises(typer.Exit) as caught:
        knowledge.knowledge_search_command(["zebra", "crossing", "rows"])
    assert caught.value.exit_code == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Nothing fits: none of 2 entries")
    assert "nearest: split, dead." in err
    with pytest.raises(typer.Exit):
        knowledge.knowledge_search_command(["zebra"], as_json=True)
    assert json.loads(capsys.readouterr().out) == {"hits": [], "nearest": []}


def test_a_foreign_page_is_named_once_and_checked(run, put, capsys):
    put("wiki", raw="# Our wiki\n")
    assert run("search", "rows").startswith("split: Split the rows\n")
    with pytest.raises(BadEntry, match="has 1 problem"):
        run("check")
    assert "wiki.md has no front matter" in capsys.readouterr().out


def test_a_foreign_page_is_told_on_stderr(project, run, put):
    import os
    import subprocess

    put("wiki", raw="# Our wiki\n")
    command = [sys.executable, "-m", "warpsmith", "knowledge", "search", "rows"]
    done = subprocess.run(command, cwd=project.root, env=os.environ, capture_output=True, text=True, check=True)
    assert done.stderr.count("wiki.md") == 1


def test_search_json(run):
    (hit,) = json.loads(run("search", "rows", "--limit", "1", "--json"))["hits"]
    assert hit["id"] == "split"
    assert hit["matched"] == ["rows"]


def test_search_by_a_symptom(run, put_symptoms):
    put_symptoms("[split]", "[dead]")
    assert run("search", "columns", "are", "slow").startswith(
        "split: Split the rows\n    symptom: Rows are slow\n"
    )
    hits = json.loads(run("search", "slow columns", "--json"))["hits"]
    assert [(hit["id"], hit["symptom"]) for hit in hits] == [("split", "Rows are slow"), ("dead", "Rows are slow")]


def test_symptoms(run, put_symptoms):
    assert run("symptoms") == ""
    put_symptoms("[split]", "[dead]")
    assert run("symptoms") == "Rows are slow\n    shown by: dram_pct low\n    try: split\n    rule out: dead\n"
    (symptom,) = json.loads(run("symptoms", "--json"))["symptoms"]
    assert symptom["shows"] == {"dram_pct": "low"}


def test_show(run, project):
    assert run("show", "split") == (project.knowledge / "optimizations/split.md").read_text()
    assert json.loads(run("show", "split", "--json"))["matter"]["id"] == "split"
    with pytest.raises(Misuse):
        run("show", "nothing")


def test_what_rounds_made_of_an_entry_is_shown(run, project, record):
    plan = record.plan.model_copy(update={"entries": ("split",)})
    place = "devlog/rmsnorm/c/rounds/002/record.json"
    files.write_file(project.root / place, record.model_copy(update={"plan": plan}).model_dump_json())
    assert "    tried 1, accepted 1, median gain +100.0 % (1 try)\n" in run("search", "rows")
    assert json.loads(run("search", "rows", "--json"))["hits"][0]["hit_rate"]["accepted"] == 1
    assert run("show", "split").endswith(
        "\n## In this project\n\ntried 1, accepted 1, median gain +100.0 % (1 try)\n\n"
        f"- rmsnorm on h1, triton/v2: ACCEPT, +100.0 % ({place})\n"
    )
    assert json.loads(run("show", "split", "--json"))["hit_rate"]["tries"][0]["record"] == place


def test_index_and_check(run, project):
    with pytest.raises(BadEntry, match="out of date"):
        run("index", "--check")
    with pytest.raises(BadEntry, match="has 2 problems"):
        run("check")
    assert run("index") == "docs/knowledge/index.md\ndocs/knowledge/README.md\n"
    assert run("index", "--check") == "docs/knowledge/index.md\ndocs/knowledge/README.md\n"
    assert run("check") == ""
    assert json.loads(run("check", "--json")) == {"problems": []}


def test_importing_the_commands_imports_no_work():
    import subprocess

    code = (
        "import sys; from warpsmith.cli import knowledge; print([m for m in sys.modules if 'warpsmith.know' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
