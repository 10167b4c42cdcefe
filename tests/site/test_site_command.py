"""`warpsmith site` and `warpsmith report --html` as users run them, the server, and the publishing workflow."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
import record_kit as kit
import yaml
from packaging.requirements import Requirement
from site_kit import ParsedPage, broken_links, parse_site
from typer.testing import CliRunner

from warpsmith.cli.main import load_app
from warpsmith.errors import Misuse
from warpsmith.site import serve

WORKFLOW = Path(__file__).parents[2] / "examples" / "pages.yml"


@pytest.fixture
def here(project, monkeypatch):
    (project.root / "warpsmith.toml").write_text("")
    monkeypatch.chdir(project.root)
    return project


def run(*arguments):
    return CliRunner().invoke(load_app(), arguments)


def test_the_workflow_builds_a_site_with_its_own_commands(here, tmp_path):
    """Its steps run as the host would run them, but for the installation, whose requirement only has to parse."""
    steps = yaml.safe_load(WORKFLOW.read_text())["jobs"]["site"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    (installation,) = [command for command in commands if "pip install" in command]
    assert Requirement(re.search(r'"(.*)"', installation)[1]).name == "warpsmith"
    command = tmp_path / "bin" / "warpsmith"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -W error -m warpsmith "$@"\n')
    command.chmod(0o755)
    paths = [str(command.parent), os.environ["PATH"]]
    for line in (line for line in commands if line != installation):
        done = subprocess.run(
            ["bash", "-e", "-c", line], env={**os.environ, "PATH": os.pathsep.join(paths)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    (uploaded,) = [step["with"]["path"] for step in steps if "upload-pages" in step.get("uses", "")]
    pages = parse_site(here.root / uploaded)
    assert broken_links(pages) == []
    assert len(pages) > 100  # the shipped knowledge
    assert (here.root / uploaded / "knowledge" / "split-reduction.html").is_file()


def test_a_folder_with_other_files_ends_with_one_sentence(here):
    (here.root / "docs").mkdir()
    (here.root / "docs" / "mine.md").write_text("mine")
    done = run("site", "--out", "docs")
    assert isinstance(done.exception, Misuse)
    assert "mine.md" in str(done.exception)
    assert [path.name for path in here.root.rglob("*") if path.is_file()] == ["warpsmith.toml", "mine.md"]


def test_a_report_is_one_file_in_the_working_folder(here):
    kit.on_disk(here, kit.manifest(), kit.campaign_of_three())
    done = run("report", "--html")
    assert done.stdout.strip() == "norm-triton-h200-20261121.html"
    page = ParsedPage(here.root / done.stdout.strip())
    assert page.loads == []
    assert "1.83x [1.79, 1.87]" in page.path.read_text()
    assert run("report", "--html", "--out", "other.html").exit_code == 0
    assert (here.root / "other.html").read_text() == page.path.read_text()
    assert not list(here.devlog.rglob("*.md"))  # only `warpsmith report` renders those


@pytest.mark.parametrize(
    "options", [("--html", "--all"), ("--html", "--json"), ("--out", "x.html"), ("--html", "--out", ".")]
)
def test_options_that_do_not_go_together_are_refused(here, options):
    kit.on_disk(here, kit.manifest(), kit.campaign_of_three())
    assert isinstance(run("report", *options).exception, Misuse)


def test_the_server_answers_on_this_machine_and_refuses_a_port_in_use(tmp_path):
    (tmp_path / "index.html").write_text("here")
    with serve.site_server(tmp_path, 0) as server:
        host, port = server.server_address[:2]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with urllib.request.urlopen(f"http://{host}:{port}/index.html", timeout=20) as answer:
            assert answer.read() == b"here"
        with pytest.raises(Misuse, match=str(port)):
            serve.site_server(tmp_path, port)
        server.shutdown()
        thread.join()
    assert host == "127.0.0.1"


def test_make_builds_the_site():
    make = shutil.which("make")
    done = subprocess.run(
        [make, "-n", "site"], cwd=WORKFLOW.parents[1], capture_output=True, text=True, check=True
    )
    assert "warpsmith site --out build/site" in done.stdout
