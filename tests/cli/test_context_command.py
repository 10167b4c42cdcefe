"""`warpsmith context`, and `--context` of other commands: output, exit codes, and what a refusal leaves alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpsmith.campaign import lab_requests
from warpsmith.cli import main as entry
from warpsmith.errors import Misuse, Unreachable
from warpsmith.execution import contexts, examine, slurm, slurm_client, ssh
from warpsmith.lab.doctor.models import DoctorReport
from warpsmith.project import find_project

Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run(*arguments)`: the exit code of a command in a fresh project."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(ssh.SshConnection, "close", lambda self: None)
    (tmp_path / "project" / "kernels" / "op" / "cpp").mkdir(parents=True)
    (tmp_path / "project" / "kernels" / "op" / "definition.py").write_text("")
    (tmp_path / "project" / "kernels" / "op" / "cpp" / "v1.cpp").write_text("")
    monkeypatch.chdir(tmp_path / "project")

    def call(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["warpsmith", *arguments])
        with pytest.raises(SystemExit) as ended:
            entry.main()
        return int(ended.value.code or 0)

    return call


def test_a_context_is_added_listed_shown_and_removed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("context", "list") == 0
    assert capsys.readouterr().out == "local  this machine\n"
    assert run("context", "add", "lab", "--ssh", "gpu01", "--python", "/opt/python", "--variable", "HF_HOME") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("lab: ssh gpu01, folder ~/warpsmith, Python /opt/python; in ")
    assert "warpsmith doctor --context lab" in printed.err
    assert run("context", "add", "two", "--ssh", "gpu02", "--shared") == 0
    assert (Path("warpsmith.toml")).read_text().endswith('[contexts.two]\nssh = "gpu02"\n')
    capsys.readouterr()
    assert run("context", "list") == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["local", "this", "machine"],
        ["lab", "ssh", "gpu01", "~/warpsmith", "yours"],
        ["two", "ssh", "gpu02", "~/warpsmith", "shared"],
    ]
    contexts.require_trust(contexts.find_context(find_project(), "two"))  # whoever adds it, agrees to it
    text = Path("warpsmith.toml").read_text()
    Path("warpsmith.toml").write_text(text.replace("gpu02", "gpu03"))
    assert run("doctor", "--context", "two") == 2
    assert "`warpsmith context trust two`" in capsys.readouterr().err
    assert run("context", "trust", "two") == 0
    assert capsys.readouterr().out == "two: ssh gpu03, folder ~/warpsmith, Python python3: trusted as it is now.\n"
    contexts.require_trust(contexts.find_context(find_project(), "two"))
    assert run("context", "show", "lab") == 0
    assert "  variables: HF_HOME\n" in capsys.readouterr().out
    assert run("context", "show", "lab", "--json") == 0
    assert json.loads(capsys.readouterr().out)["python"] == "/opt/python"
    assert run("context", "list", "--json") == 0
    assert set(json.loads(capsys.readouterr().out)) == {"lab", "two"}
    assert run("context", "remove", "lab") == 0
    assert "~/warpsmith/.warpsmith-station on gpu01 stays" in capsys.readouterr().err
    assert not contexts.user_contexts_file().read_text()
    assert run("context", "show", "lab") == Misuse.exit_code
    assert "no context `lab`; known: local, two" in capsys.readouterr().err


def test_a_context_of_slurm(run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    line = ("context", "add", "cluster", "--slurm", "--partition", "h100", "--gpus", "4", "--time", "4:00:00")
    assert run(*line, "--option", "mem=64G") == 0
    assert capsys.readouterr().out.startswith("cluster: Slurm, folder ~/warpsmith, Python python3; in ")
    assert "slurm = true\n" in contexts.user_contexts_file().read_text()
    context = contexts.find_context(find_project(), "cluster").context
    assert context.sbatch_options == ["--partition=h100", "--gres=gpu:4", "--time=4:00:00", "--mem=64G"]
    monkeypatch.setattr(slurm.SlurmConnection, "list_allocations", lambda self: [])
    assert run("context", "show", "cluster") == 0
    assert "allocation: none" in capsys.readouterr().out
    job = slurm_client.Allocation("12", "RUNNING", node="n7", end="2026-01-01T00:00:00")
    monkeypatch.setattr(slurm.SlurmConnection, "list_allocations", lambda self: [job])
    assert run("context", "show", "cluster") == 0
    assert "allocation: Slurm job 12, RUNNING on n7 until 2026-01-01T00:00:00" in capsys.readouterr().out
    monkeypatch.setattr(slurm.SlurmConnection, "cancel_all", lambda self: ["12"])
    assert run("context", "remove", "cluster") == 0
    assert "Ended the allocation, Slurm job 12." in capsys.readouterr().err


def test_a_context_of_slurm_is_removed_without_slurm(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("context", "add", "cluster", "--slurm") == 0
    assert run("context", "show", "cluster") == 0
    assert "this machine has no `squeue`" in capsys.readouterr().err
    assert run("context", "remove", "cluster") == 0
    assert "end by themselves" in capsys.readouterr().err
    assert not contexts.user_contexts_file().read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("local", "--ssh", "h"), "`local` is this machine"),
        (("Lab", "--ssh", "h"), "`Lab` is no name"),
        (("lab", "--ssh", "-oProxyCommand=x"), "cannot be added: `ssh`"),
        (("lab", "--ssh", "h", "--grace", "1"), "cannot be added: `grace`"),
        (("lab",), "--ssh HOST, --slurm, or both"),
        (("lab", "--slurm", "--gpus", "-1"), "cannot be added: `gpus`"),
        (("lab", "--slurm", "--partition=--wrap=x"), "cannot be added: `partition`"),
        (("lab", "--slurm", "--option", "wrap=touch x"), "cannot be added: `options"),
        (("lab", "--slurm", "--option", "mem=1;touch x"), "cannot be added: `options"),
        (("lab", "--ssh", "h", "--gpus", "4"), "cannot be added: `gpus` is for a context with `slurm = true`"),
        (("lab", "--slurm", "--ssh-config", "f"), "cannot be added: `ssh_config`"),
        (("lab", "--ssh", "h", "--shared", "--variable", "TOKEN"), "--variable is for your own settings"),
        (("lab", "--ssh", "h", "--shared", "--ssh-config", "f"), "--ssh-config is for your own settings"),
    ],
)
def test_a_context_that_cannot_be_added(
    run: Run, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert run("context", "add", *arguments) == Misuse.exit_code
    assert message in capsys.readouterr().err
    assert not contexts.user_contexts_file().exists()
    assert not Path("warpsmith.toml").exists()


def test_a_name_is_taken_once_in_each_file(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("context", "add", "lab", "--ssh", "gpu01") == 0
    before = contexts.user_contexts_file().read_bytes()
    assert run("context", "add", "lab", "--ssh", "gpu02") == Misuse.exit_code
    assert "`warpsmith context remove lab`" in capsys.readouterr().err
    assert contexts.user_contexts_file().read_bytes() == before
    assert run("context", "add", "lab", "--ssh", "gpu02", "--shared") == 0


def test_the_doctor_examines_it(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def examined(project: object, found: contexts.NamedContext, tell: object) -> DoctorReport:
        assert found.context.ssh == "gpu01"
        return DoctorReport.of([])

    monkeypatch.setattr(examine, "examine_context", examined)
    assert run("context", "add", "lab", "--ssh", "gpu01") == 0
    assert run("doctor", "--context", "lab") == 0
    assert "Ready: versions can be judged on cpu and gpu." in capsys.readouterr().out
    assert run("doctor", "--context", "other") == Misuse.exit_code

    def unreachable(*_: object) -> DoctorReport:
        raise Unreachable("lab: gpu01: it does not answer.")

    monkeypatch.setattr(examine, "examine_context", unreachable)
    assert run("doctor", "--context", "lab") == Unreachable.exit_code == 4


def test_a_version_is_judged_there(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def judge(project: object, manifest: object, solution: object, tell: object, conditions: object) -> object:
        asked.append((manifest, conditions))
        return SimpleNamespace(
            correct=True,
            results=(),
            steps=(SimpleNamespace(notes=()),),
            decision=SimpleNamespace(verdict="ACCEPT"),
        )

    monkeypatch.setattr(lab_requests, "judge_solution", judge)
    assert run("context", "add", "lab", "--ssh", "gpu01") == 0
    line = ("judge", "kernels/op/cpp/v1.cpp", "--check", "--context")
    assert run(*line, "lab", "--target", "h100") == 0
    ((manifest, conditions),) = asked
    assert (manifest.context, manifest.target, conditions.timed) == ("lab", "h100", False)
    assert run(*line, "lab") == Misuse.exit_code
    assert "--context judges outside of a campaign, so it needs --target" in capsys.readouterr().err
    assert run(*line, "nowhere", "--target", "h100") == Misuse.exit_code
    assert run(*line, "local", "--target", "cpu") == 0
    assert asked[1][0].context is None
