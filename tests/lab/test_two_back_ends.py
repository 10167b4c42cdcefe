"""One Triton source as two solutions in one session, each compiled by its own back end.

A stand-in for Triton has both back ends and launches kernels as plain functions: no wheel with TileIR is at hand.
It shows which worker selects which back end, and says nothing of speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lab_samples import SQUARE
from workshop import Workshop

from warpsmith import languages
from warpsmith.core.evaluation import Status
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.arenas import allocate_arenas
from warpsmith.lab.timing.session import Session
from warpsmith.lab.timing.sides import Sides, SideSource
from warpsmith.lab.workers.side import Limits, SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost

NAMES = ("tileir", "triton")

PACKAGE = {
    "sitecustomize.py": "import torch\ntorch.cuda.is_available = lambda: True\n",
    "nvtriton-3.6.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: nvtriton\nVersion: 3.6.0\n",
    "triton/__init__.py": "from triton.runtime.jit import JITFunction as jit\n",
    "triton/runtime/__init__.py": """\
import os
from types import SimpleNamespace


class Driver:
    _active = None

    @property
    def active(self):
        if self._active is None:  # as Triton: the first who asks decides for the process
            name = "tileir" if os.environ.get("ENABLE_TILE", "0") == "1" else "cuda"
            self._active = SimpleNamespace(get_current_target=lambda: SimpleNamespace(backend=name))
        return self._active


driver = Driver()
""",
    "triton/runtime/jit.py": """\
import os
from types import SimpleNamespace

from triton.runtime import driver


class JITFunction:
    def __init__(self, fn):
        self.fn, self.__name__, self.device_caches = fn, fn.__name__, {0: ({}, None)}

    def __getitem__(self, grid):
        return self.run

    def run(self, *args):
        target = driver.active.get_current_target()
        if "refused" in self.__name__ and os.environ.get("TRITON_TILEIR_RUNTIME_FALLBACK") == "1":
            target = SimpleNamespace(backend="cuda")
        metadata = SimpleNamespace(target=target, num_warps=4, num_stages=3, num_ctas=1)
        self.device_caches[0][0]["key"] = SimpleNamespace(metadata=metadata, n_regs=40, n_spills=0)
        self.fn(*args)
""",
    "triton/runtime/cache.py": "triton_key = lambda: 'stand-in'\n",
    "triton/runtime/interpreter.py": "class InterpretedFunction:\n    run = None\n",
    "triton/runtime/autotuner.py": "class Autotuner:\n    run = None\n\n\nclass Heuristics:\n    run = None\n",
    "triton/backends/nvidia/compiler.py": "",
    "triton/backends/tileir/compiler.py": "",
}

SOURCE = """\
import torch
import triton


@triton.jit
def square(x, y):
    torch.mul(x, x, out=y)


def run(x):
    y = torch.empty_like(x)
    square[(1,)](x, y)
    return y
"""


@pytest.fixture
def file(workshop: Workshop) -> DefinitionFile:
    return workshop.load("square", SQUARE)


@pytest.fixture
def comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: DefinitionFile) -> object:
    """`comparison({language: source})`: a session with a worker for each."""
    stand_in = tmp_path / "stand-in"
    for name, text in PACKAGE.items():
        path = stand_in / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(stand_in)

    @contextmanager
    def compare(sources: dict[str, str]) -> Iterator[Session]:
        workload = file.definition.workloads[0]
        code = {}
        for name, text in sources.items():
            path = tmp_path / name / "v1.py"
            path.parent.mkdir()
            path.write_text(text)
            build = languages.get(name).build(path, file.definition, tmp_path)
            code[name] = SideSource(build, name, Limits(seconds=30))
        arenas = allocate_arenas(file, [workload], [workload], list(code), "cpu")
        with WorkerHost("cpu") as host, Sides(file, host, arenas, code, "cpu") as sides:
            sides.start()
            session = sides.open_session(workload, 7)
            session.fill_inputs()
            yield session

    return compare


def test_each_solution_has_its_own_back_end(comparison: Callable[..., object]) -> None:
    with comparison(dict.fromkeys(NAMES, SOURCE)) as session:
        for name in NAMES:
            assert session.call_and_grade(name).status is Status.PASSED
            assert session.call_side(name) > 0
        notes = {name: session.sides[name].resources()[0].notes for name in NAMES}
    assert "back end tileir" in notes["tileir"]
    assert notes["triton"] == ("num_warps 4, num_stages 3, num_ctas 1",)


def test_a_kernel_of_another_back_end_is_refused(comparison: Callable[..., object]) -> None:
    switch = 'import os\nos.environ["TRITON_TILEIR_RUNTIME_FALLBACK"] = "1"\n'
    with comparison({"tileir": switch + SOURCE.replace("square", "refused")}) as session:
        assert session.call_and_grade("tileir").status is Status.PASSED
        with pytest.raises(SideFailed, match="refused was compiled by the cuda back end"):
            session.sides["tileir"].resources()


def test_the_fallback_is_off_unless_a_version_allows_it(comparison: Callable[..., object]) -> None:
    with comparison({"tileir": SOURCE.replace("square", "refused")}) as session:
        assert session.call_and_grade("tileir").status is Status.PASSED
        assert "back end tileir" in session.sides["tileir"].resources()[0].notes


def test_a_version_that_selects_another_back_end_does_not_load(comparison: Callable[..., object]) -> None:
    switch = 'import os\nos.environ["ENABLE_TILE"] = "0"\n'
    with (
        pytest.raises(SideFailed, match="Triton compiles with its cuda back end"),
        comparison({"tileir": switch + SOURCE}),
    ):
        pass
