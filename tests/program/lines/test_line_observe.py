"""Lines of planted programs: each cost is named with its line, and nothing in the controls."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from graph_programs import Loaded

from warpsmith.program.lines import line_rules
from warpsmith.program.lines.models import LineFinding
from warpsmith.program.lines.raw_lines import WatchedLines
from warpsmith.program.process import profile_steps
from warpsmith.program.tasks import line_observe

pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")

HEAD = """
import torch
weight = torch.nn.Parameter(torch.randn(64, 64))
rows = torch.randn(128, 64)
"""

FAULTS = """
def penalty():
    total = torch.zeros(())
    for row in rows @ weight:  # LOOP
        total = total + (row * row).sum()
    return total

def mix():
    turned = (rows @ weight).t().contiguous()  # COPY
    blocks = torch.ones(8, 64, 64).transpose(1, 2).reshape(8, -1)  # RESHAPE
    return turned.mean() + blocks.mean()

def step():
    loss = penalty() + mix()
    loss.backward()
    if loss.item() < 0:  # ITEM
        print(loss)
    kept = (rows @ weight.detach())[weight.detach()[:, 0].repeat(2) > 0]  # MASK
    return kept.mean().detach().tolist()  # LIST
"""


def watched(folder: Path, body: str) -> tuple[dict[str, int], WatchedLines]:
    """Watch a program; return the lines of its marks, and the counts."""
    text = HEAD + textwrap.dedent(body)
    path = folder / "train.py"
    path.write_text(text)
    marks = {line.rpartition("# ")[2]: n for n, line in enumerate(text.splitlines(), 1) if "# " in line}
    loaded = Loaded(path, None)
    answer = profile_steps.run_steps(line_observe.main(loaded, [str(folder)], steps=2), loaded.step)  # type: ignore[arg-type]
    return marks, WatchedLines.model_validate(answer["lines"])


def findings(folder: Path, counts: WatchedLines) -> list[LineFinding]:
    return list(line_rules.find_lines(counts, folder, copy_share=0.5, gpu=False))


def test_loops_copies_and_waits_are_named_with_their_lines(tmp_path: Path) -> None:
    marks, counts = watched(tmp_path, FAULTS)
    named = {(one.kind, one.line): one for one in findings(tmp_path, counts)}
    assert set(named) == {
        ("loop", marks["LOOP"]), ("copy", marks["RESHAPE"]), ("wait", marks["ITEM"]), ("wait", marks["MASK"]),
        ("wait", marks["LIST"]),
    }  # fmt: skip
    loop = named["loop", marks["LOOP"]]
    assert (loop.calls, loop.operators, loop.sequential) == (384, ("aten::mul", "aten::sum", "aten::add"), False)
    assert 0 < (loop.share or 0) < 1
    assert named["copy", marks["RESHAPE"]].bytes == 8 * 64 * 64 * 4
    small = next(site for site in counts.sites if site.line == marks["COPY"])
    assert (small.copied_bytes, small.copies) == (128 * 64 * 4, {"contiguous": 1}), "too few bytes to report"
    waits = sorted((wait.line, wait.count) for wait in counts.waits)
    assert waits == [(marks[name], 1) for name in ("ITEM", "MASK", "LIST")]
    assert named["wait", marks["ITEM"]].file == "train.py"
    assert counts.flops == 2 * 128 * 64 * 64 * 5, "three products forward, and the weight's gradient of two"


def test_a_loop_that_reads_what_it_computed_is_sequential(tmp_path: Path) -> None:
    recurrence = """
        def step():
            state = torch.zeros(1, 64)
            for row in rows:  # LOOP
                state = torch.tanh(row + state @ weight.detach())
            return state.sum()
    """
    marks, counts = watched(tmp_path, recurrence)
    (loop,) = findings(tmp_path, counts)
    assert (loop.line, loop.sequential) == (marks["LOOP"], True)
    assert "torch.compile" in loop.remedy


def test_rows_that_are_written_one_by_one_are_no_chain(tmp_path: Path) -> None:
    _, counts = watched(
        tmp_path, "def step():\n    for row in rows:\n        row.mul_(0.5)\n    return rows.sum()\n"
    )
    assert [(one.kind, one.sequential) for one in findings(tmp_path, counts)] == [("loop", False)]


@pytest.mark.parametrize(
    "body",
    [
        "def step():\n    return sum((rows @ weight.detach()).sum() for _ in range(9))\n",
        "def step():\n    (rows.contiguous() @ weight).sum().backward()\n    return weight.grad.sum()\n",
        "def step():\n    values = [float(number) for number in range(500)]\n    return rows.sum() + values[0]\n",
        "def step():\n    return rows.view(-1)[::2].clone(memory_format=torch.preserve_format).sum()\n",
    ],
)
def test_nothing_is_named_without_a_cost(body: str, tmp_path: Path) -> None:
    assert findings(tmp_path, watched(tmp_path, body)[1]) == []


def test_a_line_of_a_library_is_named_with_its_package_and_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "libraries" / "attentive"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text("def attend(x):\n    return x.t().contiguous().softmax(-1)\n")
    monkeypatch.syspath_prepend(str(library.parent))
    program = tmp_path / "program"
    program.mkdir()
    body = """
        import attentive
        big = torch.ones(512, 64)
        def step():
            return attentive.attend(big).sum()  # CALL
    """
    marks, counts = watched(program, body)
    sys.modules.pop("attentive")
    (copy,) = findings(program, counts)
    assert (copy.package, copy.file, copy.line) == ("attentive", "attentive/__init__.py", 2)
    assert copy.caller == f"train.py:{marks['CALL']}"
    location = f"attentive/__init__.py:2, called from train.py:{marks['CALL']}"
    assert line_rules.operator_locations(counts, program, ["aten::_softmax"]) == ((location, "attentive"),)


def test_the_line_that_steps_an_optimizer_is_noted(tmp_path: Path) -> None:
    body = """
        optimizer = torch.optim.SGD([weight], lr=0.1)
        def step():
            (rows @ weight).sum().backward()
            optimizer.step()  # UPDATE
            return weight.sum()
    """
    marks, counts = watched(tmp_path, body)
    assert counts.update is not None
    assert (counts.update.line, counts.update.package) == (marks["UPDATE"], "")


class Clock:
    """Clock that only the steps advance."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now


def test_time_in_a_loop_inside_another_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from warpsmith.program.lines import frames, line_timer

    clock = Clock()
    monkeypatch.setattr(line_timer, "time", clock)
    path = tmp_path / "loops.py"
    path.write_text(
        textwrap.dedent("""
        def inner(advance):
            for _ in range(3):
                advance(1)

        def step(advance):
            advance(5)
            for _ in range(2):
                advance(10)
                inner(advance)
            advance(7)
        """)
    )
    scope: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)

    def advance(seconds: float) -> None:
        clock.now += seconds

    loops = frames.list_loops(str(path))
    assert [(loop.line, loop.first, loop.last, loop.function) for loop in loops] == [
        (3, 4, 4, "inner"), (8, 9, 10, "step"),
    ]  # fmt: skip
    before = sys.gettrace()
    timed = line_timer.LoopTimer(loops, lambda: None).time_step()
    whole, seconds = profile_steps.run_steps(timed, lambda: scope["step"](advance))
    assert (whole, [seconds[loop] for loop in loops]) == (38, [6, 20])
    assert sys.gettrace() is before
