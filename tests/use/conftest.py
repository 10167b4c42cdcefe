"""A project with one operator, and a language whose versions are Python functions: nothing is compiled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from use_samples import DEFINITION

from warpsmith import languages
from warpsmith import project as projects
from warpsmith.core.evaluation import Aggregate
from warpsmith.languages.base import Build
from warpsmith.project import Project
from warpsmith.use import choice, operator
from warpsmith.use.choice import BestVersion


class Shop:
    """A project at hand with accepted versions."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge")
        self.calls: list[tuple[object, ...]] = []
        self.lacks: str | None = None
        self._chosen: dict[str, dict[str, list[BestVersion]]] = {}
        self._runs: dict[Path, Callable[..., object]] = {}
        monkeypatch.setattr(choice, "rank_versions", lambda project, op: self._chosen.get(op, {}))
        load = {"load": lambda build, definition: self._runs[build.artifact], "build": self._build}
        ours = {
            "toy": SimpleNamespace(missing=lambda kind: self.lacks, **load),
            "spare": SimpleNamespace(missing=lambda kind: None, **load),
        }
        real = languages.get
        monkeypatch.setattr(languages, "get", lambda name: ours.get(name) or real(name))
        (root / "warpsmith.toml").write_text("")
        monkeypatch.chdir(root)

    def define(self, name: str, *, outputs: str = "returned", more: str = "") -> None:
        """Write a definition."""
        path = self.project.definition_path(name)
        path.parent.mkdir(parents=True)
        path.write_text(DEFINITION.format(name=name, outputs=outputs) + more)

    def accept(self, name: str, run: Callable[..., object], target: str = "cpu", language: str = "toy") -> None:
        """Have a version accepted, slower than those before it; its calls are counted. `toy` may lack things."""

        def counted(*arguments: object) -> object:
            self.calls.append(arguments)
            return run(*arguments)

        file = self.project.kernels / name / language / "v3.toy"
        self._runs[file] = counted
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name + language)
        chosen = BestVersion(
            op=name, solution=f"{language}/v3", language=language, target=target, device="a device", file=file,
            sha256=hashlib.sha256(file.read_bytes()).hexdigest(), record=file.parent / "record.json",
            speedups=(Aggregate.model_validate(
                {"against": "reference", "speedup": 2.0, "interval": {"low": 1.9, "high": 2.1},
                 "worst_workload": "small", "worst": 2.0}),),
        )  # fmt: skip
        self._chosen.setdefault(name, {}).setdefault(target, []).append(chosen)

    def _build(self, source: Path, definition: object, folder: Path) -> Build:
        return Build(source, source, ())


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A fresh one; nothing that was chosen before is remembered."""
    operator._best.cache_clear()
    yield Shop(tmp_path, monkeypatch)
    operator._best.cache_clear()


@pytest.fixture
def nothing_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the project's own operators."""
    monkeypatch.setattr(projects, "SHIPPED", Path("/nowhere"))
