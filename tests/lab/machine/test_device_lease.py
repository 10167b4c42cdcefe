"""Leases of devices: each GPU has one holder, by UUID, and another waits or takes the next."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from warpsmith.core.text import NoticeLine
from warpsmith.errors import MachineLacks
from warpsmith.lab.machine import device_lease, identity
from warpsmith.lab.machine.device_lease import lease_device, lease_devices

H100: Any = SimpleNamespace(
    id="h100", kind="gpu", vendor="NVIDIA", name="NVIDIA H100", aliases=("NVIDIA H100 80GB HBM3",)
)
MI300X: Any = SimpleNamespace(id="mi300x", kind="gpu", vendor="AMD", name="AMD Instinct MI300X", aliases=())
CPU: Any = SimpleNamespace(id="cpu", kind="cpu")
GPUS = [
    ("0", "GPU-a", "NVIDIA H100 80GB HBM3"),
    ("1", "GPU-b", "NVIDIA L40S"),
    ("2", "GPU-c", "NVIDIA H100 80GB HBM3"),
]


@pytest.fixture(autouse=True)
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "list_gpus", lambda: GPUS)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_each_gets_a_gpu_of_the_target() -> None:
    with lease_device(H100) as first:
        assert (first, os.environ["CUDA_VISIBLE_DEVICES"]) == ("GPU-a", "GPU-a")
        os.environ.pop("CUDA_VISIBLE_DEVICES")
        with lease_device(H100) as second:
            assert second == "GPU-c"
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    with lease_device(H100) as third:
        assert third == "GPU-a"


@pytest.mark.parametrize("visible", ["2", "GPU-c", "1,2"])
def test_only_visible_ones(monkeypatch: pytest.MonkeyPatch, visible: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with lease_device(H100) as device:
        assert device == "GPU-c"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == visible


def test_none_of_the_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setattr(identity, "visible_gpu", lambda: SimpleNamespace(name="NVIDIA L40S"))
    with pytest.raises(MachineLacks, match="GPU is `NVIDIA L40S`, which is not `h100`"):
        lease_device(H100).__enter__()
    monkeypatch.setattr(identity, "visible_gpu", lambda: None)
    with pytest.raises(MachineLacks, match="no GPU that NVIDIA's driver reports; `h100` needs one"):
        lease_device(H100).__enter__()


def test_no_device_of_amd_is_leased() -> None:
    with pytest.raises(MachineLacks, match="`warpsmith port OP --to mi300x`"):
        lease_device(MI300X).__enter__()


def test_the_next_waits_until_the_first_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_lease, "_POLL_SECONDS", 0.01)
    lines, order, waits = [], [], threading.Event()

    def tell(line: str) -> None:
        lines.append(line)
        waits.set()

    def take() -> None:
        with lease_device(CPU, tell):
            order.append("second")

    with lease_device(CPU):
        other = threading.Thread(target=take)
        other.start()
        assert waits.wait(10)
        order.append("first")
    other.join(10)
    assert order == ["first", "second"]
    assert lines == ["waiting until another judgement ends on cpu"]
    assert isinstance(lines[0], NoticeLine)  # without a terminal it would wait in silence


def test_a_process_that_dies_gives_it_back() -> None:
    script = """
import os
from types import SimpleNamespace
from warpsmith.lab.machine.device_lease import lease_device
lease_device(SimpleNamespace(id="cpu", kind="cpu")).__enter__()
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    with lease_device(CPU, pytest.fail):
        pass


def test_checks_share_a_device_and_a_timing_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_lease, "_POLL_SECONDS", 0.01)
    order, lines = [], list[str]()

    def time_alone() -> None:
        with lease_device(CPU, lines.append):
            order.append("timing")

    with lease_device(CPU, pytest.fail, shared=True), lease_device(CPU, pytest.fail, shared=True):
        other = threading.Thread(target=time_alone)
        other.start()
        while not lines:
            other.join(0.01)
        order.append("checks")
    other.join(10)
    assert order == ["checks", "timing"]


def test_checks_take_a_free_gpu_first() -> None:
    with lease_device(H100, pytest.fail, shared=True) as first:
        os.environ.pop("CUDA_VISIBLE_DEVICES")
        with lease_device(H100, pytest.fail, shared=True) as second:
            os.environ.pop("CUDA_VISIBLE_DEVICES")
            with lease_device(H100, pytest.fail, shared=True) as third:
                assert (first, second, third) == ("GPU-a", "GPU-c", "GPU-a")


def test_a_process_that_has_used_cuda_stays_on_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_lease, "_last_device", [])
    assert device_lease.count_devices(H100) == 2
    with lease_device(H100) as first:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
        with lease_device(H100) as second:
            assert (first, second) == ("GPU-a", "GPU-c")
    monkeypatch.setattr(device_lease, "_has_used_cuda", lambda: True)
    with lease_device(H100) as again:
        assert again == "GPU-c"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert (device_lease.count_devices(H100), device_lease.count_devices(CPU)) == (2, 1)  # of new processes


def test_a_part_of_a_gpu_is_a_device_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    part = SimpleNamespace(name="NVIDIA H100 80GB HBM3", uuid="MIG-1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1")
    monkeypatch.setattr(device_lease.identity, "visible_gpu", lambda: part)
    with lease_device(H100) as device:
        assert device == "MIG-1"


def test_several_are_leased_in_order_of_their_uuids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_lease, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(identity, "list_gpus", lambda: [GPUS[2], GPUS[1], GPUS[0]])
    with lease_devices(H100, 2, pytest.fail) as both:
        assert (both, os.environ["CUDA_VISIBLE_DEVICES"]) == (["GPU-a", "GPU-c"], "GPU-a,GPU-c")
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    with pytest.raises(MachineLacks, match="3 GPUs of `h100` are needed, and 2"):
        lease_devices(H100, 3).__enter__()
    with pytest.raises(MachineLacks, match="`cpu` is no GPU"):
        lease_devices(CPU, 2).__enter__()


def test_several_are_taken_at_once_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_lease, "_POLL_SECONDS", 0.01)
    lines, order = list[str](), []

    def take() -> None:
        with lease_devices(H100, 2, lines.append) as both:
            order.append(both)

    with lease_device(H100, pytest.fail) as first:
        os.environ.pop("CUDA_VISIBLE_DEVICES")
        other = threading.Thread(target=take)
        other.start()
        while not lines:
            other.join(0.01)
        while True:  # it lets go of what it got between its tries
            lock = device_lease._try_lock(device_lease._lock_path("GPU-c"), device_lease.fcntl.LOCK_EX)
            if lock is not None:
                break
        device_lease._unlock([lock])
        order.append([first])
    other.join(10)
    assert order == [["GPU-a"], ["GPU-a", "GPU-c"]]


def test_one_device_is_shown_to_a_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device_lease.list_devices(H100) == ["GPU-a", "GPU-c"]
    with device_lease.show_device("GPU-c"), lease_device(H100) as device:
        assert device == "GPU-c"
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    with device_lease.show_device("cpu"):
        assert "CUDA_VISIBLE_DEVICES" not in os.environ
