"""A project with one operator, and a language whose versions are Python functions: nothing is compiled."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_driver import FakeDriver, build_fake_driver
from filelock import FileLock
from use_samples import DEFINITION

from warpsmith import languages
from warpsmith import project as projects
from warpsmith.core.evaluation import Aggregate
from warpsmith.lab.machine import system
from warpsmith.languages.base import Build
from warpsmith.project import Project
from warpsmith.use import choice, native_launch, operator
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


@pytest.fixture(scope="session")
def native_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the compiled extension, and the fake driver; all workers of a test run share it."""
    if system.find_cxx_compiler() is None:
        pytest.skip("no C++ compiler")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "native"
    with FileLock(f"{folder}.lock"):
        if not (folder / "fake_driver.so").is_file():
            native_launch.build_extension(folder / "warpsmith" / "built" / native_launch.library_file_name())
            build_fake_driver(folder / "fake_driver.so")
    return folder


@pytest.fixture
def extension(native_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[native_launch.Extension]:
    """The extension, loaded, in the cache of this test's process."""
    monkeypatch.delenv(native_launch.SWITCH)
    monkeypatch.setenv("XDG_CACHE_HOME", str(native_folder))
    native_launch.extension.cache_clear()
    loaded = native_launch.extension(native_folder / "warpsmith" / "built")
    assert loaded.module() is not None
    yield loaded
    native_launch.extension.cache_clear()


@pytest.fixture
def driver(native_folder: Path, extension: native_launch.Extension) -> Iterator[FakeDriver]:
    """The fake driver, connected to the extension."""
    fake = FakeDriver(native_folder / "fake_driver.so")
    native_launch.connect_driver(extension.module(), fake.library, fake.library)
    yield fake
    fake.library.fake_refuse(0)
    fake.library.fake_profiler(0)
    extension.module().connect(*[0] * 7)
