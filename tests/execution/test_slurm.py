"""Jobs as steps of a real Slurm's allocation: it is asked for, shared, lost, asked for again, and ended."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from remote_kit import Start, end_connections, jobs, runs, wait_until
from slurm_cluster import NODE, Cluster
from small_lab import SmallLab
from sshd import Server

from warpsmith.errors import MachineFailed, MachineLacks
from warpsmith.execution import remote, station
from warpsmith.execution.bundle import Bundle
from warpsmith.execution.contexts import Context, NamedContext
from warpsmith.execution.remote import RemoteMachine
from warpsmith.execution.slurm import AllocationEnded, SlurmConnection

WAITING = """
    open("{count}", "a").write("x")
    tell("begun")
    while not os.path.exists("{go}"): time.sleep(0.02)
    finish()
"""


def with_settings(entry: NamedContext, **settings: object) -> NamedContext:
    return NamedContext(entry.name, entry.context.model_copy(update=settings), entry.origin, entry.file)


@pytest.fixture
def files(cluster: Cluster, slurm_entry: NamedContext) -> tuple[Path, Path]:
    """Files by which a job counts its runs, and that lets it end."""
    folder = Path(slurm_entry.context.workdir)
    return folder / "count", folder / "go"


def run_until_told(
    cluster: Cluster, entry: NamedContext, bundle: Bundle, text: str, act: Callable[[int], object]
) -> list[str]:
    """Run a job, and act each time that it says that it has begun; return all lines."""
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        if line == "begun":
            cluster.await_batch()
            act(lines.count("begun"))

    RemoteMachine(entry, tell, SmallLab(text)).run(bundle)
    return lines


# The way there and back


def test_jobs_share_one_allocation(cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle) -> None:
    lines: list[str] = []
    lab = SmallLab("tell(os.environ['CUDA_VISIBLE_DEVICES']); finish()")
    first = RemoteMachine(slurm_entry, lines.append, lab).run(bundle)
    second = RemoteMachine(slurm_entry, lines.append, lab).run(bundle)
    assert lines.count("0,1,2,3") == 2
    assert [line for line in lines if "asked Slurm" in line] == [lines[0]]
    assert sum("runs on" in line for line in lines) == 1, "the node is named once"
    assert first.allocation
    assert second.allocation
    assert (first.allocation.job, first.allocation.node) == (second.allocation.job, NODE)
    assert cluster.jobs() == [first.allocation.job]
    assert abs(first.skew) < 5
    assert jobs(slurm_entry) == []
    other = SlurmConnection(slurm_entry, Path("/another/project"))
    other.release()
    assert cluster.jobs(), "another project's campaign has ended"
    assert [each.job for each in other.list_allocations()] == cluster.jobs()
    SlurmConnection(slurm_entry, Path()).release()
    wait_until(lambda: not cluster.jobs())


def test_two_jobs_at_once(cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle) -> None:
    folder = Path(slurm_entry.context.workdir)
    text = """
        open("{folder}/{own}", "a")
        while not os.path.exists("{folder}/{other}"): time.sleep(0.02)
        finish()
    """
    results, errors = [], []

    def run(own: str, other: str) -> None:
        lab = SmallLab(text.format(folder=folder, own=own, other=other))
        try:
            results.append(RemoteMachine(slurm_entry, lab=lab).run(bundle))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair) for pair in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len({result.allocation.job for result in results if result.allocation}) == 1


def test_only_listed_variables_travel_by_slurm(
    cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Path(slurm_entry.context.workdir) / "environment"
    for name in ("API_TOKEN", "KRB5CCNAME", "SBATCH_COMMENT", "SRUN_SECRET", "SLURM_SECRET"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("SBATCH_EXPORT", "ALL")
    monkeypatch.setenv("SLURM_EXPORT_ENV", "ALL")
    monkeypatch.setenv("TRITON_DEBUG", "1")
    lab = SmallLab(f"pathlib.Path('{seen}').write_text(json.dumps(dict(os.environ))); finish()")
    entry = with_settings(slurm_entry, variables=("TRITON_DEBUG",))
    found = RemoteMachine(entry, lab=lab).run(bundle)
    text = seen.read_text()
    assert '"TRITON_DEBUG": "1"' in text
    assert '"HOME"' in text
    assert "secret" not in text
    assert found.allocation
    assert "secret" not in cluster.ask("scontrol", "show", "job", found.allocation.job)


# Allocations that end


@pytest.mark.parametrize("fault", ["node down", "preempted"])
def test_a_job_is_run_again_when_its_allocation_ends(
    cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle, files: tuple[Path, Path], fault: str
) -> None:
    count, go = files

    def act(number: int) -> None:
        if number > 1:
            go.touch()
            return
        (job,) = cluster.jobs()
        if fault == "node down":
            cluster.take_down(job)
        else:
            cluster.preempt()

    lines = run_until_told(cluster, slurm_entry, bundle, WAITING.format(count=count, go=go), act)
    assert count.read_text() == "xx"
    assert any("The job is run again" in line for line in lines)


@pytest.mark.slow
def test_the_time_limit_of_an_allocation(
    cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle, files: tuple[Path, Path]
) -> None:
    count, go = files

    def act(number: int) -> None:
        if number > 1:
            go.touch()
        else:
            cluster.ask("scontrol", "update", f"JobId={cluster.jobs()[0]}", "EndTime=now")

    lines = run_until_told(cluster, slurm_entry, bundle, WAITING.format(count=count, go=go), act)
    assert any("has ended (TIMEOUT)" in line for line in lines)
    assert count.read_text() == "xx"
    assert len([line for line in lines if "asked Slurm" in line]) == 2


def test_an_allocation_that_keeps_ending(
    cluster: Cluster,
    slurm_entry: NamedContext,
    bundle: Bundle,
    files: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "_RUNS", 2)
    count, go = files
    text = WAITING.format(count=count, go=go)
    with pytest.raises(MachineLacks, match=r"has ended \(PREEMPTED\).*2 times before the job was done"):
        run_until_told(cluster, slurm_entry, bundle, text, lambda _: cluster.preempt())
    assert count.read_text() == "xx"


def test_an_allocation_that_somebody_cancels(
    cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle, files: tuple[Path, Path]
) -> None:
    count, go = files
    with pytest.raises(MachineLacks, match=r"Slurm job \d+ was cancelled by somebody"):
        run_until_told(cluster, slurm_entry, bundle, WAITING.format(count=count, go=go), lambda _: cluster.clear())
    assert count.read_text() == "x"


def test_an_outcome_that_comes_as_the_allocation_ends_does_not_count(
    cluster: Cluster,
    slurm_entry: NamedContext,
    bundle: Bundle,
    files: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker that was killed along with it would look like a version that fails."""
    interruptions = [AllocationEnded("cluster: it has ended (TIMEOUT).")]

    def interruption(_: SlurmConnection) -> AllocationEnded | None:
        if not interruptions:
            return None
        cluster.clear()
        return interruptions.pop()

    monkeypatch.setattr(SlurmConnection, "interruption", interruption)
    count, _ = files
    lines: list[str] = []
    lab = SmallLab(f"open('{count}', 'a').write('x'); finish()")
    RemoteMachine(slurm_entry, lines.append, lab).run(bundle)
    assert count.read_text() == "xx"
    assert any("The job is run again" in line for line in lines)


def test_an_unused_allocation_ends(
    cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle, files: tuple[Path, Path]
) -> None:
    entry, (count, go) = with_settings(slurm_entry, idle=8), files

    def act(_: int) -> None:
        time.sleep(10)
        go.touch()

    run_until_told(cluster, entry, bundle, WAITING.format(count=count, go=go), act)
    assert count.read_text() == "x", "a job keeps the allocation"
    (job,) = cluster.jobs()
    wait_until(lambda: cluster.state(job) == "COMPLETED")
    assert not list((Path(entry.context.workdir) / station.OWN).glob("allocation-*"))


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "asleep"])
def test_a_client_that_is_gone_leaves_no_allocation(
    cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle, start_client: Start, end: signal.Signals
) -> None:
    entry, pids = with_settings(slurm_entry, grace=4, idle=1), Path(slurm_entry.context.workdir) / "pids"
    text = f"""
        child = subprocess.Popen(["sleep", "300"], start_new_session=True)
        pathlib.Path("{pids}").write_text(f"{{os.getpid()}} {{child.pid}} {{os.getppid()}}")
        time.sleep(300)
    """
    client = start_client(entry, bundle, text)
    wait_until(pids.exists)
    time.sleep(5)
    started = list(map(int, pids.read_text().split()))
    assert all(runs(pid) for pid in started), "as long as somebody waits, the lease is renewed"
    client.send_signal(end)
    wait_until(lambda: not any(runs(pid) for pid in started))
    wait_until(lambda: not cluster.jobs())


def test_ctrl_c_cancels_the_step(
    cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle, start_client: Start
) -> None:
    pid = Path(slurm_entry.context.workdir) / "pid"
    text = f"""
        pathlib.Path("{pid}").write_text(str(os.getpid()))
        time.sleep(300)
    """
    client = start_client(slurm_entry, bundle, text)
    wait_until(lambda: pid.exists() and pid.read_text())
    os.killpg(client.pid, signal.SIGINT)
    client.wait()
    wait_until(lambda: not runs(int(pid.read_text())))
    wait_until(lambda: not jobs(slurm_entry))
    assert cluster.jobs(), "the allocation is for the next job"


# The queue


def test_a_request_that_waits_too_long_is_taken_back(
    cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle
) -> None:
    cluster.ask("sbatch", "--gres=gpu:1", "--output=/dev/null", "--wrap", "sleep 100")
    wait_until(lambda: cluster.ask("squeue", "--noheader", "--format=%T").strip() == "RUNNING")
    others, lines = cluster.jobs(), []
    with pytest.raises(MachineLacks, match=r"did not start within 2 s \(Resources\)"):
        RemoteMachine(with_settings(slurm_entry, wait=2), lines.append, SmallLab("finish()")).run(bundle)
    assert any("waits in the queue (Resources)" in line for line in lines)
    assert cluster.jobs() == others


def test_an_interrupted_request_is_taken_back(
    cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle, start_client: Start
) -> None:
    cluster.ask("sbatch", "--gres=gpu:1", "--output=/dev/null", "--wrap", "sleep 100")
    wait_until(lambda: cluster.ask("squeue", "--noheader", "--format=%T").strip() == "RUNNING")
    others = cluster.jobs()
    client = start_client(slurm_entry, bundle, "finish()")
    wait_until(lambda: cluster.ask("squeue", "--noheader", "--states=PENDING"))
    time.sleep(0.3)
    os.killpg(client.pid, signal.SIGINT)
    client.wait()
    wait_until(lambda: cluster.jobs() == others)


def test_a_node_that_is_down_is_waited_for(cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle) -> None:
    cluster.ask("scontrol", "update", f"NodeName={NODE}", "State=DOWN", "Reason=test")
    try:
        with pytest.raises(MachineLacks, match=r"did not start within 2 s \(.*(DOWN|Resources)"):
            RemoteMachine(with_settings(slurm_entry, wait=2), lab=SmallLab("finish()")).run(bundle)
    finally:
        cluster.ask("scontrol", "update", f"NodeName={NODE}", "State=RESUME")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"partition": "none"}, "there is no partition `none`"),
        ({"gpus": "9"}, "no node has that: .*gpu:9"),
        ({"gpus": "h100:1"}, "no node has that: .*gpu:h100:1"),
        ({"options": ("constraint=fast",)}, "no node has that feature: .*constraint=fast"),
        ({"time": "9:00:00"}, r"can never start \(Partition"),
        ({"python": "/nowhere/python3"}, "has no Python at `/nowhere/python3`"),
    ],
)
def test_requests_that_slurm_refuses(
    cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle, settings: dict[str, object], reason: str
) -> None:
    with pytest.raises(MachineLacks, match=reason) as refusal:
        RemoteMachine(with_settings(slurm_entry, **settings), lab=SmallLab("finish()")).run(bundle)
    assert refusal.value.exit_code == 4
    wait_until(lambda: not cluster.jobs())


def test_a_machine_without_slurm(
    slurm_entry: NamedContext, bundle: Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineLacks, match="this machine has no `squeue`"):
        RemoteMachine(slurm_entry, lab=SmallLab("finish()")).run(bundle)


# What a step finds there


def test_a_full_disk_on_the_node(cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle) -> None:
    lab = SmallLab("finish() # " + os.urandom(20000).hex())
    limited = Path(slurm_entry.context.workdir) / "python"
    limited.write_text(f'#!/bin/sh\nulimit -f 8\nexec {slurm_entry.context.python} "$@"\n')
    limited.chmod(0o755)
    with pytest.raises(MachineLacks, match=r"the disk of .* is full"):
        RemoteMachine(with_settings(slurm_entry, python=str(limited)), lab=lab).run(bundle)


def test_another_lab_and_another_clock_there(cluster: Cluster, slurm_entry: NamedContext, bundle: Bundle) -> None:
    ahead = Path(slurm_entry.context.workdir) / "python"
    text = "import time; real = time.time; time.time = lambda: real() + 3600"
    python = slurm_entry.context.python
    ahead.write_text(f'#!/bin/sh\n[ "$2" = -c ] && exec {python} "$1" -c "{text}; $3"\nexec {python} "$@"\n')
    ahead.chmod(0o755)
    entry = with_settings(slurm_entry, python=str(ahead))
    assert RemoteMachine(entry, lab=SmallLab("finish()")).run(bundle).skew == pytest.approx(3600, abs=5)
    with pytest.raises(MachineFailed, match="another lab than"):
        RemoteMachine(entry, lab=SmallLab("outcome['lab_sha256'] = '0' * 64; finish()")).run(bundle)


def test_slurm_of_a_login_node_whose_connection_is_lost(
    cluster: Cluster,
    slurm_entry: NamedContext,
    entry: NamedContext,
    server: Server,
    bundle: Bundle,
    files: tuple[Path, Path],
    tmp_path: Path,
) -> None:
    config = Path(str(entry.context.ssh_config))
    own = tmp_path / "config"
    own.write_text(config.read_text() + "  SetEnv SLURM_CONF=" + str(cluster.config) + "\n")
    context = Context(
        slurm=True, gpus="2", ssh="there", ssh_config=str(own), workdir=slurm_entry.context.workdir,
        python=slurm_entry.context.python, options=("cpus-per-task=2",),
    )  # fmt: skip
    made = NamedContext("cluster", context, "yours", cluster.folder / "contexts.toml")
    count, go = files
    text = "tell(os.environ['CUDA_VISIBLE_DEVICES'] + ' ' + os.environ['SLURM_CPUS_ON_NODE'])"
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        if line == "begun" and lines.count(line) == 1:
            end_connections(server)
            go.touch()

    machine = RemoteMachine(made, tell, SmallLab(dedent(text) + dedent(WAITING.format(count=count, go=go))))
    assert machine.run(bundle).allocation
    assert "0,1 2" in lines
    assert any("connecting again" in line for line in lines)
    assert count.read_text() == "x", "the job was not started twice"
    machine.close()
