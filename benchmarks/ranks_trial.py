"""The trial of a program of several ranks, as a user types it: analyze, apply, edit, verify, report.

The program is a copy of examples/programs/data_parallel.py in a new project, which torchrun starts with NCCL on
GPUs or Gloo on a CPU. The edit reduces gradients once an optimizer step instead of once a micro-batch. Each
command prints what a user sees; `--out` gets the project's devlog with the analysis and the trial, also if a
command fails or the time is over. The exit code is that of the first command that fails; of `verify`, 1 is an
edit that was not kept.

    python benchmarks/ranks_trial.py --device cuda --out trial --seconds 300
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from warpsmith import project as projects

EXAMPLE = Path(__file__).parents[1] / "examples" / "programs" / "data_parallel.py"
ENTRY = "one-reduction-per-step"
PREDICTED = "1.05"
"""Speedup that is predicted of it by default."""

SIZES = {"cuda": "--width 4096 --layers 12 --batch 64", "cpu": "--width 128 --layers 12 --batch 16"}
"""Sizes of the model by device. On GPUs gradients take 0.8 GB, and their reductions outweigh the products."""

EDITS = (
    ("import argparse\n", "import argparse\nimport contextlib\n"),
    ("for _ in range(arguments.micro_batches):\n", "for part in range(arguments.micro_batches):\n"),
    (
        "            loss = (model(x) - x).square().mean() / arguments.micro_batches\n"
        "            loss.backward()\n",
        "            is_last = part == arguments.micro_batches - 1\n"
        "            with contextlib.nullcontext() if is_last else model.no_sync():\n"
        "                loss = (model(x) - x).square().mean() / arguments.micro_batches\n"
        "                loss.backward()\n",
    ),
)
"""Texts of the program and what replaces each."""


def main() -> None:
    """Run the trial and keep its records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=sorted(SIZES), default="cuda")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=600.0, help="time for all commands together")
    parser.add_argument("--predict", default=PREDICTED)
    parser.add_argument("--out", type=Path, required=True, help="new folder")
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(prefix="warpsmith-ranks-") as folder:
        root = Path(folder)
        program = Path(shutil.copy(EXAMPLE, root / "train.py"))
        (root / projects.MARKER).touch()
        try:
            code = play_trial(root, program, options, until)
        finally:
            shutil.copytree(root / "devlog", options.out, dirs_exist_ok=True)
    sys.exit(code)


def play_trial(root: Path, program: Path, options: argparse.Namespace, until: float) -> int:
    """Run the commands in a project until one fails; return its exit code, or 0."""
    torchrun = f"{shlex.quote(sys.executable)} -m torch.distributed.run --nproc_per_node {options.ranks}"
    command = f"{torchrun} {program.name} --device {options.device} {SIZES[options.device]}"
    steps = (
        ("analyze", "--command", command, "--steps", "5"),
        ("apply", ENTRY, "--command", command, "--predict", options.predict),
        ("verify",),
        ("report",),
    )
    for step in steps:
        if step[0] == "verify":
            program.write_text(edit_text(program.read_text()))
        started = time.monotonic()
        code = run_command(root, step, until - started)
        print(f"{step[0]}: {time.monotonic() - started:.0f} s, exit code {code}", flush=True)
        if code:
            return code
    return 0


def edit_text(text: str) -> str:
    """Return the program that reduces gradients once an optimizer step; exit if the example has changed."""
    for old, new in EDITS:
        if text.count(old) != 1:
            sys.exit(f"{EXAMPLE.name} has changed: mend EDITS of {Path(__file__).name}.")
        text = text.replace(old, new)
    return text


def run_command(root: Path, words: tuple[str, ...], seconds: float) -> int:
    """Run a command on programs; return its exit code, 124 if its time was over."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(EXAMPLE.parents[2]), *sys.path[1:]])}
    process = subprocess.Popen([sys.executable, "-m", "warpsmith", "program", *words], cwd=root, env=environment)
    try:
        return process.wait(max(seconds, 1.0))
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
        return 124


if __name__ == "__main__":
    main()
