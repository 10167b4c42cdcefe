from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from warpsmith.cli.lab import hardware as commands
from warpsmith.core.hardware import LaunchFloor, Measurement, Noise, Target
from warpsmith.errors import MachineFailed, MachineLacks
from warpsmith.lab.calibration import ceiling, launch, noise
from warpsmith.lab.machine import system
from warpsmith.project import Project

CPU = Target(id="cpu", name="Host CPU", kind="cpu", vendor="any", architecture="any", isa="any", figures={})
GPU = CPU.model_copy(update={"id": "h200", "kind": "gpu", "aliases": ("NVIDIA H200",)})
BANDWIDTHS = {"read", "copy", "triad", "read_one_thread", "copy_one_thread"}
RATES = {"fma_float32", "fma_float64"}
PRINTED = json.dumps({"copy": {"unit": "GB/s", "how": "a test", "rates": [10.0, 30.0, 20.0, 40.0, 50.0]}})

needs_compiler = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "warpsmith.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs/knowledge")


@needs_compiler
def test_a_processor_is_really_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_THREAD_LIMIT", "1")  # Would halve the work of two threads, not what is counted.
    found = ceiling.measure_ceilings(CPU, repetitions=3, array_bytes=16 * 2**20)
    assert set(found) == BANDWIDTHS | RATES
    for name in BANDWIDTHS:
        assert found[name].unit == "GB/s"
        assert 0.5 < found[name].value < 20_000
    for name in RATES:
        assert found[name].unit == "GFLOP/s"
        assert 0.5 < found[name].value < 100_000
    assert all(each.best >= each.value and each.spread >= 0 for each in found.values())
    assert f"{system.usable_cores()} threads, arrays of 16 MiB; median of 3" in found["copy"].how


@needs_compiler
def test_openmp_settings_of_the_user_do_not_reach_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_THREAD_LIMIT", "1")
    assert "OMP_THREAD_LIMIT" not in ceiling._run(["env"], "a test")


def test_median_best_and_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceiling, "_run_on_cpu", lambda repetitions, array_bytes: PRINTED)
    found = ceiling.measure_ceilings(CPU)["copy"]
    assert (found.value, found.best) == (30.0, 50.0)
    assert found.spread == pytest.approx(20 / 30)


def test_a_gpu_is_measured_by_its_own_child(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    monkeypatch.setattr(ceiling, "find_spec", lambda name: True)
    monkeypatch.setattr(ceiling, "_run", lambda command, what: ran.append(command) or PRINTED)
    assert ceiling.measure_ceilings(GPU)["copy"].value == 30.0
    assert ran[0][1:] == ["-m", "warpsmith.lab.calibration.ceiling_gpu"]


def test_what_the_machine_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nope/g++")
    with pytest.raises(MachineLacks, match=r"/nope/g\+\+ does not exist"):
        ceiling.measure_ceilings(CPU)
    monkeypatch.setattr(ceiling, "find_spec", lambda name: None)
    with pytest.raises(MachineLacks, match="torch and triton"):
        ceiling.measure_ceilings(GPU)


def test_a_benchmark_that_fails_or_babbles_is_the_machines_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\necho 'x.cpp:1: fatal error: omp.h: No such file' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(MachineFailed, match=r"Compiling the ceiling benchmark failed: .*omp\.h"):
        ceiling.measure_ceilings(CPU)
    monkeypatch.setattr(ceiling, "_run_on_cpu", lambda repetitions, array_bytes: '{"copy": {"rates": []}}')
    with pytest.raises(MachineFailed, match="no valid result"):
        ceiling.measure_ceilings(CPU)


def test_the_command_prints_a_table_and_says_where_it_is(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ceiling, "_run_on_cpu", lambda repetitions, array_bytes: PRINTED)
    monkeypatch.setattr(noise, "measure_noise", lambda *_: Noise(floor=0.02, trials=2, how="made up"))
    floor = LaunchFloor(seconds=2.5e-6, spread=0.1, samples=9)
    monkeypatch.setattr(launch, "measure_launch", lambda _: {"parent": floor})
    app = typer.Typer()
    commands.register(app)
    result = CliRunner().invoke(app, ["ceiling", "--target", "cpu"])
    assert result.stdout.splitlines()[1].split()[:5] == ["copy", "30", "GB/s", "50", "66.7%"]
    assert result.stdout.splitlines()[2].startswith("launch floor, by parent: 2.50 us")
    path = next(project.measurements.glob("*.json"))
    assert f"Recorded in docs/knowledge/hardware/measured/{path.name}" in result.stderr
    assert "Unsteady: copy" in result.stderr
    again = CliRunner().invoke(app, ["ceiling", "--target", "cpu", "--json"])
    assert Measurement.model_validate_json(again.stdout).machine.target == "cpu"


def test_the_gpu_kernels_compile_without_a_gpu() -> None:
    pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    from warpsmith.lab.calibration import ceiling_gpu as gpu

    chain = {"factor": "fp32", "steps": "i32", "block": "constexpr", "unrolled": "constexpr"}
    arrays = ({"x": "*fp32", "out": "*fp32"}, {"a": "*fp32", "b": "*fp32", "c": "*fp32"})
    block = {"block": gpu._BLOCK}
    for kernel, signature, constants, instruction in (
        (gpu.read_kernel, {**arrays[0], "block": "constexpr"}, block, "ld.global"),
        (gpu.triad_kernel, {**arrays[1], "block": "constexpr"}, block, "fma.rn.f32"),
        (gpu.multiply_add_kernel, {"out": "*fp32", **chain}, {"block": 256, "unrolled": 2}, "fma.rn.f32"),
        (gpu.multiply_add_kernel, {"out": "*fp64", **chain}, {"block": 256, "unrolled": 2}, "fma.rn.f64"),
    ):
        built = compile(ASTSource(kernel, signature, constants), target=GPUTarget("cuda", 90, 32))
        assert instruction in built.asm["ptx"]
