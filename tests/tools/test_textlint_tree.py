"""The sound house, git's view of it, and the command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.textlint.finding import Finding, convert_error
from tools.textlint.tree import Tree
from warpsmith.errors import BadEntry

REPOSITORY = Path(__file__).parents[2]


def textlint(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "tools.textlint", str(root)]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)


def test_a_sound_house_has_no_findings(house):
    assert house.found() == []


def test_what_git_ignores_is_not_looked_at(house):
    house.write(".gitignore", "scratch/\n")
    house.write("scratch/notes.md", "[nowhere](gone.md)\n")
    assert "scratch/notes.md" in Tree(house.root).files
    subprocess.run(["git", "-C", house.root, "init", "-q"], check=True)
    assert house.found() == []


def test_what_git_does_not_know_yet_is_looked_at(house):
    subprocess.run(["git", "-C", house.root, "init", "-q"], check=True)
    house.add("README.md", "[nowhere](gone.md)\n")
    assert house.one().startswith("README.md:6: ")


def test_a_link_to_an_ignored_file_leads_nowhere(house):
    subprocess.run(["git", "-C", house.root, "init", "-q"], check=True)
    house.write(".gitignore", "scratch.md\n")
    house.write("scratch.md", "")
    house.add("README.md", "[mine](scratch.md)\n")
    assert "`scratch.md` leads nowhere" in house.one()


def test_hidden_folders_are_not_looked_at_without_git(house):
    house.write(".demo/notes.md", "[nowhere](gone.md)\n")
    assert house.found() == []
    house.write(".github/notes.md", "[nowhere](gone.md)\n")
    assert house.one().startswith(".github/notes.md:1: ")


def test_recorded_pages_are_not_looked_at(house):
    house.write("devlog/op/report.md", "[nowhere](gone.md)\n")
    assert house.found() == []


def test_the_command_says_how_much_it_looked_at(house):
    done = textlint(house.root)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("textlint: 0 findings; ")
    assert "1 skills, 1 agents, 4 links, 5 commands" in done.stdout


def test_the_command_prints_findings_and_fails(house):
    house.add("README.md", "[nowhere](gone.md)\n")
    done = textlint(house.root)
    assert done.returncode == 1
    assert done.stdout.startswith("README.md:6: the link to `gone.md` leads nowhere.")


def test_an_error_of_the_package_becomes_a_finding():
    assert convert_error("a.md", BadEntry("a.md:3: it is torn; mend it.")) == Finding(
        "a.md", 3, "it is torn", "mend it"
    )
    assert convert_error("a.md", BadEntry("a.md has no head; add one.")) == Finding(
        "a.md", 1, "has no head", "add one"
    )
