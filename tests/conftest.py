"""What every test has: those marked `gpu` are skipped where no CUDA device is; properties have no deadline."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import lab_record
import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from fork_host import ForkHost
    from program_host import Host

# Containers often forbid bytecode. Each worker and each command would then compile all modules again, for seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Programs of tests end before the extension of launch plans is compiled; its own tests turn it on.
os.environ["WARPSMITH_LAUNCH_PLANS"] = "0"

_SKIPPED = pytest.StashKey[frozenset[str]]()

# A shell's background jobs ignore Ctrl-C, and so would every command that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples each time, however busy the machine is.
settings.register_profile("tests", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


@cache
def _has_cuda() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--drafts", action="store_true", help="test the drafts under kernels/ as well as the versions"
    )
    parser.addoption("--all-lab", action="store_true", help="run the dear tests that the record holds too")
    parser.addoption("--record-lab", action="store_true", help="run what the record does not hold, and record it")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SKIPPED] = lab_record.skipped_tests(config)
    if config.option.record_lab and not hasattr(config, "workerinput"):
        config.pluginmanager.register(lab_record.Recorder())


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of xdist which tests do not run: to find out takes seconds."""
    node.workerinput["skipped_tests"] = sorted(node.config.stash[_SKIPPED])


def pytest_report_header(config: pytest.Config) -> str:
    return f"record: {len(config.stash[_SKIPPED])} dear tests passed with the same inputs, and do not run"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    lab_record.deselect_recorded(config, items, config.stash[_SKIPPED])
    lab_record.put_long_first(items, getattr(config, "workerinput", {}).get("workercount", 1))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not _has_cuda():
        pytest.skip("no CUDA device")


@pytest.fixture(scope="session", autouse=True)
def no_power_cut() -> Iterator[None]:
    """No test needs what it wrote to be on the disk, and waiting for that is a tenth of some tests' time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # a descriptor that is closed still fails
        yield


@pytest.fixture
def dying() -> Iterator[Callable[[Path], None]]:
    """`dying(lock)`: a lock that is held a little longer, as by what a killed process had just started."""
    held = []

    def hold(path: Path) -> None:
        lock = FileLock(path, thread_local=False)
        lock.acquire()
        held.append(timer := threading.Timer(0.1, lock.release))
        timer.start()

    yield hold
    for timer in held:
        timer.join()


@pytest.fixture(scope="session")
def fork_host() -> Iterator[ForkHost]:
    """The process that others are forked from where a test is not about their start."""
    from fork_host import ForkHost

    host = ForkHost()
    yield host
    host.close()


@pytest.fixture
def forked_workers(fork_host: ForkHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes that workers come from are forked."""
    from warpsmith.lab.workers import worker_host

    monkeypatch.setattr(worker_host, "subprocess", fork_host.subprocess)


@pytest.fixture
def forked_compilers(fork_host: ForkHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes that compile for a fake device are forked."""
    from warpsmith.languages.shared import compile_only, tool

    stand_in = SimpleNamespace(run_tool=fork_host.run_tool, fence_lines=tool.fence_lines)
    monkeypatch.setattr(compile_only, "tool", stand_in)


@pytest.fixture
def forked_scripts(fork_host: ForkHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes that import an operator's file or run a script under a profiler are forked."""
    from warpsmith.interchange.pytorch import importer
    from warpsmith.profiling.trace import script

    for module in (importer, script):
        monkeypatch.setattr(module, "subprocess", fork_host.subprocess)


@pytest.fixture(scope="session")
def program_host() -> Iterator[Host]:
    from program_host import Host

    host = Host()
    yield host
    host.close()


@pytest.fixture
def forked_programs(program_host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs come from the host."""
    from warpsmith.program.process import runner

    monkeypatch.setattr(runner, "spawn_server", program_host.spawn)


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep floors that a test measures, often by a scripted clock, and its keys from other tests and the user."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
