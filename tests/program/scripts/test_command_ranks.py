"""Commands of several ranks under torchrun, with Gloo: every rank answers, and a rank that fails is named."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from warpsmith.errors import MachineLacks, Misuse, SolutionFailed, TimedOut, WarpsmithError
from warpsmith.lab.workers.process import is_alive
from warpsmith.program.lines.watch import watch_lines
from warpsmith.program.process import replicas
from warpsmith.program.process.program import Program, resolve_step_program
from warpsmith.program.scripts import command_runner, rank_failures
from warpsmith.program.scripts.command_runner import CommandRunner, open_runner
from warpsmith.program.scripts.rank_failures import first_rank_failure

pytestmark = pytest.mark.own_process

TRAIN = """
import os, sys, time
import torch
import torch.distributed as dist
from torch import nn
fault = sys.argv[1]
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.set_num_threads(1)
torch.manual_seed(rank if fault == "apart" else 0)
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.full((2, 4), 1.0 + rank)
for step in range(100000):
    late = rank == 1 and step == 4
    if late and fault in ("die", "die unseen") or rank == 1 and fault == "die early":
        os.kill(os.getpid(), 9)
    if step == 4 and fault == "die unseen" or fault == "die early":
        time.sleep(60)  # the launcher ends this rank before a collective fails
    if late and fault == "raise":
        raise ValueError("no more data")
    if late and fault == "memory":
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
    if rank == 1 and fault == "early":
        raise ValueError("no data at all")
    loss = model(x).square().mean()
    loss.backward()
    if not (late and fault == "hang"):
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Program]:
    """`command(fault)`: two ranks of a script in an empty project."""
    (tmp_path / "warpsmith.toml").touch()
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)

    def resolve(fault: str) -> Program:
        torchrun = f"{sys.executable} -m torch.distributed.run --nproc_per_node 2"
        return resolve_step_program(None, None, command=f"{torchrun} train.py {fault}")

    return resolve


def runner(program: Program, tmp_path: Path, timeout: float) -> CommandRunner:
    started = open_runner(program, seed=3, timeout=timeout, log=tmp_path / ".warpsmith" / "log")
    assert isinstance(started, CommandRunner)
    return started


def all_end(processes: list[int]) -> bool:
    """Wait a little for processes that were killed to be gone."""
    deadline = time.monotonic() + 10
    while any(map(is_alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return len(processes) in (0, 2) and not any(map(is_alive, processes))


@pytest.mark.slow
def test_every_rank_answers_and_ranks_that_start_apart_are_seen(
    command: Callable[..., Program], tmp_path: Path
) -> None:
    with runner(command("apart"), tmp_path, 60) as started:
        assert started.start().world == 2
        steps = started.run(2, keep=True)
        (mine,), (other,) = steps.values[:1], steps.others[0][:1]
        assert 0 < mine["value"] != other["value"]  # type: ignore[operator]
        assert [Path(file).is_file() for file in steps.saved] == [True, True]
        facts = started.observe_ranks()
        assert [item.rank for item in facts] == [0, 1]
        assert facts[1].observed is not None
        assert facts[1].observed.collectives == {"c10d::allreduce_": 2}
        assert replicas.differing_parameters(started.call_ranks("sketch")) == ["Linear.weight", "Linear.bias"]
        files = started.write_traces(2, tmp_path)
        assert [path.name for path in files] == ["trace.json.gz", "trace.rank1.json.gz"]
        update = watch_lines(started, gpu=False).lines.update
        assert update is not None
        assert TRAIN.splitlines()[update.line - 1] == "    optimizer.step()"
        assert started.run(1).count == 1, "all ranks go on"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        ("die", SolutionFailed, r"rank 1 of 2 was killed by SIGKILL during 9 steps"),
        ("'die unseen'", SolutionFailed, r"rank 1 of 2 was killed by SIGKILL during 9 steps"),
        ("'die early'", SolutionFailed, r"rank 1 was killed by SIGKILL during its start"),
        ("raise", SolutionFailed, r"rank 1 of 2 fails in its step 4: ValueError: no more data \(train\.py:21\)"),
        ("memory", MachineLacks, r"rank 1 of 2 alone runs out of memory in its step 4: .* 2\.00 GiB"),
        ("early", SolutionFailed, r"rank 1 of 2 fails in its step 0: ValueError: no data at all"),
    ],
)
def test_a_rank_that_fails_is_named_in_one_sentence_and_all_end(
    command: Callable[..., Program], tmp_path: Path, fault: str, error: type[WarpsmithError], says: str
) -> None:
    with runner(command(fault), tmp_path, 60) as failing:
        with pytest.raises(error, match=says) as failed:
            start_and_run(failing)
        processes = failing._processes
    assert "\n" not in str(failed.value)
    assert all_end(processes)


def start_and_run(failing: CommandRunner) -> None:
    failing.start()
    failing.run(9)


@pytest.mark.slow
def test_a_collective_that_one_rank_skips_ends_at_the_time_limit(
    command: Callable[..., Program], tmp_path: Path
) -> None:
    with runner(command("hang"), tmp_path, 60) as hanging:
        hanging.start()
        hanging._timeout = 3.0
        with pytest.raises(
            TimedOut, match=r"rank 0 \(train\.py:\d+\) did not end 9 steps .* rank 1 did"
        ) as failed:
            hanging.run(9)
        assert "a collective that not every rank calls" in str(failed.value)
        assert all_end(hanging._processes)


def failed(time: float, message: str = "ValueError: no data", kind: str = "failed") -> dict[str, object]:
    return {"ok": False, "kind": kind, "message": message, "time": time, "at": 3}


OK: dict[str, object] = {"ok": True}
LOST = "RuntimeError: Connection closed by peer [127.0.0.1]:1"


@pytest.mark.parametrize(
    ("answers", "rank"),
    [
        ({0: OK, 1: OK}, None),
        ({0: failed(2.0), 1: failed(1.0)}, 1),
        ({0: failed(1.0, LOST), 1: failed(2.0)}, 1),
        ({0: failed(1.0, LOST), 1: None}, 1),
        ({0: failed(1.0), 1: None}, 0),
        ({0: failed(1.0, LOST)}, 0),
    ],
)
def test_the_first_cause_counts_and_not_what_others_missed(
    answers: dict[int, dict[str, object] | None], rank: int | None
) -> None:
    first = first_rank_failure(answers, None)
    assert (first and first.rank) == rank


@pytest.mark.parametrize(
    ("answers", "waits"),
    [
        ({0: failed(1.0, LOST)}, True),
        ({0: failed(1.0, LOST), 2: OK}, True),
        ({0: failed(1.0)}, False),
        ({1: None}, False),
    ],
)
def test_the_rank_that_others_missed_is_waited_for(
    answers: dict[int, dict[str, object] | None], waits: bool
) -> None:
    assert rank_failures.only_misses_peers(answers) == waits


def test_of_ranks_that_ended_silently_the_launcher_names_the_first(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("E1126 api.py:986] failed (exitcode: -11) local_rank: 1 (pid: 5) of binary: python\n")
    first = first_rank_failure({0: None, 1: None}, log)
    assert first is not None
    assert first.rank == 1
    error = rank_failures.failure_error("run", first, 2, "5 steps", log)
    assert "rank 1 of 2 was killed by SIGSEGV during 5 steps" in str(error)


def test_a_rank_that_aborts_is_named_with_the_exception(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"
        "  what():  [enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 1056 vs 4. Sizes differ\n"
        "E1126 api.py:986] failed (exitcode: -6) local_rank: 1 (pid: 5) of binary: python\n"
    )
    first = first_rank_failure({0: None, 1: None}, log)
    assert first is not None
    error = str(rank_failures.failure_error("run", first, 2, "5 steps", log))
    assert "killed by SIGABRT (op.preamble.length <= op.nbytes. 1056 vs 4. Sizes differ) during 5 steps" in error


def test_memory_that_several_ranks_lack_is_not_that_of_one(tmp_path: Path) -> None:
    message, kind = "OutOfMemoryError: too much", "memory"
    both = first_rank_failure({0: failed(1.0, message, kind), 1: failed(2.0, message, kind)}, None)
    assert both is not None
    assert "alone" not in str(rank_failures.failure_error("run", both, 2, "5 steps", tmp_path / "log"))


def test_ranks_of_other_hosts_are_refused(
    command: Callable[..., Program], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = command("")
    script = "import torch, os\nmodel = torch.nn.Linear(1, 1)\nopt = torch.optim.SGD(model.parameters())\n"
    world = "torch.distributed.is_initialized = lambda: True\ntorch.distributed.get_world_size = lambda: 4\n"
    loop = "torch.distributed.get_rank = lambda: 0\nfor k in range(9):\n    opt.step()\n"
    (tmp_path / "train.py").write_text(script + world + loop)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    alone = resolve_step_program(None, None, command=f"{sys.executable} train.py")
    assert program.path == alone.path
    with runner(alone, tmp_path, 60) as started, pytest.raises(Misuse, match="4 ranks, 2 of them on this host"):
        started.start()


def test_each_run_has_a_port_of_its_own_unless_the_command_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.distributed import run

    for name, value in command_runner._OWN_PORT.items():
        monkeypatch.setenv(name, value)
    found = run.parse_args(["--nproc_per_node", "2", "train.py"])
    assert (found.rdzv_backend, found.rdzv_endpoint, found.local_addr) == ("c10d", "localhost:0", "127.0.0.1")
    chosen = run.parse_args(["--rdzv_backend", "static", "--rdzv_endpoint", "localhost:29511", "train.py"])
    assert (chosen.rdzv_backend, chosen.rdzv_endpoint) == ("static", "localhost:29511")
