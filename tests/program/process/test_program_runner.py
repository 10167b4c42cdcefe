from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import program

from warpsmith.errors import MachineLacks, Misuse, SolutionFailed, TimedOut, WarpsmithError
from warpsmith.lab.workers import process
from warpsmith.program.lines.watch import watch_lines
from warpsmith.program.models import ProgramFacts, StepsRun, TensorSummary
from warpsmith.program.process import runner as runners
from warpsmith.program.process.runner import Runner

QUICK = 60.0


class Started:
    """A runner that is started, and what it said."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.facts: ProgramFacts = runner.start()
        self.first: StepsRun = runner.run(2)


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    folder = tmp_path_factory.mktemp("train")
    with Runner(program(folder), timeout=QUICK, log=folder / "log.txt") as runner:
        yield Started(runner)


def test_facts_say_what_the_program_is_made_of(train: Started) -> None:
    assert (train.facts.device, train.facts.gpu) == ("cpu", False)
    assert train.facts.modules == {"Linear": 2, "Sequential": 1, "GELU": 1}
    assert train.facts.parameter_dtypes == {"float32": 4 * 8 + 8 + 8 * 4 + 4}
    assert train.facts.memory_peak > 0
    assert train.facts.observed is None


def test_steps_return_their_values_and_count_on(train: Started) -> None:
    first = train.runner.run(3)
    again = train.runner.run(1, values=False)
    assert [first.count, again.first - first.first, again.values] == [3, 3, ()]
    assert all(isinstance(values["value"], float) for values in first.values)
    assert first.seconds_per_step == pytest.approx(first.seconds / 3)


def test_kept_tensors_are_whole(train: Started) -> None:
    import torch

    steps = train.runner.run(2, keep=True)
    (file,) = steps.saved
    saved = torch.load(file)
    assert [float(each["value"]) for each in saved] == [values["value"] for values in steps.values]


def test_state_sums_up_parameters(train: Started) -> None:
    state = train.runner.state()
    assert list(state) == ["model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias"]
    assert state["model.0.weight"].shape == (8, 4)
    assert all(each.finite for each in state.values())


def test_an_observed_step_says_what_it_calls(train: Started) -> None:
    observed = train.runner.observe().observed
    assert observed is not None
    assert observed.calls("aten::gelu") == 1
    assert set(observed.products) == {"float32"}
    assert 0 < sum(observed.times.values()) < observed.seconds
    assert (observed.backwards, observed.optimizer_steps, observed.shapes_vary) == (1, 0, False)
    assert observed.returns is True


def test_a_trace_marks_the_steps(train: Started, tmp_path: Path) -> None:
    trace = train.runner.trace(2, tmp_path)
    assert trace.region.steps is not None
    assert (trace.region.steps.count, trace.script) == (2, "train.py")
    assert (tmp_path / "trace.json.gz").is_file()


def test_memory_has_a_peak(train: Started) -> None:
    assert train.runner.peak_bytes() > 1 << 20


def test_the_same_seed_gives_the_same_losses(train: Started, tmp_path: Path) -> None:
    with Runner(program(tmp_path), timeout=QUICK) as one, Runner(program(tmp_path), seed=1, timeout=QUICK) as two:
        one.start()
        two.start()
        assert one.run(2).values == train.first.values != two.run(2).values


def test_a_copy_is_run_in_place_of_a_file_and_of_what_it_imports(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("FACTOR = 2.0\n")
    copy, helper = tmp_path / "old", tmp_path / "old-helper"
    helper.write_text("FACTOR = 3.0\n")
    copy.write_text(
        "import inspect, helper\ndef train_step():\n    'old'\n"
        "    return {'factor': helper.FACTOR, 'old': 'old' in inspect.getsource(train_step)}\n"
    )
    there = program(tmp_path, "def train_step():\n    return 1.0\n")
    with Runner(there, {there.path: copy, tmp_path / "helper.py": helper}, timeout=QUICK) as runner:
        runner.start()
        assert runner.run(1).values == ({"value.factor": 3.0, "value.old": 1.0},)
    assert not list(tmp_path.glob("__pycache__/helper*"))


def test_a_setup_hands_its_result_to_the_step_and_arguments_reach_the_program(tmp_path: Path) -> None:
    text = "import sys\ndef ready():\n    return 2.0, float(sys.argv[1])\ndef step(a, b):\n    return a * b\n"
    with Runner(program(tmp_path, text, "step", setup="ready", args=("5",)), timeout=QUICK) as runner:
        runner.start()
        assert runner.run(1).values == ({"value": 10.0},)


def test_a_step_may_take_its_number_and_a_loss_may_be_nan(tmp_path: Path) -> None:
    text = "def step(number):\n    return float('nan') if number == 2 else 1.0\n"
    with Runner(program(tmp_path, text, "step"), timeout=QUICK) as runner:
        runner.start()
        steps = runner.run(4)
    assert steps.first_nonfinite == 2
    again = StepsRun.model_validate_json(steps.model_dump_json())
    assert math.isnan(again.values[2]["value"])  # type: ignore[arg-type]
    assert StepsRun(first=0, count=1, seconds=1.0, values=({"value": _broken()},)).first_nonfinite == 0


def _broken() -> TensorSummary:
    return TensorSummary(shape=(2,), dtype="float32", norm=None, mean=None, finite=False)


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("def other():\n    return 1.0\n", Misuse, "has no step `train_step`: it has other;"),
        ("def train_step(model, batch):\n    pass\n", Misuse, r"needs arguments \(model, batch\); give --setup"),
        ("def train_step(:\n", SolutionFailed, r"import or setup fails: SyntaxError: .*\(train.py:1\)"),
        ("import sys\nsys.exit(3)\n", SolutionFailed, r"sys.exit\(3\) \(train.py:2\)"),
    ],
)
def test_what_cannot_start_is_said_in_one_sentence(
    tmp_path: Path, text: str, error: type[WarpsmithError], says: str
) -> None:
    with Runner(program(tmp_path, text), timeout=QUICK, log=tmp_path / "log") as runner:
        with pytest.raises(error, match=says) as failed:
            runner.start()
        assert "\n" not in str(failed.value)
    assert (tmp_path / "train.py").read_text() == text


STEPS = """
import os, sys, time
import torch

class OutOfMemory(torch.OutOfMemoryError):
    pass

def fails():
    raise ValueError("no such batch")
def leaves():
    sys.exit(1)
def dies():
    os._exit(7)
def hangs():
    time.sleep(60)
def memory():
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
def fills():
    return torch.empty(1 << 50, dtype=torch.uint8)
def misses():
    return model
def profiles():
    with torch.profiler.profile():
        pass

if __name__ == "__main__":
    model = 1.0
"""


@pytest.mark.parametrize(
    ("step", "error", "says"),
    [
        ("fails", SolutionFailed, r"step `fails` \(call 0\) fails: ValueError: no such batch \(train.py:9\)"),
        ("leaves", SolutionFailed, r"ends the process: it calls sys.exit\(1\) \(train.py:11\); return"),
        ("dies", SolutionFailed, "ended with exit code 7 during 1 steps"),
        ("misses", SolutionFailed, "NameError: .*; code under .* does not run here: make it a function for"),
        ("hangs", TimedOut, "took more than 20 s"),
        ("memory", MachineLacks, "runs out of memory as it stands: .*Tried to allocate 2.00 GiB"),
        ("fills", MachineLacks, "runs out of memory as it stands: .*can't allocate memory"),
    ],
)
def test_a_step_that_does_not_run_is_said_in_one_sentence(
    tmp_path: Path, step: str, error: type[WarpsmithError], says: str
) -> None:
    with Runner(program(tmp_path, STEPS, step), timeout=QUICK, log=tmp_path / "log") as runner:
        runner.start()
        runner._timeout = 2.0 if step == "hangs" else QUICK
        with pytest.raises(error, match=says.replace("20 s", "2 s")) as failed:
            runner.run(1)
    assert "\n" not in str(failed.value)


def test_a_program_that_ends_while_it_is_observed_is_said_to(tmp_path: Path) -> None:
    text = "import os, torch\ndef train_step():\n    os._exit(7)\n"
    ended = "ended with exit code 7 during the steps that are"
    for look, says in ((Runner.observe, f"{ended} observed"), (watch_lines, f"{ended} watched line by line")):
        with Runner(program(tmp_path, text), timeout=QUICK, log=tmp_path / "log.txt") as runner:
            runner.start()
            with pytest.raises(SolutionFailed, match=says):
                look(runner, **({"gpu": False} if look is watch_lines else {}))  # type: ignore[operator]


def test_what_forks_is_counted_and_killed_with_the_program(tmp_path: Path) -> None:
    text = (
        "import os, time\n"
        "def train_step():\n"
        "    if os.fork() == 0:\n        os.setsid()\n        time.sleep(600)\n"
        "    os.fork()\n"  # returns from the step twice: only the program itself goes on
        "    return 1.0\n"
    )
    with Runner(program(tmp_path, text), timeout=QUICK) as runner:
        runner.start()
        assert runner.run(2).values == ({"value": 1.0},) * 2
        assert runner.facts().processes == 2
        children = runner.descendants()
    deadline = time.monotonic() + 5
    while any(map(process.is_alive, children)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(process.is_alive, children))


def test_what_forks_without_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "MOST_PROCESSES", 3)
    text = "import os, time\ndef train_step():\n    while True:\n        os.fork()\n        time.sleep(1)\n"
    with Runner(program(tmp_path, text), timeout=QUICK) as runner:
        runner.start()
        with pytest.raises(SolutionFailed, match="started more than 3 processes and was killed"):
            runner.run(1)


def test_a_profiler_of_the_programs_own_is_refused_while_ours_runs(tmp_path: Path) -> None:
    with Runner(program(tmp_path, STEPS, "profiles"), timeout=QUICK, log=tmp_path / "log") as runner:
        runner.start()
        runner.run(1)
        with pytest.raises(SolutionFailed, match=r"starts torch\.profiler itself"):
            runner.trace(1, tmp_path)


def test_the_program_ends_when_its_runner_is_killed(tmp_path: Path) -> None:
    text = program(tmp_path, "import time\ndef train_step():\n    time.sleep(60)\n").path
    code = (
        "import os\n"
        "from warpsmith.program.process.runner import Runner\n"
        "from warpsmith.program.process.program import resolve_step_program\n"
        f"runner = Runner(resolve_step_program({str(text)!r}, 'train_step')); runner.start()\n"
        "runner._channel.send({'do': 'run', 'count': 1, 'values': False, 'keep': False})\n"
        "print(runner._process.pid, flush=True); os._exit(0)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=QUICK)
    child = int(said.stdout)
    deadline = time.monotonic() + 5
    while process.is_alive(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not process.is_alive(child)
