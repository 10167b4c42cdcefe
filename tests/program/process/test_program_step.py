from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.errors import MissingInput, Misuse
from warpsmith.program.process.program import resolve_step_program


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work" / "inner").mkdir(parents=True)
    (tmp_path / "train.py").write_text("raise SystemExit('nobody may run this')\n")
    (tmp_path / "steps.py").write_text("def f():\n    pass\n\ndef g(x):\n    pass\n")
    (tmp_path / "notes.txt").write_text("no program\n")
    for path in ("work/__init__.py", "work/inner/__init__.py", "work/inner/train.py"):
        (tmp_path / path).write_text("raise SystemExit('nobody may run this')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_with_a_step_is_a_program(here: Path) -> None:
    program = resolve_step_program("train.py", "train_step", setup="ready", args=["--width", "8"])
    assert (program.path, program.step, program.setup) == (here / "train.py", "train_step", "ready")
    assert (program.args, program.folder) == (("--width", "8"), here)


def test_a_dotted_module_is_found_without_running_its_packages(here: Path) -> None:
    program = resolve_step_program("work.inner.train", "train_step")
    assert (program.path, program.module) == (here / "work/inner/train.py", "work.inner.train")
    assert program.folder == here
    package = resolve_step_program("work.inner", "train_step")
    assert (package.path.name, package.folder) == ("__init__.py", here)


def test_a_command_is_a_program_without_a_step(here: Path) -> None:
    program = resolve_step_program(None, None, command="python train.py --steps 5")
    assert (program.command, program.path) == ("python train.py --steps 5", here / "train.py")
    module = resolve_step_program(None, None, command="torchrun -m work.inner.train --steps 5")
    assert module.path == here / "work/inner/train.py"
    launched = "python -m torch.distributed.run --nproc_per_node 2 train.py"
    assert resolve_step_program(None, None, command=launched).path == here / "train.py"
    assert resolve_step_program(None, None, command="./run --fast; ls /").path == here


@pytest.mark.parametrize(
    ("text", "step", "options", "error", "says"),
    [
        ("train.py", None, {}, Misuse, "which callable is one step"),
        ("steps.py", None, {}, Misuse, "it has f, g\\."),
        ("train.py", "a.b", {}, Misuse, "bare name"),
        ("train.py", "step", {"setup": "1st"}, Misuse, "--setup 1st"),
        (None, None, {}, Misuse, "Give a Python file"),
        ("notes.txt", "step", {}, Misuse, "not a Python file"),
        ("work", "step", {}, Misuse, "not a Python file"),
        ("absent.py", "step", {}, MissingInput, "no program absent.py"),
        ("work.absent", "step", {}, MissingInput, "no module work.absent"),
        ("no such thing", "step", {}, MissingInput, "no module"),
        ("train.py", "step", {"command": "python train.py"}, Misuse, "not both"),
        (None, None, {"command": " "}, Misuse, "empty"),
    ],
)
def test_what_is_no_program_is_refused_in_one_sentence(
    here: Path, text: str | None, step: str | None, options: dict[str, str], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says) as refused:
        resolve_step_program(text, step, **options)  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)
