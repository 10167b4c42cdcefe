"""TileIR's part of the interface: where the back end is looked for, what is selected, and what is refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from warpsmith import languages
from warpsmith.driver import routing
from warpsmith.errors import MachineLacks
from warpsmith.languages.base import Build, BuildFailed, SuppressesLaunches
from warpsmith.languages.tileir import back_end
from warpsmith.languages.tileir import language as tileir
from warpsmith.languages.tileir.language import LANGUAGE

SOURCE = "import triton\n\ndef run(x):\n    return x\n"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """`installed(names)`: a Triton whose folder has these back ends."""

    def install(*names: str) -> None:
        for name in names:
            (tmp_path / "triton" / "backends" / name).mkdir(parents=True)
            (tmp_path / "triton" / "backends" / name / "compiler.py").touch()
        spec = SimpleNamespace(submodule_search_locations=[str(tmp_path / "triton")])
        monkeypatch.setattr(back_end, "find_spec", lambda _: spec if names else None)

    return install


@pytest.fixture
def device(monkeypatch):
    """A CUDA device, and a Triton whose back end follows the switch."""
    monkeypatch.setattr(tileir, "has_cuda_device", lambda: True)
    monkeypatch.setattr(tileir.TRITON, "load", lambda build, _: f"run of {build.source.name}", raising=False)
    runtime = ModuleType("triton.runtime")
    active = SimpleNamespace(
        get_current_target=lambda: SimpleNamespace(
            backend="tileir" if os.environ.get("ENABLE_TILE") == "1" else "cuda"
        )
    )
    runtime.driver = SimpleNamespace(active=active)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton.runtime", runtime)
    for name in ("ENABLE_TILE", "TRITON_TILEIR_RUNTIME_FALLBACK"):
        monkeypatch.setenv(name, "1")
        monkeypatch.delenv(name)


def launched(backend: str | None) -> object:
    """A function whose kernel was compiled by a back end."""
    target = {} if backend is None else {"target": SimpleNamespace(backend=backend)}
    metadata = SimpleNamespace(num_warps=4, occupancy=2, **target)
    kernel = SimpleNamespace(metadata=metadata, n_regs=32, n_spills=0)
    names = {"norm": SimpleNamespace(device_caches={0: ({"key": kernel}, None)}, __name__="norm")}
    return eval("lambda x: x", names)


def test_the_interface():
    assert languages.get("tileir") is LANGUAGE
    assert isinstance(LANGUAGE, SuppressesLaunches)
    assert (LANGUAGE.written_in, LANGUAGE.suffix, LANGUAGE.architectures) == ("triton", ".py", ("sm_100+",))
    assert languages.recognise("v1.py", SOURCE) == "triton"


@pytest.mark.parametrize("word", ["TileIR", "tile-ir", "Triton (Tile-IR)", "TileIR under Triton", "nvtriton"])
def test_users_names_for_it(word):
    assert routing.parse_language(word, languages.by_preference()) == "tileir"


def test_the_source_is_tritons(vector, tmp_path):
    triton = languages.get("triton")
    assert LANGUAGE.template(vector) == triton.template(vector)
    assert LANGUAGE.normalise(SOURCE + "# why\n") == triton.normalise(SOURCE)
    path = tmp_path / "v1.py"
    path.write_text(SOURCE)
    assert LANGUAGE.build(path, vector, tmp_path) == Build(path, path, ())


def test_what_is_missing_is_named(installed, monkeypatch):
    installed("amd", "nvidia")
    for kind in ("gpu", "cpu"):
        assert "no TileIR back end, only amd and nvidia" in (LANGUAGE.missing(kind) or "")
    assert "`--language cutile` keeps that compiler" in (LANGUAGE.remark() or "")
    installed("tileir")
    assert LANGUAGE.remark() is None
    assert "interpreter" in (LANGUAGE.missing("cpu") or "")
    monkeypatch.setattr(tileir.TRITON, "missing", lambda _: None, raising=False)
    assert LANGUAGE.missing("gpu") is None


def test_without_any_triton(installed):
    installed()
    assert "no TileIR back end, none" in (back_end.missing_back_end() or "")


def test_a_worker_selects_the_back_end(device, tmp_path):
    build = Build(tmp_path / "v1.py", tmp_path / "v1.py", ())
    assert LANGUAGE.load(build, None) == "run of v1.py"  # type: ignore[arg-type]
    assert (os.environ["ENABLE_TILE"], os.environ["TRITON_TILEIR_RUNTIME_FALLBACK"]) == ("1", "0")


def test_a_users_process_is_left_as_it_is(device, monkeypatch, tmp_path):
    build = Build(tmp_path / "v1.py", tmp_path / "v1.py", (), tmp_path)
    with pytest.raises(BuildFailed, match="set ENABLE_TILE=1 before the program starts"):
        LANGUAGE.load(build, None)  # type: ignore[arg-type]
    assert "ENABLE_TILE" not in os.environ
    monkeypatch.setenv("ENABLE_TILE", "1")
    assert LANGUAGE.load(build, None) == "run of v1.py"  # type: ignore[arg-type]


def test_a_triton_that_does_not_follow_is_refused(device, monkeypatch, tmp_path):
    monkeypatch.setattr(back_end, "current_back_end", lambda: "cuda")
    with pytest.raises(BuildFailed, match="compiles with its cuda back end"):
        LANGUAGE.load(Build(tmp_path, tmp_path, ()), None)  # type: ignore[arg-type]


def test_without_a_device_nothing_is_loaded(monkeypatch, tmp_path):
    monkeypatch.setattr(tileir, "has_cuda_device", lambda: False)
    with pytest.raises(BuildFailed, match="no CUDA device"):
        LANGUAGE.load(Build(tmp_path, tmp_path, ()), None)  # type: ignore[arg-type]


def test_a_record_names_the_back_end(monkeypatch):
    monkeypatch.delenv("TILEIR_ENABLE_APPROX", raising=False)
    (report,) = LANGUAGE.resources(launched("tileir"))  # type: ignore[arg-type]
    assert (report.kernel, report.registers) == ("norm", 32)
    assert report.notes == ("num_warps 4, occupancy 2", "back end tileir")
    monkeypatch.setenv("TILEIR_ENABLE_APPROX", "1")
    (report,) = LANGUAGE.resources(launched("tileir"))  # type: ignore[arg-type]
    assert "TILEIR_ENABLE_APPROX=1" in report.notes


@pytest.mark.parametrize("backend", ["cuda", None])
def test_what_another_back_end_compiled_is_refused(backend):
    with pytest.raises(BuildFailed, match=f"norm was compiled by the {backend or 'unknown'} back end"):
        LANGUAGE.resources(launched(backend))  # type: ignore[arg-type]


def test_nothing_is_inspected(vector, tmp_path):
    with pytest.raises(MachineLacks, match="inspect the version in Triton"):
        LANGUAGE.inspect(Path("v1.py"), vector, "sm_100")
