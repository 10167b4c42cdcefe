"""TileIR's second step in the real Claude Code, on a machine with the back end and on one without it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness import run_claude
from messages_api import Actor, Block, Call, bash, saying, text, tool
from screenplay import json_block, main, spawn

SPECIALIST = saying("You are Warpsmith's TileIR specialist.")
AGENT = "warpsmith:tileir-specialist"
BRIEF = "Write kernels/scale/tileir/v1.py for b200. The best version is kernels/scale/triton/v1.py."
EDIT = ("--allowedTools", "Bash(warpsmith *)", "Write", "Edit", "Read")
SOURCE = """\
import torch
import triton
import triton.language as tl


@triton.jit
def twice(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x * 2, mask=offsets < n)


def run(x):
    y = torch.empty_like(x)
    twice[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""


def standing(work: Path) -> Path:
    """A version in Triton, which the second step begins with."""
    path = work / "kernels" / "scale" / "triton" / "v1.py"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    return path


def answer(outcome: str, change: str, files: Sequence[str] = ()) -> str:
    """The specialist's answer."""
    return json_block(
        {
            "op": "scale",
            "version": "tileir/v1",
            "changes": [change],
            "correctness": outcome,
            "files": list(files),
            "command": "warpsmith judge kernels/scale/tileir/v1.py --check",
            "workloads": [{"name": "256k", "reason": "the only workload that is timed"}],
            "devlog": "devlog/scale",
        }
    )


def test_a_machine_without_the_back_end(tmp_path: Path, work: Path) -> None:
    """The route has both steps and says what stands in; the specialist writes nothing and says why."""
    standing(work)

    def refuse(call: Call) -> Sequence[Block]:
        (line,) = (line for line in call.last.splitlines() if " tileir: " in line)
        return [text(answer("FAIL", line.split("tileir: ")[1]))]

    def report(call: Call) -> Sequence[Block]:
        return [text(f"MARK {call.last}")]

    turns = [bash("warpsmith route --target b200 --language TileIR")], [spawn(AGENT, BRIEF)], report
    actors = [Actor("specialist", SPECIALIST, [[bash("warpsmith doctor")], refuse]), main(*turns)]
    result = run_claude(tmp_path, "/warpsmith:optimize scale b200 TileIR", actors, *EDIT, cwd=work)
    result.api.played_out()
    first, second, remark = result.api.calls("main")[1].last.splitlines()
    assert first == "1. warpsmith:triton-specialist: write a Triton kernel"
    assert second.startswith(f"2. {AGENT}: write a TileIR solution, from the existing one in Triton")
    assert "`--language triton` judges the same source" in remark
    asked = str(result.api.calls("specialist")[0].body)
    assert "Copy the best Triton version, byte for byte" in asked
    assert "no TileIR back end" in result.result["result"]
    assert not (work / "kernels" / "scale" / "tileir").exists()


def test_a_machine_with_the_back_end(tmp_path: Path, work: Path) -> None:
    """A folder on Python's path stands in for the wheel; without a GPU the lab stops at the device."""
    path = standing(work)
    wheel = tmp_path / "wheel"
    for name in ("nvidia", "tileir"):
        (wheel / "triton" / "backends" / name).mkdir(parents=True)
        (wheel / "triton" / "backends" / name / "compiler.py").touch()
    (wheel / "triton" / "__init__.py").touch()

    def copy(call: Call) -> Sequence[Block]:
        return [tool("Write", file_path=str(work / "kernels/scale/tileir/v1.py"), content=path.read_text())]

    def fail(call: Call) -> Sequence[Block]:
        return [text(answer("FAIL", call.last.splitlines()[-1], ["kernels/scale/tileir/v1.py"]))]

    judge = bash("warpsmith judge kernels/scale/tileir/v1.py --check --target b200")
    specialist = Actor("specialist", SPECIALIST, [[tool("Read", file_path=str(path))], copy, [judge], fail])
    turns = (
        [bash("warpsmith route --target b200 --language TileIR --kernel kernels/scale/triton/v1.py")],
        [spawn(AGENT, BRIEF)],
    )
    env = {"PYTHONPATH": str(wheel)}
    done = main(*turns, [text("end")])
    result = run_claude(tmp_path, "take it to TileIR", [specialist, done], *EDIT, cwd=work, env=env)
    result.api.played_out()
    (only,) = result.api.calls("main")[1].last.splitlines()
    assert only.startswith(f"1. {AGENT}: write a TileIR solution")
    assert (work / "kernels" / "scale" / "tileir" / "v1.py").read_text() == SOURCE
    assert "b200" in result.api.calls("specialist")[3].last
