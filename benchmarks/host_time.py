"""Host time of a call: seconds until it returns, while calls follow each other and nothing waits for the device.

Every figure is the median over bursts of back-to-back calls, each burst after a synchronisation, at the smallest
representative workload, on a CPU with all its axes at 16 or less. Columns: `best` is the function that users
call, `plan` its launch plan alone, `version` the version's own `run` without PyTorch's dispatcher, then the
reference and the definition's peers. PyTorch's softmax, an allocation and a bare Triton launch are timed before
and after all plans are recorded, since CUPTI has listened to the driver in between.

    python benchmarks/host_time.py [OP ...] [--out record.json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from warpsmith import best, project
from warpsmith.core.base import this_minute
from warpsmith.lab.operator import definition_file, peers
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.use import choice
from warpsmith.use import operator as best_operator

CALLS, BURSTS = 100, 40
WAIT_UNTIL = time.monotonic() + 45
"""Until then calls are repeated while the extension is compiled."""
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def main() -> None:
    """Time every operator asked for and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("op", nargs="*", help="by default all with a version for this device")
    parser.add_argument("--out", help="where the record goes; by default host_time.json in $OUT, if that is set")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu"
    record: dict[str, Any] = {"measured": this_minute(), "device": device, "torch": torch.__version__}
    record["before"] = yardsticks()
    record["microseconds"] = {op: one for op in arguments.op or operators() if (one := _timed(op))}
    record["after"] = yardsticks()
    for name in ("before", "after"):
        print(f"{name} plans:", ", ".join(f"{key} {value:.2f} us" for key, value in record[name].items()))
    out = arguments.out or (f"{os.environ['OUT']}/host_time.json" if "OUT" in os.environ else None)
    if out:
        Path(out).write_text(json.dumps(record, indent=2) + "\n")


def operators() -> list[str]:
    """Those of the project at hand."""
    return sorted(path.parent.name for path in project.find_project().kernels.glob("*/definition.py"))


def host_time(call: Callable[[], object]) -> float:
    """Median microseconds of a call in a burst."""
    for _ in range(20):
        call()
    times = []
    for _ in range(BURSTS):
        _synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS)
    _synchronize()
    return 1e6 * statistics.median(times)


def yardsticks() -> dict[str, float]:
    """What a call costs elsewhere on this host."""
    x = torch.randn(4, 64, device=DEVICE)
    found = {
        "softmax": host_time(lambda: torch.softmax(x, -1)),
        "empty_like": host_time(lambda: torch.empty_like(x)),
    }
    if DEVICE == "cuda":
        found["triton launch"] = host_time(_triton_launch(x))
    return found


def _triton_launch(x: torch.Tensor) -> Callable[[], object]:
    import triton
    import triton.language as tl

    @triton.jit
    def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # noqa: ANN001, ANN202, N803
        at = tl.arange(0, BLOCK)
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)

    y = torch.empty_like(x)
    return lambda: copy[(1,)](x, y, 256, BLOCK=256)


def _timed(op: str) -> dict[str, object] | None:
    """Microseconds by side; None where no version is for this device."""
    file = definition_file.load_definition(choice.find_owning_project(op).definition_path(op))
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        function = best(op, DEVICE)
    if function.solution == "reference":
        print(f"{op}: no version for this device", file=sys.stderr)
        return None
    representative = [w for w in file.definition.workloads if w.set == "representative"]
    workload = min(representative, key=lambda w: file.definition.work(w).bytes)
    if DEVICE == "cpu":  # a call returns when its work is done
        few = {axis: min(size, 16) for axis, size in workload.axes.items()}
        workload = workload.model_copy(update={"axes": few, "name": "tiny"})
    drawn = Inputs(file, workload, 1, DEVICE).draw()
    scalars = file.definition.scalars(workload)
    values = tuple(drawn[name] if name in drawn else scalars[name] for name in file.definition.inputs)
    plans = _plans_of(op, lambda: function(*values))
    found: dict[str, object] = {"workload": workload.name, "solution": function.solution}
    found["plan refused"] = next(iter(plans.refusals.values()), "") if not plans.count else ""
    calls: dict[str, Callable[[], object]] = {"best": lambda: function(*values)}
    if plans.count:
        calls["plan"] = lambda: plans.replay(values, False)
    calls["version"] = lambda: plans.call_version(values)
    calls["reference"] = lambda: file.reference(*values)
    calls |= {name: _peer_call(file, name, values) for name in file.peers}
    for name, call in calls.items():
        try:
            found[name] = round(host_time(call), 2)
        except Exception as error:  # a peer that is not installed, or that does not run here
            found[name] = f"{type(error).__name__}: {error}"[:80]
    print(f"{op} {function.solution} at {workload.name}:")
    print("  " + ", ".join(f"{name} {found[name]}" for name in calls), found["plan refused"])
    return found


def _peer_call(
    file: definition_file.DefinitionFile, name: str, values: tuple[Any, ...]
) -> Callable[[], object]:  # fmt: skip
    """Return a call of a peer; the first one prepares the weights of a peer that takes them so."""
    peer, arguments = peers.get_peer(file, name), list[tuple[Any, ...]]()

    def call() -> object:
        if not arguments:
            made = peers.PreparedWeights(peer, tuple(file.definition.inputs))
            arguments.append(values if peer.prepare is None else tuple(made.arguments_of_run(0, values)))
        return peer.run(*arguments[0])

    return call


def _plans_of(op: str, call: Callable[[], object]) -> Any:  # noqa: ANN401
    """Call until the extension is there and a plan is made or refused; return the operator's plans."""
    plans = next(one for name, one in best_operator.planned_operators().items() if name.startswith(f"{op}_"))
    for _ in range(6):  # the first compiles kernels; of the others up to three are recorded
        call()
    while not plans.count and not plans.refusals and plans.may_plan and time.monotonic() < WAIT_UNTIL:
        time.sleep(0.1)
        call()
    return plans


def _synchronize() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
