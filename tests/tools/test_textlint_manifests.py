"""Manifests and versions, evals, and the hygiene of all texts."""

from __future__ import annotations

import pytest

PLUGIN, MARKET = ".claude-plugin/plugin.json", ".claude-plugin/marketplace.json"
CASE = "evals/case-3"


@pytest.mark.parametrize("path", [PLUGIN, MARKET, ".claude/settings.json"])
def test_a_manifest_that_is_missing_or_no_json(house, path):
    house.write(path, '{"name": ')
    assert house.found()[0].startswith(f"{path}:1: this is not JSON")
    house.remove(path)
    assert house.found()[0] == f"{path}:1: the file is missing. Fix: write it."


def test_versions_that_differ(house):
    house.change("pyproject.toml", "1.2.3", "1.2.4")
    assert house.one() == f"{PLUGIN}:1: the version is 1.2.3, that of pyproject.toml 1.2.4. Fix: write 1.2.4."


def test_the_marketplace_may_name_the_version(house):
    house.change(MARKET, '"source"', '"version": "1.2.3", "source"')
    assert house.found() == []
    house.change(MARKET, "1.2.3", "1.0.0")
    assert house.one().startswith(f"{MARKET}:1: the version is 1.0.0")


@pytest.mark.parametrize("path", [PLUGIN, MARKET])
def test_a_plugin_of_another_name(house, path):
    house.change(path, '"name": "warpsmith"', '"name": "smith"')
    assert house.one().startswith(f"{path}:1: the ")


def test_too_few_cases(house):
    house.remove(f"{CASE}/prompt.md")
    house.remove(f"{CASE}/graders/fired.md")
    assert house.one() == "evals:1: 11 cases, of at least 12. Fix: add cases."


def test_results_are_no_cases(house):
    house.write("evals/results/1/report.md", "# Report\n")
    assert house.found() == []


def test_a_case_without_a_prompt(house):
    house.remove(f"{CASE}/prompt.md")
    assert house.one().startswith(f"{CASE}/prompt.md:1: the case has no prompt")
    house.write(f"{CASE}/prompt.md", "---\nmax_turns: 3\n---\n\n")
    assert house.one().startswith(f"{CASE}/prompt.md:1: the case has no prompt")


def test_a_case_without_a_grader(house):
    house.remove(f"{CASE}/graders/fired.md")
    assert house.one().startswith(f"{CASE}/prompt.md:1: the case has no grader")


@pytest.mark.parametrize("matter", ["max_turns: soon", "maxturns: 3", "allowed_tools: [Bash"])
def test_a_prompt_that_cannot_be_loaded(house, matter):
    house.write(f"{CASE}/prompt.md", f"---\n{matter}\n---\nDo it.\n")
    assert house.one().startswith(f"{CASE}/prompt.md:")


@pytest.mark.parametrize(
    "text",
    [
        "no front matter\n",
        "---\ntool: Skill\n---\n",
        "---\ntype: guess\n---\n",
        "---\ntype: regex\n---\n",
        "---\ntype: llm\n---\n",
        "---\ntype: tool_used\n---\n",
        "---\ntype: tool_used\ntool: Skill\nweigth: 2\n---\n",
        "---\ntype: tool_used\ntool: Skill\nweight: 0\n---\n",
    ],
)
def test_a_grader_that_cannot_be_loaded(house, text):
    house.write(f"{CASE}/graders/fired.md", text)
    assert house.one().startswith(f"{CASE}/graders/fired.md:")


@pytest.mark.parametrize(
    "text",
    [
        "---\ntype: regex\nmatch: not_contains\n---\nfaster\n",
        "---\ntype: regex\npattern: faster\ntarget: {source: file, path: a.md}\n---\n",
        "---\ntype: llm\nweight: 2\n---\nIt is well said.\n",
        "---\ntype: tool_order\nbefore: Read\nafter: {tool: Bash, input_match: judge}\n---\n",
        "---\ntype: file_exists\npath: a.md\nexists: false\narm: both\n---\n",
    ],
)
def test_a_grader_that_can_be_loaded(house, text):
    house.write(f"{CASE}/graders/fired.md", text)
    assert house.found() == []


MACHINE = ("work/main", "root/.cache", "home/someone/x", "tmp/bash_" + "jobs.0/x")


@pytest.mark.parametrize("path", MACHINE)
@pytest.mark.parametrize("file", ["README.md", "warpsmith/x.py", "devlog/op/page.md"])
def test_a_path_of_a_machine(house, file, path):
    house.write(file, f"# One\n# /{path}\n")
    assert [found for found in house.found() if found.startswith(f"{file}:2: ") and "path of one machine" in found]


def test_a_number_of_a_tracker(house):
    house.add("README.md", "As in " + "issue #" + "12.\n")
    assert "points to a tracker" in house.one()


@pytest.mark.parametrize(
    "text", ["/path/to/x", "docs/root/x", "~/root", "https://example.org/root/x", "SGLang issue 12"]
)
def test_what_is_no_stray(house, text):
    house.add("README.md", f"{text}\n")
    assert house.found() == []


def test_a_character_that_nobody_sees(house):
    house.add("README.md", "Be\u200b brief.\n")
    assert house.one() == "README.md:6: holds the unseen character U+200B. Fix: remove it."
