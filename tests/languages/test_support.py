"""Support of architectures: patterns, kinds of device, and the nearest language."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from warpsmith import languages
from warpsmith.languages import support

LANGUAGES = languages.by_preference()


@pytest.mark.parametrize(
    ("name", "architecture", "runs"),
    [
        ("triton", None, True),
        ("triton", "sm_80", True),
        ("triton", "sm_120", True),
        ("triton", "sm_75", False),
        ("triton", "gfx942", True),
        ("triton", "gfx90a", False),
        ("cuda", "gfx942", False),
        ("cpp", "cpu", True),
        ("cpp", "sm_90", False),
    ],
)
def test_architectures_and_newer_ones(name: str, architecture: str | None, runs: bool) -> None:
    assert support.runs_on(languages.get(name), architecture) is runs


@pytest.mark.parametrize(
    ("kind", "isa", "architecture"),
    [
        ("gpu", "sm_90a", "sm_90"),
        ("gpu", "sm_120", "sm_120"),
        ("gpu", "gfx90a", "gfx90a"),
        ("cpu", "any", "cpu"),
    ],
)
def test_the_architecture_of_a_kind_of_device(kind: str, isa: str, architecture: str) -> None:
    assert support.architecture_of(SimpleNamespace(kind=kind, isa=isa)) == architecture


def test_where_nothing_runs_nothing_is_offered() -> None:
    assert support.list_fitting("gfx90a", LANGUAGES) == []
    text = support.describe_nearest(languages.get("cuda"), "gfx90a", LANGUAGES)
    assert "nor does any other language" in text
