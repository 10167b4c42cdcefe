"""The eval suite loads and its graders tell right from wrong; what a real model scores is for a person to run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from harness import REPOSITORY
from messages_api import Actor, Call, MessagesAPI, anyone, text, tool

from tools.claude_cli import clean_env, cli_path

CASES = sorted(path.parent.name for path in REPOSITORY.glob("evals/*/prompt.md"))
NEAR_MISSES = [name for name in CASES if name.startswith("not-")]
HELPFUL = (
    "Join and group by with an index; select_related and a cache; num_workers and pin_memory; parallel jobs and"
    " a dependency cache; the kernel function is an inner product; systemd-analyze shows the slow services;"
    ' loading="lazy" below the fold; compass health and EKF logs;'
    " a clear headline; the audience, the message and the conversion rate of the campaign."
)
"""One answer with what a helpful model would say to each near miss."""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin and its evals without an environment: a bigger folder is refused."""
    folder = tmp_path_factory.mktemp("plugin")
    for part in (".claude-plugin", "agents", "bin", "hooks", "skills", "evals"):
        shutil.copytree(REPOSITORY / part, folder / part, ignore=shutil.ignore_patterns("results"))
    return folder


def run(plugin: Path, tmp: Path, turn: Any, case: str = "*") -> dict[str, dict[str, Any]]:
    """Case name to what its one run gave."""
    out = tmp / "result.json"
    with MessagesAPI([Actor("model", anyone, [turn], loop=True)]) as api:
        command = [cli_path(), "plugin", "eval", str(plugin), "--trust-plugin", "--no-publish"]
        options = ["--runs", "1", "--ablation", "none", "-j", "2", "--case", case, "--json", str(out)]
        done = subprocess.run(
            [*command, *options], cwd=tmp, env=clean_env(tmp / "home", api.url), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=280,
        )  # fmt: skip
    assert out.is_file(), done.stdout + done.stderr
    return {found["name"]: found["arms"]["with"][0] for found in json.loads(out.read_text())["cases"]}


def reaches_for_the_plugin(call: Call) -> list[Any]:
    if call.results:
        return [text("warpsmith made it 3x faster.")]
    return [tool("Skill", skill="warpsmith:optimize", args="softmax")]


def test_every_case_runs_and_a_helpful_answer_passes_the_near_misses(plugin, tmp_path):
    found = run(plugin, tmp_path, [text(HELPFUL)])
    assert sorted(found) == CASES
    assert len(CASES) >= 12
    assert len(NEAR_MISSES) >= 5
    assert [name for name, result in found.items() if result["error"]] == []
    assert {name for name, result in found.items() if result["score"] == 1} == set(NEAR_MISSES)


def test_a_model_that_always_reaches_for_the_plugin_fails_every_near_miss(plugin, tmp_path):
    found = run(plugin, tmp_path, reaches_for_the_plugin, "not-*")
    assert sorted(found) == NEAR_MISSES
    assert not [name for name, result in found.items() if result["passed"]]
    for result in found.values():
        graders = {grader["name"]: grader["passed"] for grader in result["graders"]}
        assert not graders["no-skill"], graders


def test_a_right_answer_passes_a_positive_case(plugin, tmp_path):
    def right(call: Call) -> list[Any]:
        if not call.results:
            return [tool("Skill", skill="warpsmith:knowledge", args="bank conflicts")]
        return [text("Pad or swizzle the tile: entry bank-conflict-padding-swizzle, external evidence.")]

    found = run(plugin, tmp_path, right, "knowledge-bank-conflicts")
    assert found["knowledge-bank-conflicts"]["score"] == 1, found
