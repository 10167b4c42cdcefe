"""Toolchain of a judgement: which differences count, and how they read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign_kit import evaluation

from warpsmith.campaign.evidence import toolchain
from warpsmith.core.evaluation import Evaluation


def judged(folder: Path, language: str, **libraries: str) -> Evaluation:
    path = folder / "kernels" / "scale" / "toy" / "v1.toy"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("multiply by 2\n", encoding="utf-8")
    found = evaluation(path, "ACCEPT", None)
    machine = found.provenance.machine.model_copy(update={"libraries": libraries})
    provenance = found.provenance.model_copy(update={"machine": machine})
    return found.model_copy(update={"language": language, "provenance": provenance})


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    versions = {"torch": "2.13.0+cpu", "triton": "3.7.1"}

    def version(name: str) -> str:
        if name not in versions:
            raise toolchain.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(toolchain, "version", version)
    toolchain._installed.cache_clear()  # other tests have asked for the real ones
    yield
    toolchain._installed.cache_clear()


def test_only_what_a_version_is_compiled_by_counts(tmp_path: Path) -> None:
    libraries = {"torch": "2.11.0", "triton": "3.6.0", "numpy": "1.0"}
    assert toolchain.differing_libraries(judged(tmp_path, "triton", **libraries)) == {
        "torch": ("2.11.0", "2.13.0+cpu"),
        "triton": ("3.6.0", "3.7.1"),
    }
    assert toolchain.differing_libraries(judged(tmp_path, "cpp", **libraries)).keys() == {"torch"}


def test_a_build_of_the_same_release_and_what_is_not_installed_are_no_difference(tmp_path: Path) -> None:
    same = judged(tmp_path, "cuda", torch="2.13.0+cu130", **{"cuda-core": "1.0"})
    assert toolchain.differing_libraries(same) == {}
    assert toolchain.describe_differences({}) == ""


def test_a_difference_reads_then_and_now() -> None:
    text = toolchain.describe_differences({"triton": ("3.6.0", "3.7.1"), "torch": ("2.11.0", "2.13.0")})
    assert text == "torch 2.11.0 (here 2.13.0), triton 3.6.0 (here 3.7.1)"
