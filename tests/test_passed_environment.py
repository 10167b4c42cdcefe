"""Secrets reach no candidate and no tool, and an agent gets only those that its API needs."""

from __future__ import annotations

import pytest

from warpsmith.passed_environment import SETTING, agent_environment, candidate_environment, tool_environment

SECRETS = (
    "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "HF_TOKEN", "GITHUB_PAT", "DATABASE_URL", "SLACK_WEBHOOK", "SLURM_JWT",
    "OPENAI_API_KEY", "SSH_AUTH_SOCK", "NVIDIA_API_KEY", "TRITON_TOKEN", "PYTORCH_CREDENTIALS", "KUBECONFIG",
)  # fmt: skip
NEEDED = (
    "PATH",
    "HOME",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_HOME",
    "LD_LIBRARY_PATH",
    "TRITON_CACHE_DIR",
    "OMP_NUM_THREADS",
)
SOME = dict.fromkeys((*SECRETS, *NEEDED, "ANTHROPIC_API_KEY", "HTTPS_PROXY", "LC_TIME", "WARPSMITH_HITS"), "1")


@pytest.mark.parametrize("select", [candidate_environment, tool_environment, agent_environment])
def test_only_what_is_listed_passes(select):
    passed = select(SOME)
    assert set(NEEDED) <= set(passed)
    assert passed.keys() & set(SECRETS) == set()
    assert ("ANTHROPIC_API_KEY" in passed) == ("HTTPS_PROXY" in passed) == (select is agent_environment)
    assert ("WARPSMITH_HITS" in passed) == (select is not candidate_environment)


@pytest.mark.parametrize("select", [candidate_environment, tool_environment, agent_environment])
def test_a_user_adds_names(select):
    passed = select({**SOME, "HF_HOME": "/hub", SETTING: "HF_*, DATABASE_URL,"})
    assert passed.keys() & {*SECRETS, "HF_HOME"} == {"HF_HOME", "HF_TOKEN", "DATABASE_URL"}


def test_an_agent_gets_no_token_of_node_and_no_keys_of_a_provider_that_is_off():
    passed = agent_environment(
        {**SOME, "CLAUDE_CODE_USE_BEDROCK": "0", "NODE_AUTH_TOKEN": "1", "NODE_OPTIONS": "2"}
    )
    assert passed.keys() & {*SECRETS, "NODE_AUTH_TOKEN", "NODE_OPTIONS"} == {"NODE_OPTIONS"}


def test_an_agent_of_another_provider_gets_its_keys():
    passed = agent_environment({**SOME, "CLAUDE_CODE_USE_BEDROCK": "1"})
    assert passed.keys() & set(SECRETS) == {"AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"}
