"""The GPU's path of ranks on a processor: the gate, timed blocks, drawn calls, and multicast that stays off."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from warpsmith.core.evaluation import Status, Verdict
from warpsmith.errors import MachineFailed, Misuse
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.ranks import correctness_check, gpu_kernels, group, multicast, rank_host, start_gate, timing
from warpsmith.lab.ranks.group import COPIES, SLOTS, RankGroup
from warpsmith.lab.ranks.models import RankEvaluation
from warpsmith.lab.ranks.start_gate import GatePage, StartGate
from warpsmith.lab.workers.side import Limits
from warpsmith.lab.workers.worker_host import WorkerHost

REDTEAM = Path(__file__).parent / "redteam"
GATHER = REDTEAM / "control_gather.py"


@pytest.fixture(autouse=True)
def fake_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group believes that its ranks have GPUs."""
    monkeypatch.setattr(WorkerHost, "device", property(lambda _: "cuda"))
    monkeypatch.setattr(group, "_RANK", "fake_gpu_ranks")
    monkeypatch.setattr(rank_host, "leased_uuids", lambda: ("GPU-a", "GPU-b"))
    monkeypatch.setattr(rank_host, "describe_link", lambda _: "NV18")
    monkeypatch.setattr(start_gate, "GATE_SECONDS", 5)  # calls are issued as fast as a processor runs them
    monkeypatch.setattr(correctness_check, "JOLTED_BLOCKS", (2, 1))
    monkeypatch.setattr(correctness_check, "BLOCKS", 2)


@pytest.fixture
def open_group(host: WorkerHost, file, request: pytest.FixtureRequest) -> Callable[[Path], RankGroup]:
    """`open_group(path)`: ranks of a version, at the first workload."""

    def open_it(path: Path) -> RankGroup:
        content, workload = path.read_bytes(), file.definition.workloads[0]
        ranks = RankGroup("v1", file.definition, [workload], path, content, host, Limits(seconds=20))
        request.addfinalizer(ranks.close)
        ranks.open_workload(workload)
        return ranks

    return open_it


def write_gather(path: Path, lines: str) -> Path:
    """A right version with lines before its `run`, and `run` under another name, `gather`."""
    head, body = GATHER.read_text().split("def run(")
    path.write_text(f"{head}def gather({body}\n\n{lines}")
    return path


def test_an_honest_version_is_accepted(judge_file: Callable[..., RankEvaluation]) -> None:
    evaluation = judge_file(GATHER, against=GATHER, timed=True)
    assert evaluation.correct
    assert evaluation.decision is not None
    assert evaluation.decision.verdict is not Verdict.INVALID
    assert (evaluation.backend, evaluation.devices, evaluation.link) == ("nccl", ("NVIDIA Fake",) * 2, "NV18")
    assert evaluation.times["32x1024"].issued_ahead is True
    assert "clock" in {check.name for check in evaluation.trust if not check.ran}


@pytest.mark.parametrize(
    "name",
    [
        "attack_no_exchange",
        "attack_remote_cache",
        "attack_result_in_buffer",
        "attack_all_at_last",
        "attack_long_run",
    ],
)
def test_attacks_are_caught(
    judge_file: Callable[..., RankEvaluation], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(correctness_check, "BLOCKS", 8 if name == "attack_long_run" else 2)
    evaluation = judge_file(REDTEAM / f"{name}.py")
    assert evaluation.decision is not None
    assert evaluation.decision.verdict is Verdict.ROLLBACK


@pytest.mark.parametrize("name", ["attack_block_cache", "attack_timed_batch", "attack_timed_only"])
def test_attacks_of_timed_blocks_alone_are_caught(judge_file: Callable[..., RankEvaluation], name: str) -> None:
    evaluation = judge_file(REDTEAM / "gpu" / f"{name}.py", timed=True)
    assert [result.workload for result in evaluation.results if result.status is not Status.PASSED] == ["*"]


def test_a_deadlock_ends_all(judge_file: Callable[..., RankEvaluation]) -> None:
    evaluation = judge_file(REDTEAM / "attack_deadlock.py", seconds=2)
    assert evaluation.results[-1].status is Status.TIMEOUT


RAISES = """
def run(*inputs):
    if dist.get_rank() == 1:
        raise ValueError("no such luck")
    return gather(*inputs)
"""


def test_a_rank_that_fails_before_the_gate_ends_all(
    open_group: Callable[[Path], RankGroup], tmp_path: Path
) -> None:
    ranks, started = open_group(write_gather(tmp_path / "raises.py", RAISES)), time.monotonic()
    with pytest.raises(group.SideFailed, match=r"rank 1: .*no such luck"):
        ranks.call_slots([[0.0] * SLOTS] * 2, checked=False)
    assert time.monotonic() - started < 10, "rank 0 waits at the gate, and nobody may wait for it"


CHANGES = """
def run(partial, residual, weight, eps):
    residual += 1
    return gather(partial, residual, weight, eps)
"""


def test_changed_inputs_are_seen(judge_file: Callable[..., RankEvaluation], tmp_path: Path) -> None:
    evaluation = judge_file(write_gather(tmp_path / "changes.py", CHANGES))
    assert evaluation.results[-1].status is Status.INPUT_MUTATED


SLOW = """
import time
def run(*inputs):
    time.sleep(0.02)
    return gather(*inputs)
"""


def test_versions_are_timed_side_by_side(file, host: WorkerHost, tmp_path: Path) -> None:
    versions = {
        "fast": GATHER,
        "slow": write_gather(tmp_path / "slow.py", SLOW),
        "wrong": REDTEAM / "attack_no_exchange.py",
    }
    workload = file.definition.workloads[0]
    with ExitStack() as stack:
        groups = {
            name: stack.enter_context(
                RankGroup(name, file.definition, [workload], path, path.read_bytes(), host, Limits(seconds=20))
            )
            for name, path in versions.items()
        }
        times, failures = timing.time_groups(file, workload, groups)
    seconds = times.seconds[workload.name]
    assert min(seconds["slow"]) > 0.02
    assert min(seconds["slow"]) > min(seconds["fast"])
    assert len(seconds["slow"]) == len(seconds["fast"])
    assert ({name: each.status for name, each in failures.items()}, seconds.get("wrong", ())) == (
        {"wrong": Status.INCORRECT_NUMERICAL}, ()
    )  # fmt: skip


def test_a_timed_block_delivers_what_its_calls_left(open_group: Callable[[Path], RankGroup], file) -> None:
    ranks = open_group(GATHER)
    slots = list(Inputs(file, file.definition.workloads[0], 1, "cpu").draw_several(SLOTS))
    ranks.fill(slots)
    seconds = ranks.call_slots([[0.0] * SLOTS] * 2, checked=False)
    assert 0 < seconds < 5
    for slot, inputs in enumerate(slots):
        hidden = inputs["residual"] + inputs["partial"].sum(0)
        for copy in COPIES:
            for outputs in ranks.read_outputs(slot, copy):
                assert (outputs["hidden"] - hidden).abs().max() < 1e-5


def test_the_length_of_blocks_follows_their_time(open_group: Callable[[Path], RankGroup], file) -> None:
    ranks = open_group(GATHER)
    ranks.fill(list(Inputs(file, file.definition.workloads[0], 1, "cpu").draw_several(SLOTS)))
    assert ranks._gate is not None
    ranks._gate.ahead = True
    ranks._read_clocks([{"seconds": 2e-4}, {"seconds": 4e-4}], 4)
    assert ranks._rounds == group.BLOCK_SECONDS / 1e-4
    ranks._gate.ahead = False
    ranks._read_clocks([{"seconds": 4e-4}] * 2, 400)
    assert ranks._rounds == group.MOST_ROUNDS // 2
    assert ranks.ahead is False


def test_the_gate_opens_when_all_have_issued_their_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(start_gate.time, "monotonic", lambda: clock[0])
    gate = StartGate(2)
    first, second = GatePage(gate.file), GatePage(gate.file)
    block = gate.shut()
    first.report_arrival(0, block)
    first.report_issue(0, block)
    gate.look()
    assert not gate.is_open, "rank 1 is not there"
    second.report_arrival(1, block)
    gate.look()
    assert not gate.is_open, "rank 1 has not issued its calls"
    second.report_issue(1, block)
    gate.look()
    assert (gate.is_open, gate.ahead, first.opened, second.opened) == (True, True, block, block)
    block = gate.shut()
    assert not gate.is_open
    for rank, page in enumerate((first, second)):
        page.report_arrival(rank, block)
    gate.look()
    clock[0] += 2 * start_gate.GATE_SECONDS
    gate.look()
    assert (gate.is_open, gate.ahead) == (True, False), "a version that waits for its GPU would wait for ever"
    gate.close()


def test_multicast_stays_off(open_group: Callable[[Path], RankGroup], tmp_path: Path) -> None:
    multicast.require_multicast_off(multicast.MULTICAST_OFF)
    with pytest.raises(MachineFailed, match="NCCL_NVLS_ENABLE=0"):
        multicast.require_multicast_off({**multicast.MULTICAST_OFF, "NCCL_NVLS_ENABLE": "1"})
    switch = 'import os\nos.environ["NCCL_NV" + "LS_ENABLE"] = "1"\nrun = gather\n'
    with pytest.raises(Misuse, match="line 2 names `multimem`"):
        multicast.refuse_multicast("v.py", "x\ntorch.ops.symm_mem.multimem_all_reduce_\n")
    for code in ("from a import multimem_x", "asm = 'multimem.ld_reduce'", "os.environ['NCCL_NVLS_ENABLE'] = '1'"):
        with pytest.raises(Misuse):
            multicast.refuse_multicast("v.py", code)
    for code in ("# no NVLS\n", '"""Add without multimem."""\n', "x = (\n"):
        multicast.refuse_multicast("v.py", code)
    with pytest.raises(Misuse):
        open_group(write_gather(tmp_path / "named.py", "name = 'NCCL_NVLS_ENABLE'\nrun = gather\n"))
    with pytest.raises(group.SideFailed, match="multicast"):
        open_group(write_gather(tmp_path / "hidden.py", switch))


def test_a_host_for_gpus_keeps_multicast_off(monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import nullcontext
    from types import SimpleNamespace

    started: list[dict[str, str]] = []

    class Host:
        def __init__(self, device: str) -> None:
            started.append({"device": device, **rank_host.os.environ})

        def __enter__(self) -> str:
            return "host"

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(rank_host, "WorkerHost", Host)
    monkeypatch.setattr(rank_host.device_lease, "lease_devices", lambda *_: nullcontext(["GPU-a"]))
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "1")
    monkeypatch.delenv("NVSHMEM_DISABLE_NVLS", raising=False)
    with rank_host.open_rank_host(SimpleNamespace(kind="gpu"), 2) as opened:
        assert opened == "host"
    assert started[0].items() >= {"device": "cuda", **multicast.MULTICAST_OFF}.items()
    assert rank_host.os.environ["NCCL_NVLS_ENABLE"] == "1"
    assert "NVSHMEM_DISABLE_NVLS" not in rank_host.os.environ


TOPOLOGY = """
\x1b[4m\tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\x1b[0m
GPU0\t X \tNV18\tSYS\tPIX\t0-31
GPU1\tNV18\t X \tNV18\tSYS\t0-31
GPU2\tSYS\tNV18\t X \tSYS\t0-31
"""


def test_links_are_read() -> None:
    assert rank_host.parse_topology(TOPOLOGY, ["GPU0", "GPU1"]) == "NV18"
    assert rank_host.parse_topology(TOPOLOGY, ["GPU0", "GPU2", "GPU1"]) == "NV18, SYS"
    assert rank_host.parse_topology("no table", ["GPU0", "GPU1"]) == ""


def test_the_kernels_compile(tmp_path: Path) -> None:
    import subprocess

    triton = pytest.importorskip("triton")
    ptxas = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    if not ptxas.is_file():
        pytest.skip("no ptxas")
    (tmp_path / "kernels.ptx").write_text(gpu_kernels.PTX)
    command = [ptxas, "-arch=sm_90", tmp_path / "kernels.ptx", "-o", tmp_path / "kernels.cubin"]
    assert subprocess.run(command, check=False).returncode == 0


def test_the_headers_of_the_gpus_red_team_are_whole() -> None:
    from warpsmith.lab.gate_tests.models import parse_header

    headers = [parse_header(path.read_text()) for path in (REDTEAM / "gpu").glob("*.py")]
    assert {each.family for each in headers if each.kind == "attack"} >= {
        "skipped exchange", "late read", "reused symmetric buffer", "arrival order", "deadlock", "flag race",
        "remote cache",
    }  # fmt: skip
    assert any(each.kind == "control" for each in headers)
