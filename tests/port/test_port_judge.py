"""Versions for a device that is not here: interpreted, compiled as they were interpreted, and never accepted."""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from port_versions import SOURCE

from warpsmith import project as projects
from warpsmith.core.evaluation import Status, Verdict
from warpsmith.core.port.check import InterpretedKernel, LaunchFigures, PortCheck
from warpsmith.errors import MachineLacks
from warpsmith.lab.machine import hardware
from warpsmith.lab.operator import definition_file
from warpsmith.port.changes import compare_figures
from warpsmith.port.judge import NOT_JUDGED
from warpsmith.port.model_time import model_times
from warpsmith.port.obstacle import port_obstacle

pytestmark = [
    pytest.mark.usefixtures("forked_compilers"),
    pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed"),
]


def figures(**changes: int) -> LaunchFigures:
    return LaunchFigures.model_validate(
        {"num_warps": 4, "registers": 10, "spill_bytes": 0, "shared_bytes": 0, "load_bits": 32} | changes
    )


def kernel(blocks: int = 4, instructions: int = 20, **changes: int) -> InterpretedKernel:
    return InterpretedKernel(
        name="double", variant="x", blocks={"a": blocks}, figures=figures(**changes), instructions=instructions
    )


def check(*kernels: InterpretedKernel) -> PortCheck:
    return PortCheck(arch="gfx942", kernels=kernels, figures=compare_figures(None, kernels, ()))


def test_a_version_that_passes_is_untimed_and_the_record_says_what_was_checked(judged):
    before = check(kernel(spill_bytes=12, registers=128))
    evaluation = judged(SOURCE.replace("KERNEL", "double"), before)
    assert evaluation.decision.verdict is Verdict.UNTIMED
    assert (evaluation.target, evaluation.provenance.machine.target) == ("mi300x", "cpu")
    assert not evaluation.timed
    assert evaluation.noise is None
    reason = evaluation.decision.reason
    for words in (
        "interpreter at",
        "more not interpreted",
        "of its bound",
        "spill bytes 12 -> 0",
        "registers 128 ->",
        "MODEL us",
    ):
        assert words in reason
    assert reason.endswith(NOT_JUDGED)
    assert {result.workload for result in evaluation.results} >= {"a", "odd"}
    assert "half" not in {result.workload for result in evaluation.results}
    port = evaluation.port
    assert [(each.name, each.blocks) for each in port.kernels] == [("double", {"a": 4})]
    assert [time.workload for time in port.times] == ["a"]
    missing = {each.name: each.how for each in evaluation.trust if not each.ran}
    assert "ran nowhere" in missing["compiled numerics"]


def test_the_kernel_that_run_launched_is_compiled_and_no_other_one(judged):
    telling = SOURCE.replace("KERNEL", "(double if x.device.type == 'cpu' and INTERPRETED else quick)")
    evaluation = judged(telling)
    assert evaluation.decision.verdict is Verdict.UNTIMED
    assert [each.name for each in evaluation.port.kernels] == ["double"]


@pytest.mark.parametrize(
    "change",
    [
        ("tl.constexpr(2)", "tl.constexpr(2 if INTERPRETED else 1)"),
        ("def run(x):", "if not INTERPRETED:\n    del double\n\ndef run(x):"),
    ],
)
def test_a_kernel_that_is_another_one_once_compiled_is_rolled_back(judged, change):
    evaluation = judged(SOURCE.replace("KERNEL", "double").replace(*change))
    assert evaluation.decision.verdict is Verdict.ROLLBACK
    assert evaluation.status is Status.COMPILE_ERROR
    assert "when it is compiled" in evaluation.decision.reason


def test_a_wrong_version_and_one_that_the_target_refuses_are_rolled_back(judged):
    wrong = judged(SOURCE.replace("KERNEL", "double").replace("tl.constexpr(2)", "tl.constexpr(3)"))
    assert (wrong.decision.verdict, wrong.status) == (Verdict.ROLLBACK, Status.INCORRECT_NUMERICAL)
    assert wrong.port is None
    large = judged(SOURCE.replace("KERNEL", "double").replace("num_warps=WARPS", "num_warps=32"))
    assert (large.decision.verdict, large.status) == (Verdict.ROLLBACK, Status.COMPILE_ERROR)
    assert "2048 threads" in large.decision.reason


def test_a_kernel_that_only_an_odd_size_launches_is_compiled_too(judged):
    version = SOURCE.replace("KERNEL", "double")
    fits = judged(version.replace("num_warps=WARPS", "num_warps=8 if x.numel() < 10 else 4"))
    assert fits.decision.verdict is Verdict.UNTIMED
    assert [each.figures.num_warps for each in fits.port.kernels] == [4]
    large = judged(version.replace("num_warps=WARPS", "num_warps=32 if x.numel() < 10 else 4"))
    assert (large.decision.verdict, large.status) == (Verdict.ROLLBACK, Status.COMPILE_ERROR)
    assert "at other sizes or layouts: double: " in large.decision.reason


def test_the_model_adds_spills_and_idle_multiprocessors_to_the_roofline(ported_project):
    definition = definition_file.load_definition(ported_project.definition_path("double")).definition
    page = hardware.read_target_page(ported_project, "mi300x")
    bandwidth = 5.3e12

    def seconds(each: InterpretedKernel) -> float:
        [time] = model_times(ported_project, page, definition, [each])
        return time.seconds

    full = seconds(kernel(blocks=1000))
    assert full == pytest.approx(2 * 4 * 4096 / bandwidth)
    assert seconds(kernel(blocks=152)) == pytest.approx(2 * full)
    spilled = 2 * 1000 * 4 * 64 * 12
    assert seconds(kernel(blocks=1000, spill_bytes=12)) == pytest.approx(full + spilled / bandwidth)


def test_the_worst_kernel_gives_a_figure_and_instructions_are_added():
    before = check(kernel(registers=20))
    compared = compare_figures(before, [kernel(registers=30, load_bits=128), kernel(spill_bytes=8)], ())
    assert {each.name: each.text for each in compared} == {
        "spill bytes": "spill bytes 0 -> 8",
        "registers": "registers 20 -> 30",
        "shared bytes": "shared bytes 0",
        "load bits": "load bits 32",
        "instructions": "instructions 20 -> 40",
    }


@pytest.mark.parametrize(
    ("language", "isa", "words"),
    [
        ("hip", "gfx942", "HIP C\\+\\+ has none"),
        ("cpp", "gfx942", "none: take Triton"),
        ("triton", "gfx1201", "gfx1201"),
    ],
)
def test_what_no_interpreter_or_compiler_here_serves_says_so(language, isa, words):
    page = SimpleNamespace(target=SimpleNamespace(id="rx9070", isa=isa))
    with pytest.raises(MachineLacks, match=words):
        raise MachineLacks(port_obstacle(language, page) or "")


def test_every_target_with_a_page_and_a_compiler_may_be_ported_to():
    project = projects.find_project()
    pages = [hardware.read_target_page(project, name) for name in hardware.list_targets(project)]
    refused = {page.target.id for page in pages if port_obstacle("triton", page)}
    assert refused == {"cpu"}
