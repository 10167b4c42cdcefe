"""A server for all tests, and a context with a connection of its own for each."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from remote_kit import Start
from slurm_cluster import Cluster
from slurm_cluster import missing as missing_slurm
from sshd import Server, missing

from warpsmith.execution import remote, slurm
from warpsmith.execution.archive import pack_files
from warpsmith.execution.bundle import JOB, Bundle
from warpsmith.execution.contexts import Context, NamedContext
from warpsmith.execution.job import Job
from warpsmith.execution.remote import RemoteMachine


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    if reason := missing():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="ws-", dir="/tmp"))  # the paths of sockets must stay short
    made = Server(folder)
    yield made
    made.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def entry(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[NamedContext]:
    """A context with a folder of its own there and a connection of its own."""
    sockets = Path(tempfile.mkdtemp(prefix="ws-", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(sockets))
    monkeypatch.setattr(remote, "MODULE", "performer")
    monkeypatch.setattr(remote, "_BEAT_SECONDS", 0.2)
    workdir = tempfile.mkdtemp(prefix="there-", dir=server.folder)
    context = Context(ssh="there", workdir=workdir, python=sys.executable, ssh_config=str(server.config))
    made = NamedContext("lab", context, "yours", server.folder / "contexts.toml")
    yield made
    RemoteMachine(made).close()
    shutil.rmtree(sockets)


@pytest.fixture(scope="session")
def started_cluster() -> Iterator[Cluster]:
    if reason := missing_slurm():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="ws-", dir="/tmp"))  # the paths of sockets must stay short
    folder.chmod(0o711)  # munge wants its socket to be reachable
    made = Cluster(folder)
    yield made
    made.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cluster(started_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The cluster without a job, for this process and those that it starts."""
    runtime = tempfile.mkdtemp(prefix="ws-", dir="/tmp")
    for name, value in (
        ("SLURM_CONF", str(started_cluster.config)), ("XDG_RUNTIME_DIR", runtime),
        ("PATH", started_cluster.environment["PATH"]),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(remote, "MODULE", "performer")
    monkeypatch.setattr(remote, "_BEAT_SECONDS", 0.2)
    monkeypatch.setattr(slurm, "_POLL_SECONDS", (0.1,))
    yield started_cluster
    started_cluster.clear()
    shutil.rmtree(runtime)


@pytest.fixture
def slurm_entry(cluster: Cluster) -> NamedContext:
    """A context of the cluster, with a folder of its own there."""
    workdir = tempfile.mkdtemp(prefix="there-", dir=cluster.folder)
    context = Context(slurm=True, partition="gpu", gpus="4", workdir=workdir, python=sys.executable, wait=20)
    return NamedContext("cluster", context, "yours", cluster.folder / "contexts.toml")


@pytest.fixture
def changed(entry: NamedContext) -> Callable[..., NamedContext]:
    """`changed(grace=1)`: the context with other settings; a grace may be shorter than users may choose."""

    def change(**settings: object) -> NamedContext:
        return NamedContext(entry.name, entry.context.model_copy(update=settings), entry.origin, entry.file)

    return change


@pytest.fixture
def bundle() -> Bundle:
    job = Job(kind="examine")
    return Bundle(job, pack_files({JOB: job.model_dump_json().encode(), "project/warpsmith.toml": b""}))


@pytest.fixture
def start_client(tmp_path: Path) -> Iterator[Start]:
    """`start_client(entry, bundle, text)`: a client in a process of its own, with such a lab and this bundle."""
    clients = []

    def start(entry: NamedContext, bundle: Bundle, text: str) -> subprocess.Popen[bytes]:
        (tmp_path / "bundle").write_bytes(bundle.data)
        script = client_script(entry, text, tmp_path / "bundle")
        command = [sys.executable, "-c", script]
        clients.append(subprocess.Popen(command, process_group=0, stderr=subprocess.DEVNULL))
        return clients[-1]

    yield start
    for client in clients:
        client.kill()
        client.wait()


def client_script(entry: NamedContext, text: str, bundle: Path) -> str:
    return f"""
import sys; sys.path[:0] = {[str(Path(__file__).parent), *sys.path]!r}
from small_lab import SmallLab
from pathlib import Path
from warpsmith.execution import remote, slurm, station
from warpsmith.execution.bundle import Bundle
from warpsmith.execution.contexts import Context, NamedContext
from warpsmith.execution.job import Job
slurm._POLL_SECONDS = (0.1,)
remote.MODULE, remote._BEAT_SECONDS = "performer", 0.2
context = Context.model_construct(**{entry.context.model_dump()!r})
entry = NamedContext({entry.name!r}, context, "yours", Path({str(entry.file)!r}))
remote.RemoteMachine(entry, lab=SmallLab({dedent(text)!r})).run(
    Bundle(Job(kind="examine"), Path({str(bundle)!r}).read_bytes()))
"""
