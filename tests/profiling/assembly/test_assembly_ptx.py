"""PTX: lines of inlined code belong to the solution's line that called it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from warpsmith.profiling.assembly import ptx as assembly_ptx

PTX = (Path(__file__).parents[2] / "data" / "assembly" / "shares.sm_90a.ptx").read_text()


def test_the_innermost_place_in_the_solution():
    places = assembly_ptx.source_lines(PTX, lambda file: file == "v1.py")
    text = PTX.splitlines()
    shuffles = {places[number] for number, line in enumerate(text, 1) if line.lstrip().startswith("shfl.")}
    stores = {places[number] for number, line in enumerate(text, 1) if "st.global." in line}
    assert shuffles == {11}
    assert stores == {13}
    assert set(places.values()) <= set(range(7, 14))


def test_line_0_and_foreign_places_say_nothing():
    said = ("\t.loc 1 0 32  // v1.py:0:32", "\t.loc 2 5 1 // standard.py:5:1", "\t.loc 1 9 1 // v1.py:9:1")
    ptx = "".join(f"{loc}\n\tadd;\n" for loc in said)
    assert assembly_ptx.source_lines(ptx, lambda file: file == "v1.py") == {6: 9}


def test_cache_hints():
    assert Counter(assembly_ptx.memory_hints(PTX)) == {
        ("cache hints (PTX)", "createpolicy.fractional.L2::evict_last.b64"): 1,
        ("cache hints (PTX)", "ld.global.L1::evict_last.L2::cache_hint.v4.b32"): 1,
    }
    plain = "\t@%p1 ld.global.v4.b32 {%r1}, [%rd1];\n\tst.shared.b32 [%r1], %r2;\n\tld.param.b64 %rd1, [p];\n"
    assert not list(assembly_ptx.memory_hints(plain))
    named = "ld.volatile.global.b32", "ld.global.nc.b32", "st.global.cs.b32", "cp.async.cg.shared.global"
    assert [kind for _, kind in assembly_ptx.memory_hints("".join(f"\t@!%p1 {name} x;\n" for name in named))] == [
        *named
    ]


def test_exponentials_that_keep_subnormals():
    assert (
        assembly_ptx.count_slow_exponentials("\tex2.approx.f32 \t%r1, %r2;\n\tex2.approx.ftz.f32 \t%r1, %r2;\n")
        == 1
    )
