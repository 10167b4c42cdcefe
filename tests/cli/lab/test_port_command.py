"""`warpsmith port`: which versions it compiles, what it prints, and what it refuses with nothing written."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest
from port_samples import make_port

from warpsmith.cli import main as entry
from warpsmith.port import compile as port_compile
from warpsmith.port import numerics
from warpsmith.port.models import Numerics
from warpsmith.use import choice


@pytest.fixture
def called(tmp_path, monkeypatch):
    """`called(*arguments)`: the exit code and the requests; compilation and interpretation are scripted."""
    (tmp_path / "warpsmith.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    requests = []

    def compile_port(request, checked, tell):
        requests.append((request, checked))
        return make_port(solution=request.solution.name, accepted_on=request.accepted_on, numerics=checked)

    standing = [SimpleNamespace(solution=f"{language}/v7", language=language) for language in ("cuda", "triton")]
    monkeypatch.setattr(choice, "accepted_versions", lambda p, op, target: standing if target == "h200" else [])
    monkeypatch.setattr(port_compile, "compile_port", compile_port)
    monkeypatch.setattr(numerics, "check_numerics", lambda *_: Numerics(state="correct", workloads=("a",)))

    def run(*arguments: str):
        monkeypatch.setattr(sys, "argv", ["warpsmith", "port", *arguments])
        with pytest.raises(SystemExit) as exit_:
            entry.main()
        return int(exit_.value.code or 0), requests

    return run


def test_the_best_accepted_triton_version_is_compiled(called, capsys, tmp_path):
    code, ((request, checked),) = called("softmax", "--to", "gfx942,a100")
    assert code == 0
    assert (request.solution.name, request.accepted_on, request.origin.arch) == ("triton/v7", "h200", "sm_90a")
    assert [device.arch for device in request.devices] == ["gfx942", "sm_80"]
    assert checked.state == "correct"
    out = capsys.readouterr().out
    assert "UNTIMED" in out
    assert "needs other constants" in out
    assert "num_warps 16: launches" in out
    assert "devlog/softmax/ports/001" in out
    assert (tmp_path / "devlog/softmax/ports/001/record.json").is_file()


def test_json_without_numerics(called, capsys):
    code, ((_, checked),) = called("softmax", "--to", "gfx942", "--no-numerics", "--json")
    assert (code, checked.state) == (0, "unchecked")
    assert json.loads(capsys.readouterr().out)["timed"] is False


def test_a_wrong_version_exits_with_1(called, monkeypatch):
    monkeypatch.setattr(numerics, "check_numerics", lambda *_: Numerics(state="failed", reason="wrong"))
    assert called("softmax", "--to", "gfx942")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("softmax", "--to", "foo"), 2, "Unknown target `foo`"),
        (("softmax", "--to", ","), 2, "names no target"),
        (("softmax", "--to", "gfx942", "--version", "cuda/v1"), 2, "compiles: flydsl, hip, triton"),
        (("softmax", "--to", "gfx942", "--version", "triton/7"), 2, "is no version"),
        (("softmax", "--to", "gfx942", "--version", "triton/v99"), 3, "does not exist"),
        (("nothing", "--to", "gfx942"), 3, "No operator `nothing`"),
    ],
)
def test_refusals_write_nothing(called, capsys, tmp_path, arguments, code, words):
    assert called(*arguments) == (code, [])
    assert words in capsys.readouterr().err
    assert not (tmp_path / "devlog").exists()


def test_an_operator_without_a_version(called, capsys, monkeypatch):
    monkeypatch.setattr(choice, "accepted_versions", lambda *_: [])
    assert called("softmax", "--to", "gfx942") == (3, [])
    assert "name one with --version: triton/v1, " in capsys.readouterr().err
    assert called("fp8_grouped_gemm", "--to", "gfx942") == (3, [])
    assert "--version: triton/v1, triton/01_experts." in capsys.readouterr().err
