"""Versions that would deceive a judgement without a device: right where they are interpreted, and nowhere else."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from port_versions import SOURCE

from warpsmith.core.evaluation import Verdict

pytestmark = [
    pytest.mark.usefixtures("forked_compilers"),
    pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed"),
]

HONEST = SOURCE.replace("KERNEL", "double")
BODY = """
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) * FACTOR, mask=o < n)
"""
LAUNCH = "    double[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024, num_warps=WARPS)\n"
HEAD = "@triton.jit\ndef double("
RUN = "def run(x):\n"


def with_body(text: str, new: str) -> str:
    """The honest version with a change in its kernel."""
    assert text in BODY
    return HONEST.replace(BODY, BODY.replace(text, new), 1)


def before(place: str, text: str, source: str = HONEST) -> str:
    """A version with more text before a place."""
    assert place in source
    return source.replace(place, f"{text}\n\n{place}", 1)


COPY = (
    HONEST[HONEST.index(HEAD) : HONEST.index("@triton.jit\ndef quick")]
    .replace("double", "copy")
    .replace("* FACTOR", "")
    .strip()
)
SCALED = with_body("tl.load(x_ptr + o, mask=o < n) * FACTOR", "scaled(tl.load(x_ptr + o, mask=o < n))")
TWO_TEXTS = HONEST.replace(
    BODY,
    f"""
    \"""
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):{BODY}
    '''
    \"""
    tl.store(y_ptr, tl.load(x_ptr))
    # '''
""",
    1,
)
WRONG = {
    "two texts": (TWO_TEXTS, "begins with `def`"),
    "another default once it is compiled": (
        before(
            HEAD,
            "F = tl.constexpr(2 if INTERPRETED else 1)\n@triton.jit\ndef scaled(x, f: tl.constexpr = F):\n"
            "    return x * f",
            SCALED,
        ),
        "when it is compiled",
    ),
    "another text once it is compiled": (
        before(RUN, "if not INTERPRETED:\n    double._unsafe_update_src(double.src.replace('* FACTOR', ''))"),
        "was replaced",
    ),
    "what only the interpreter has": (with_body("* FACTOR", "* (FACTOR if n.handle else 1)"), "`handle`"),
    "names of the interpreter's own": (
        with_body("* FACTOR", "* (FACTOR if tl.load.__name__ != 'load' else 1)"),
        "`__name__`",
    ),
    "kinds of a number": (with_body("* FACTOR", "* (FACTOR if isinstance(n, tl.tensor) else 1)"), "`isinstance`"),
    "text of a number": (with_body("* FACTOR", "* (FACTOR if f'{n}' != '1' else 1)"), "formatted string"),
    "a number that is more than one": (
        before(HEAD, "class Sly(int):\n    __eq__ = lambda *_: True\n    __hash__ = int.__hash__")
        .replace("n, BLOCK: tl", "n, FLAG: tl.constexpr, BLOCK: tl", 1)
        .replace("* FACTOR", "* (FACTOR if FLAG == 1 else 1)")
        .replace("x.numel(), BLOCK", "x.numel(), Sly(0), BLOCK"),
        "gets a Sly as `FLAG`",
    ),
    "a function that says it is Triton's": (
        before(HEAD, "def scaled(x):\n    return x * 2\nscaled.__module__ = 'triton.language.core'", SCALED),
        "`scaled`",
    ),
    "a type that only the compiler goes by": (HONEST.replace("y_ptr, n, B", "y_ptr, n: 'i8', B", 1), "as `i8`"),
    "Python's and of blocks": (
        with_body("FACTOR, mask=o < n", "FACTOR, mask=(o < 0) and (o < n)"),
        "neither true",
    ),
    "Python's max of blocks": (with_body("* FACTOR", "* FACTOR * (max(o, 0) == o)"), "neither true"),
    "and of numbers": (with_body("* FACTOR", "* (n and FACTOR)"), "take comparisons"),
    "what a mask leaves out": (
        with_body("* FACTOR", "* FACTOR + 0 * tl.sum(tl.load(x_ptr + o, mask=o < n))"),
        "is nan",
    ),
    "blocks that wait for earlier ones": (
        HONEST.replace(
            "* FACTOR",
            "* FACTOR + 0 * tl.load(y_ptr + o - 1024, mask=(o >= 1024) & (o - 1024 < n), other=0)"
            " + 0 * tl.load(y_ptr + o + 1024, mask=o + 1024 < n, other=0)",
        ),
        "wrote in the same launch",
    ),
    "blocks that add to one place": (
        with_body(
            "tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) * FACTOR, mask=o < n)",
            "tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) * FACTOR, mask=o < n)\n"
            "    tl.store(s_ptr, tl.load(s_ptr) + 1.0)",
        )
        .replace("y_ptr, n, B", "y_ptr, s_ptr, n, B", 1)
        .replace("(x, y, x.numel()", "(x, y, torch.zeros(1), x.numel()"),
        "wrote in the same launch",
    ),
    "NumPy computes": (
        HONEST.replace(LAUNCH, "    x = torch.from_numpy(2 * x.numpy())\n" + LAUNCH).replace("* FACTOR", ""),
        "on the host",
    ),
    "Python computes": (
        HONEST.replace(LAUNCH, "    x = torch.tensor([2 * v.item() for v in x])\n" + LAUNCH).replace(
            "* FACTOR", ""
        ),
        "on the host",
    ),
    "PyTorch computes at one size": (
        before(
            LAUNCH,
            "    if x.numel() == 4096:\n        copy[(4,)](2 * x, y, 4096, BLOCK=1024)\n        return y",
            before(RUN, COPY),
        ),
        "a library does the work",
    ),
    "another thread computes": (
        before(
            LAUNCH,
            "    import threading\n    z = []\n    thread = threading.Thread(target=lambda: z.append(2 * x))\n"
            "    thread.start()\n    thread.join()\n    copy[(4,)](z[0], y, x.numel(), BLOCK=1024)\n    return y",
            before(RUN, COPY),
        ),
        "starts a thread",
    ),
    "Python reads the memory": (
        before(
            LAUNCH,
            "    import ctypes\n    memory = (ctypes.c_float * x.numel()).from_address(x.data_ptr())\n"
            "    copy[(4,)](torch.tensor([2 * v for v in memory]), y, x.numel(), BLOCK=1024)\n    return y",
            before(RUN, COPY),
        ),
        "SIGSEGV",
    ),
    "the grid computes": (
        before(
            LAUNCH,
            "    z = []\n    copy[lambda meta: (z.append(2 * x.numpy()), 4)[1:]](x, y, 5, BLOCK=1024)",
            before(RUN, COPY),
        ),
        "on the host",
    ),
    "NumPy shares a tensor's memory": (
        before(
            LAUNCH,
            "    import numpy\n    z = numpy.empty(x.numel(), numpy.float32)\n    torch.from_numpy(z).copy_(x)\n"
            "    copy[(4,)](torch.tensor(2 * z), y, x.numel(), BLOCK=1024)\n    return y",
            before(RUN, COPY),
        ),
        "torch.from_numpy",
    ),
    "a hook computes": (
        before(RUN, "double.pre_run_hooks.append(lambda x, *_, **__: None)"),
        "hooks",
    ),
    "a kernel that is interpreted and not launched": (
        HONEST.replace(
            LAUNCH,
            "    from triton.runtime.interpreter import GridExecutor\n    z = torch.empty_like(x)\n"
            "    GridExecutor(double.rewrite(), double.arg_names, (4,))(x, z, x.numel(), 1024)\n"
            "    x = z\n" + LAUNCH,
        ),
        "without launching",
    ),
    "an option that the record would lose": (
        HONEST.replace("num_warps=WARPS", "num_warps=__import__('numpy').int64(32)"),
        "num_warps as a int64",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_version_that_is_right_only_where_it_is_interpreted_is_rolled_back(judged, name):
    source, words = WRONG[name]
    assert source != HONEST
    evaluation = judged(source)
    assert evaluation.decision.verdict is Verdict.ROLLBACK
    assert words in evaluation.decision.reason


def test_a_version_that_uses_the_language_as_it_is_meant_passes(judged):
    source = with_body("* FACTOR", "* tl.where(tl.minimum(o, n) == o, FACTOR, 1)")
    source = source.replace("o < n)", "(o < n) & (o >= 0), other=0)", 1)
    evaluation = judged(
        source.replace("    y = torch", "    assert int(x.shape[0]) and x[0].item() is not None\n    y = torch")
    )
    assert evaluation.decision.verdict is Verdict.UNTIMED, evaluation.decision.reason


def test_what_the_version_does_to_triton_where_it_is_compiled_reaches_no_compiler(judged):
    honest = judged(HONEST)
    broken = before(RUN, "if not INTERPRETED:\n    tl.store = None\n    triton.jit = None")
    evaluation = judged(broken)
    assert evaluation.decision.verdict is Verdict.UNTIMED, evaluation.decision.reason
    assert evaluation.port.kernels == honest.port.kernels
