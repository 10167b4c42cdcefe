"""Brief of an agent: the task, its limits, and how it measures in its arm."""

from __future__ import annotations

from warpsmith.core.definition import Definition
from warpsmith.uplift.models import Arm, Cell

_TASK = """\
# Make {operator} as fast as possible on an NVIDIA H200

{description}.

Write one kernel file that computes this operator on a GPU faster than the faster of eager PyTorch and `torch.compile`. You have
{minutes} minutes of wall clock and {calls} device calls of at most {seconds:g} seconds each. This folder is all that belongs
to your task: read and write nothing outside of it, and ask nobody. Programs that are installed may be used. There is no
network, and no GPU outside of device calls.

## Kernel

- One Python file `submission/kernel.py` with a top-level `run({parameters})` that returns {outputs}: contiguous, allocated in
  the call. Write it in Triton, or in CUDA C++ that NVRTC compiles and `cuda.core` launches. `start_triton.py` and
  `start_cuda.py` show both; they need nothing but what the device has: Python 3.12, torch 2.11, Triton 3.6, cuda.core.
- It must be right at every size, type and value that the operator allows, not only at the public sizes:
{constraints}- It launches on PyTorch's current stream and can be captured in a CUDA graph once it has run. It creates no stream, event or graph
  of its own, and does not synchronise with the host.
- Your own kernels do the work. PyTorch only allocates, views and moves data. No result is kept from call to call; inputs
  change in place between calls.
- It imports only `torch`, `triton`, `cuda.core`, `cuda.bindings`, `cuda.pathfinder`, `numpy` and the standard library.

## Score

A judge who does not know who wrote the file checks it on fresh inputs at the public sizes, at awkward sizes and at sizes that
you do not know. A wrong kernel scores 0. A right one scores the geometric mean of its speedups over the faster of eager PyTorch
and `torch.compile`, at four public and four hidden sizes, timed in CUDA graphs with all other kernels in one run.

Public sizes:

{workloads}

"""

_DEVICE = """\
## Device calls

1. Write what is to run as `device/request.sh`. It runs by `bash` in this folder, with `python3` as on the device{extra_command}.
   Print results as soon as they are known: what was printed before the limit is kept.
2. `touch device/ready`. Change nothing in this folder until the result is there.
3. Wait for `device/result-N.txt`, N = 1, 2, 3: `until [ -e device/result-1.txt ]; do sleep 5; done`. It may take twenty
   minutes, which do not count. Files that the request writes to `device/out/` come back too, at most 1 MB.

A call is used even if it fails. Check all that can be checked without a GPU first, and put several variants into one call.

"""

_BARE = """\
## How you measure

`reference.py` has the operator in plain PyTorch, its public sizes, inputs and tolerance. `bench.py` checks kernels against it in
float64 and times them in CUDA graphs: `python3 bench.py a.py b.py --fast`, in full `python3 bench.py kernel.py`. Without a GPU it
runs the reference on the CPU, no Triton and no CUDA. Change both as you like, they are not judged.

"""

_KNOWLEDGE = """\
## Knowledge

`knowledge/index.md` lists optimizations and anti-patterns with measured evidence. Read the pages that fit before you design.

"""

_PLUGIN = """\
## How you measure

You work with Warpsmith. `plugin/agents/` holds the pages of its designers with their skills: read `triton-specialist.md` or
`cuda-specialist.md`, the one of your language, before you write. There is no campaign here: `{operator}` is defined in
`kernels/{operator}/definition.py`, and where a page speaks of a brief or a version, it means this brief and your file.

- `bin/warpsmith try {operator} a.py b.py --sweep "BLOCK=64,128" --seconds 25` checks many kernels and settings and times them beside
  the reference. On the device it is the main tool; it runs only there.
- `warpsmith judge kernels/{operator}/LANGUAGE/v1.py --check` runs every check of the judge but the hidden sizes, on the device.
- `warpsmith profile`, on the device, says what limits a kernel.
- `bin/warpsmith assembly kernels/{operator}/LANGUAGE/v1.py` shows registers, spills and machine code without a GPU.
"""

_LOOK_UP = """\
- `bin/warpsmith knowledge search WORDS --language cuda` finds what was measured before; `bin/warpsmith knowledge show ID`.
"""

_NO_LOOK_UP = """\
- `warpsmith knowledge` is out of bounds in this task.
"""

_SUBMIT = """\
## Submission

`submission/kernel.py`, and `submission/claim.json`:

    {"correct": true, "speedup": 1.0, "notes": ""}

`speedup` is your own estimate of the geometric mean of the speedups at the public sizes over the faster baseline, `correct`
says whether the kernel is right at every allowed size. Both are compared with the judge's result, so claim what you know. A kernel
that falls short is worth more than none: submit early, and replace the file when you have a better one.
"""


def render_brief(cell: Cell, definition: Definition) -> str:
    """Return the brief of a cell."""
    has_lab = cell.arm.startswith("plugin")
    texts = [
        _TASK.format(
            operator=definition.name,
            description=definition.description,
            minutes=cell.budget.minutes,
            calls=cell.budget.calls,
            seconds=cell.budget.call_seconds,
            parameters=", ".join(definition.inputs),
            outputs=", ".join(f"`{name}`" for name in definition.outputs),
            constraints="".join(f"  - {promise}.\n" for promise in definition.constraints),
            workloads="\n".join(f"- {w.name}" for w in definition.workloads if w.timed),
        ),
        _DEVICE.format(extra_command=" and `warpsmith` on the path" if has_lab else ""),
        _measuring(cell.arm, definition.name),
        _SUBMIT,
    ]
    return "".join(texts)


def _measuring(arm: Arm, operator: str) -> str:
    """Return the part of the brief that differs between the arms."""
    if arm == "bare":
        return _BARE
    if arm == "knowledge":
        return _BARE + _KNOWLEDGE
    look_up = _LOOK_UP if arm == "plugin" else _NO_LOOK_UP
    return _PLUGIN.format(operator=operator) + look_up + "\n"
