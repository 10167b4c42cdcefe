"""Environment variables that reach a candidate, a tool or an agent: a list of names, since nobody foresees what
the next secret is called.

No credentials of clouds, registries or hosts are among them. What is the user's own keeps the whole environment:
programs, traced scripts, commands of a repository.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

SETTING: Final = "WARPSMITH_PASS"
"""Variable by which a user adds names, with commas between them: `HF_HOME,VENDOR_LICENSE_*`."""

_CANDIDATE = (
    "PATH", "HOME", "USER", "LANG", "TMPDIR",  # what every program expects
    "VIRTUAL_ENV", "LD_LIBRARY_PATH",  # where Python's packages and their libraries lie
    "CC", "CXX", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH",  # compilers at the first call
    "CUDA*", "NVIDIA*", "NCCL_*", "NVSHMEM*", "TORCH_SYMM*",  # devices, and how ranks reach each other
    "TRITON*", "TORCHINDUCTOR*",  # compilers that run in the worker, and their caches
    "OMP_*",  # threads
    "LC_ALL",  # encoding of names of files
)  # fmt: skip
_TOOL = (
    *_CANDIDATE,
    "LC_*", "TZ", "TERM", "LOGNAME", "XDG_*",  # language, time and folders of the user
    "PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX", "LD_PRELOAD",  # the Python that runs Warpsmith
    "NIX_*", "NVCC_*", "CCACHE_*",  # compilers from Nix, flags of conda's nvcc, caches of compilers
    "NV_*", "CUTE_DSL_*", "CUTLASS_*", "ROCM*", "HIP_*", "HSA_*", "ROCR_*", "PYTORCH_*", "TORCH_*",  # toolkits
    "GOMP_*", "KMP_*", "MKL_*",  # threads of other libraries
    "WARPSMITH_*",  # our own
)  # fmt: skip
_AGENT = (
    "ANTHROPIC_*", "CLAUDE*",  # its key and its settings
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "ALL_PROXY", "all_proxy",
    "SSL_CERT_*", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "NODE_OPTIONS", "NODE_TLS_REJECT_UNAUTHORIZED",
    "DISABLE_*", "API_TIMEOUT_MS", "BASH_*", "MCP_*", "SHELL",  # what Claude Code reads besides
    "GIT_AUTHOR_*", "GIT_COMMITTER_*",  # a user's name in commits
)  # fmt: skip
_PROVIDERS = {
    "CLAUDE_CODE_USE_BEDROCK": ("AWS_*",),
    "CLAUDE_CODE_USE_VERTEX": ("GOOGLE_*", "GCLOUD_*", "CLOUDSDK_*", "CLOUD_ML_REGION", "VERTEX_*"),
}
"""Names that an agent needs where its API is another provider's, which a variable says."""

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|JWT", re.IGNORECASE)


def candidate_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that a candidate's worker gets."""
    return _select(environment, _CANDIDATE)


def tool_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that compilers, profilers and sanitizers get, and so the candidates below them."""
    return _select(environment, _TOOL)


def agent_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that an agent gets: those of tools, and what it needs to reach its API."""
    providers = [
        name for switch, names in _PROVIDERS.items() if _is_on(environment.get(switch, "")) for name in names
    ]
    own = {name: value for name, value in environment.items() if _matches(name, (*_AGENT, *providers))}
    return tool_environment(environment) | own


def _is_on(value: str) -> bool:
    """Return whether a variable's value switches something on, as Claude Code reads it."""
    return value.strip().lower() in ("1", "true", "yes", "on")


def _select(environment: Mapping[str, str], patterns: tuple[str, ...]) -> dict[str, str]:
    """Return the variables whose name is listed and not that of a secret, or that the user added."""
    added = [name.strip() for name in environment.get(SETTING, "").split(",") if name.strip()]
    return {
        name: value
        for name, value in environment.items()
        if _matches(name, added) or (_matches(name, patterns) and not _SECRET.search(name))
    }


def _matches(name: str, patterns: tuple[str, ...] | list[str]) -> bool:
    return any(name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns)
