"""Each notice is told where its counts are, kept back where they are not, and names an entry that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warpsmith import languages, project
from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.languages.base import Listing
from warpsmith.profiling.assembly import notices as assembly_notices
from warpsmith.profiling.assembly import sass as assembly_sass
from warpsmith.profiling.assembly import x86 as assembly_x86
from warpsmith.profiling.assembly.models import CompiledKernel, Count, LoadWait, Loop
from warpsmith.profiling.assembly.notices import KernelContext, find_notices

Kinds = dict[tuple[str, str], int]


def definition(dtype: str) -> Definition:
    return Definition(
        name="copy",
        description="A copy.",
        axes={"n": "length"},
        inputs={"x": TensorSpec(shape=("n",))},
        outputs={"y": TensorSpec(shape=("n",))},
        flops="n",
        workloads=(Workload(name="a", axes={"n": 4}, dtype=dtype),),
    )


def counted(kinds: Kinds) -> tuple[Count, ...]:
    return tuple(Count(group=group, kind=kind, count=count) for (group, kind), count in kinds.items())


def seen(
    kinds: Kinds | None = None,
    *loops: Kinds,
    isa="sass",
    language="triton",
    arch="sm_90a",
    unaligned=(),
    product=False,
    dtype="float32",
    ptx: Path | None = None,
) -> KernelContext:
    report = Resources(kernel="k")
    kernel = CompiledKernel(
        name="k",
        workloads=("a",),
        variant="",
        isa=isa,
        assembly="k.sass",
        resources=report,
        instructions=9,
        counts=counted(kinds or {}),
        loops=tuple(
            Loop(line=7 + place, innermost=True, instructions=9, counts=counted(held))
            for place, held in enumerate(loops)
        ),
        lines=(),
    )
    listing = Listing("k", ("a",), "", isa, Path("k.sass"), report, ptx, unaligned, product)
    return KernelContext(kernel, listing, language, arch, definition(dtype))


def told(one: KernelContext) -> dict[str, str]:
    return {notice.entry: notice.text for notice in find_notices([one])}


def ids() -> set[str]:
    return {path.stem for path in (project.SHIPPED / "docs" / "knowledge").rglob("*.md")}


def test_every_entry_that_is_named_is_there():
    source = Path(assembly_notices.__file__).read_text()
    slugs = set(re.findall(r'"([a-z0-9]+(?:-[a-z0-9]+)+)"', source))
    named = slugs - {*assembly_sass.GROUPS, *assembly_x86.GROUPS}
    named |= {entry for name in languages.names() for entry in languages.get(name).notice_entries.values()}
    assert len(named) > 10
    assert named <= ids()


WIDE: Kinds = {("global loads", "LDG.E.128"): 8, ("global stores", "STG.E.128"): 8}
NARROW: Kinds = {("global loads", "LDG.E.U16"): 8, ("global loads", "LDG.E.128"): 1}


def test_narrow_loads_say_what_is_not_aligned():
    entry, text = next(iter(told(seen(NARROW, unaligned=("stride", "n"))).items()))
    assert entry == "triton-constexpr-specialisation-of-strides"
    assert text.startswith("most global loads move 16 bits")
    assert ": stride, n not known" in text
    assert list(told(seen(NARROW))) == ["vectorized-memory-access"]
    assert list(told(seen(NARROW, language="cuda", unaligned=("n",)))) == ["vectorized-memory-access"]
    assert list(told(seen({("async copies", "LDGSTS.E"): 8}))) == ["vectorized-memory-access"]


@pytest.mark.parametrize(
    "kinds",
    [
        WIDE,
        WIDE | {("global loads", "LDG.E"): 12},  # most of the instructions, a quarter of the bytes
        WIDE | {("global stores", "STG.E"): 2},
        {("global stores", "STG.E"): 2},
        NARROW | {("async copies", "UTMALDG.2D"): 1},
    ],
)
def test_wide_loads_and_a_few_scalars_are_fine(kinds):
    assert told(seen(kinds)) == {}


def test_local_memory():
    assert list(told(seen({("local memory", "LDL"): 1}))) == ["register-spills"]


def test_tensor_cores():
    hgmma = {("tensor cores", "HGMMA.64x128x16.F32.BF16"): 4}
    hmma = {("tensor cores", "HMMA.16816.F32.BF16"): 4}
    assert list(told(seen(product=True))) == ["tensor-core-use"]
    assert "no tensor-core instruction" in told(seen(product=True))["tensor-core-use"]
    assert told(seen(hgmma, product=True)) == {}
    assert "HMMA on Hopper" in told(seen(hmma, product=True))["tensor-core-use"]
    assert told(seen(hmma, product=True, arch="sm_80")) == {}
    assert list(told(seen({("tensor cores", "HGMMA.64x64x8.F32.TF32"): 4}))) == ["triton-default-tf32-dot"]


def test_tiles_without_asynchronous_copies():
    loop = {("global loads", "LDG.E.128"): 4, ("tensor cores", "HGMMA.64x128x16.F32.BF16"): 4}
    assert list(told(seen(loop, loop))) == ["triton-num-stages-pipelining"]
    assert list(told(seen(loop, loop, language="cuda"))) == ["software-pipelining-async-copy"]
    assert told(seen(loop | {("async copies", "LDGSTS.E.128"): 4}, loop)) == {}


def test_double_precision_unless_it_is_asked_for():
    kinds = {("fp64", "DFMA"): 1}
    assert list(told(seen(kinds))) == ["fp64-by-accident"]
    assert told(seen(kinds, dtype="float64")) == {}
    for opcode in ("vcvtss2sd", "cvtps2pd"):
        loop = {("conversions", opcode): 1}
        assert list(told(seen(loop, loop, isa="x86", language="cpp"))) == ["fp64-by-accident"]
        assert told(seen(loop, loop, isa="x86", language="cpp", dtype="float64")) == {}
    assert told(seen({("conversions", "vcvtsd2ss"): 1}, {}, isa="x86", language="cpp")) == {}


def test_barriers_in_a_loop():
    loop = {("barriers", "BAR.SYNC.DEFER_BLOCKING"): 3}
    reduction = loop | {("shuffles", "SHFL.BFLY"): 5}
    assert told(seen(loop, loop)) == {"excess-synchronization": "3 block barriers in the loop at line 7"}
    assert list(told(seen(reduction, reduction))) == ["triton-accumulators-per-thread"]
    assert list(told(seen(reduction, reduction, language="cuda"))) == ["excess-synchronization"]
    assert told(seen(loop)) == {}
    assert told(seen({}, {("barriers", "BAR.SYNC"): 2, ("barriers", "SYNCS.ARRIVE"): 4})) == {}


def test_integer_divisions_are_told_from_reciprocals():
    division: Kinds = {
        ("conversions", "I2F.U32.RP"): 4,
        ("special functions", "MUFU.RCP"): 5,
        ("conversions", "F2I.FTZ.U32.TRUNC.NTZ"): 4,
    }
    ((entry, text),) = told(seen({}, division)).items()
    assert entry == "fewer-instructions-per-element"
    assert text.startswith("4 integer divisions in the innermost loop at line 7:")
    assert told(seen(division)) == {}, "outside of the loops they cost little"
    exponentials: Kinds = {("special functions", "MUFU.EX2"): 4, ("special functions", "MUFU.RCP"): 1}
    assert told(seen({}, exponentials)) == {}
    assert told(seen({}, {("conversions", "I2F.S8"): 4, ("special functions", "MUFU.RCP"): 4})) == {}


def test_atomics():
    red = {("atomics", "REDG.E.ADD.STRONG.GPU"): 1}
    assert list(told(seen(red, red))) == ["atomics-contention-single-address"]
    assert told(seen(red)) == {}
    floating = {("atomics", "REDG.E.ADD.F32.FTZ.RN.STRONG.GPU"): 1}
    assert list(told(seen(floating))) == ["triton-atomic-add-nondeterminism"]


def test_exponentials(tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text("\tex2.approx.f32 \t%r1, %r2;\n")
    assert list(told(seen(ptx=path))) == ["triton-exp2-instead-of-exp"]
    path.write_text("\tex2.approx.ftz.f32 \t%r1, %r2;\n")
    assert told(seen(ptx=path)) == {}


def test_loops_on_a_cpu():
    def cpu(*loops: Kinds) -> dict[str, str]:
        return told(seen({}, *loops, isa="x86", language="cpp"))

    packed: Kinds = {("packed arithmetic", "ymm"): 2}
    scalar: Kinds = {("scalar arithmetic", "vmulss"): 2}
    assert cpu(packed) == {}
    assert cpu(scalar) == {"simd-vectorization": "scalar arithmetic alone in the innermost loop at line 7"}
    assert cpu(packed, scalar, {("multiply-add", "scalar"): 1}) == {
        "simd-vectorization": "scalar arithmetic alone in the innermost loop at lines 8, 9"
    }
    assert cpu(packed | {("scalar arithmetic", "vaddss"): 8}) == {}, "these additions wait for nothing"
    chain = seen({}, packed, isa="x86", language="cpp")
    serial = chain.kernel.loops[0].model_copy(update={"serial_operations": 8})
    kernel = chain.kernel.model_copy(update={"loops": (serial,)})
    assert list(told(chain._replace(kernel=kernel))) == ["cpp-serial-float-reduction-chain"]
    assert "calls of expf in the innermost loop at line 7" in cpu({("calls", "expf"): 1}).values()


def test_the_rest_of_a_vectorised_loop_is_no_scalar_loop():
    one = seen({}, {("packed arithmetic", "ymm"): 2}, {("scalar arithmetic", "vmulss"): 2}, isa="x86")
    same = one.kernel.loops[1].model_copy(update={"line": 7})
    kernel = one.kernel.model_copy(update={"loops": (one.kernel.loops[0], same)})
    assert find_notices([one._replace(kernel=kernel)]) == ()


def test_one_notice_for_all_kernels_that_it_is_true_of():
    spilled = seen({("local memory", "STL"): 1})
    (notice,) = find_notices([spilled, seen(WIDE), spilled])
    assert notice.kernels == (1, 3)


@pytest.mark.parametrize(
    ("wait", "bare"),
    [
        (LoadWait(line=9, pending=0, distance=1, in_loop=True), True),
        (LoadWait(line=9, pending=3, distance=3, in_loop=True), True),
        (LoadWait(line=9, pending=3, distance=30, in_loop=True), False),
        (LoadWait(line=9, pending=0, distance=1, youngest="store", in_loop=True), False),
        (LoadWait(line=9, pending=0, distance=1), False),
    ],
)
def test_a_loop_that_waits_for_a_fresh_load_is_named_whatever_stays_in_flight(wait, bare):
    context = seen(isa="amdgcn", arch="gfx942")
    context = context._replace(kernel=context.kernel.model_copy(update={"waits": (wait,)}))
    texts = [text for text in told(context).values() if "waits for its loads" in text]
    assert len(texts) == bare
    assert all("line 9" in text for text in texts)
