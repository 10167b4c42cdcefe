"""Plans of calls with a fake driver: used where they are safe, refused at every pattern that is not."""

from __future__ import annotations

import functools
import re
import threading
import warnings

import pytest
import torch
from fake_driver import DEFINITION

from warpsmith import best
from warpsmith.use import launch_plan
from warpsmith.use.planned_calls import PlannedCalls, PlannedVersion


def planned(extension, run, namespace=None):
    """Plans of a version that returns one tensor."""
    version = PlannedVersion("affine toy/v1", "cpu", lambda values: [run(*values)], namespace or {}, True, None)
    return PlannedCalls(version, threading.Lock(), extension)


def scaled(driver):
    def run(x, scale=3.0):
        y = torch.empty_like(x)
        driver.launch(x, y, scale)
        return y

    return run


def call_three_times(calls, *values):
    for _ in range(3):
        (y,) = calls.run(values)
        assert torch.equal(y, 6 * values[0]) or torch.isnan(y).any()
    return calls.replay(values, False)


def aligned(*shape):
    """A tensor at a multiple of 512, as all are on a GPU."""
    count = torch.Size(shape).numel()
    whole = torch.randn(count + 128)
    start = -whole.data_ptr() // 4 % 128
    return whole[start : start + count].view(shape)


def test_a_plan_stands_for_the_version_at_other_addresses_and_contents(extension, driver):
    calls = planned(extension, scaled(driver))
    x = aligned(4, 8)
    assert calls.replay((x, 3.0), False) is None
    assert torch.equal(call_three_times(calls, x, 3.0), 6 * x)
    assert (calls.count, calls.refusals) == (1, {})
    before = driver.launches
    for _ in range(3):
        other = aligned(4, 8)
        assert torch.equal(calls.replay((other, 3.0), False), 6 * other)
    assert driver.launches == before + 3
    for unlike in ((aligned(4, 9), 3.0), (x, 4.0), (x.double(), 3.0), (aligned(8, 4).t(), 3.0), (x, 3)):
        assert calls.replay(unlike, False) is None


def test_temporaries_several_launches_and_views_of_one_allocation(extension, driver):
    def run(x, scale):
        whole = torch.empty(3 * x.numel())
        middle, y = whole[: x.numel()], whole[x.numel() : 2 * x.numel()]
        spare = torch.empty(x.numel(), dtype=torch.int32).view(torch.float32)
        driver.launch(x, middle, 1.0, kernel=driver.other_kernel)
        driver.launch(middle, spare, scale / 4, plain=True)
        driver.launch(spare, y, 0.5 * 2)
        return y.view(x.shape)

    calls = planned(extension, run)
    x = aligned(4, 8)
    result = call_three_times(calls, x, 3.0)
    assert torch.equal(result, 6 * x)
    assert result.untyped_storage().nbytes() == 3 * 4 * x.numel()


@pytest.mark.parametrize("attribute", [(6, 1), (4, 2), (2, 1)])
def test_early_cluster_and_cooperative_launches_stay_so(extension, driver, attribute):
    def run(x, scale):
        y = torch.empty_like(x)
        driver.launch(x, y, scale, attribute=attribute, grid=7)
        return y

    calls = planned(extension, run)
    x = aligned(4, 8)
    call_three_times(calls, x, 3.0)
    driver.launch(x, torch.empty_like(x))
    calls.replay((x, 3.0), False)
    assert driver.last_launch() == (*attribute, 7)


class Unsafe:
    """Versions that no plan may stand for. All return 6 * x."""

    def __init__(self, driver):
        self.driver, self.calls, self.memory = driver, 0, torch.empty(32)
        self.first = None
        driver.library.fake_memory(self.memory.data_ptr(), 4 * 32)

    def plain(self, x, scale=3.0, **options):
        y = torch.empty_like(x)
        self.driver.launch(x, y, scale, **options)
        return y

    def value_dependent_branch(self, x):
        return self.plain(x, 3.0 if x[0, 0].item() > -100 else 4.0)

    def computes(self, x):
        return self.plain(x, 1.0) * 3

    def zeroes_first(self, x):
        y = torch.zeros_like(x)
        self.driver.launch(x, y, 3.0)
        return y

    def copies(self, x):
        return self.plain(x.clone())

    def cached_workspace(self, x):
        self.driver.launch(x, self.memory, 0.5)
        y = torch.empty_like(x)
        self.driver.launch(self.memory.data_ptr(), y, 3.0)
        return y

    def pointer_of_an_earlier_call(self, x):
        self.first = x if self.first is None else self.first
        return self.plain(self.first)

    def counts_in_an_argument(self, x):
        self.calls += 1
        return self.plain(x, grid=self.calls)

    def alternates_kernels(self, x):
        self.calls += 1
        return self.plain(x, kernel=(self.driver.kernel, self.driver.other_kernel)[self.calls % 2])

    def alternates_launches(self, x):
        self.calls += 1
        for _ in range(self.calls % 2):
            self.plain(x)
        return self.plain(x)

    def alternates_memory(self, x):
        self.calls += 1
        torch.empty(self.calls % 2 + 1)
        return self.plain(x)

    def clears_by_the_driver(self, x):
        self.driver.call("cuMemsetD32Async")
        return self.plain(x)

    def own_stream(self, x):
        return self.plain(x, stream=77)

    def attribute_with_an_event(self, x):
        return self.plain(x, attribute=(7, 1))

    def returns_its_cache(self, x):
        self.driver.launch(x, self.memory, 3.0)
        return self.memory.view(x.shape)

    def launches_nothing(self, x):
        y = torch.empty_like(x)
        y.numpy()[:] = 6 * x.numpy()
        return y

    def writes_past_the_driver(self, x):
        y = self.plain(x, 2.0)
        y.numpy()[:] = 6 * x.numpy()
        return y


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("value_dependent_branch", "computes aten._local_scalar_dense"),
        ("computes", "computes aten.mul"),
        ("zeroes_first", "computes aten.zeros_like"),
        ("copies", "computes aten.clone"),
        ("cached_workspace", "memory of an earlier call"),
        ("pointer_of_an_earlier_call", "memory of an earlier call"),
        ("counts_in_an_argument", "other kernels"),
        ("alternates_kernels", "other kernels"),
        ("alternates_launches", "other (kernels|memory)"),
        ("alternates_memory", "other memory"),
        ("clears_by_the_driver", "cuMemsetD32Async"),
        ("own_stream", "a stream of its own"),
        ("attribute_with_an_event", "attribute 7"),
        ("returns_its_cache", "no memory that the call allocated"),
        ("launches_nothing", "no launch"),
        ("writes_past_the_driver", "not the version's"),
    ],
)
def test_what_a_plan_could_get_wrong_is_refused(extension, driver, name, why):
    calls = planned(extension, getattr(Unsafe(driver), name))
    x = aligned(4, 8)
    for _ in range(6):
        assert torch.equal(calls.run((x,))[0], 6 * x)
        assert calls.replay((x,), False) is None
    assert calls.count == 0
    (reason,) = calls.refusals.values()
    assert re.search(why, reason), reason


def test_a_version_that_looks_at_alignment_keeps_its_other_path(extension, driver):
    def run(x):
        y = torch.empty_like(x)
        driver.launch(x, y, 3.0 if x.data_ptr() % 64 == 0 else 30.0)
        return y

    calls = planned(extension, run)
    call_three_times(calls, aligned(4, 8))
    assert calls.count == 1
    whole = aligned(33)
    for x in (whole[1:].view(4, 8), whole[1:].view(4, 8)):
        assert calls.replay((x,), False) is None
        assert torch.equal(calls.run((x,))[0], 60 * x)


def test_a_cache_that_forgets_its_kernels_is_refused(extension, driver):
    forgets, lasts = functools.lru_cache(maxsize=2)(lambda: 0), functools.cache(lambda: 0)
    for namespace, count in (({"compiled": forgets}, 0), ({"compiled": lasts}, 1)):
        calls = planned(extension, scaled(driver), namespace)
        call_three_times(calls, aligned(4, 8), 3.0)
        assert calls.count == count


def test_results_that_differ_from_call_to_call_are_refused(extension, driver):
    seen = []

    def run(x):
        y = torch.empty_like(x)
        seen.append(y)
        driver.launch(x, y, 3.0)
        y.numpy()[0, 0] = len(seen)
        return y

    calls = planned(extension, run)
    for _ in range(6):
        calls.run((aligned(4, 8),))
    assert "differ" in next(iter(calls.refusals.values()))


def test_a_profiler_only_delays_a_plan(extension, driver):
    calls = planned(extension, scaled(driver))
    x = aligned(4, 8)
    driver.library.fake_profiler(1)
    call_three_times(calls, x, 3.0)
    assert calls.count == 0
    driver.library.fake_profiler(0)
    calls.run((x, 3.0))
    assert torch.equal(calls.replay((x, 3.0), False), 6 * x)


def test_the_drivers_error_is_raised(extension, driver):
    calls = planned(extension, scaled(driver))
    x = aligned(4, 8)
    call_three_times(calls, x, 3.0)
    driver.library.fake_refuse(700)
    with pytest.raises(RuntimeError, match="error 700"):
        calls.replay((x, 3.0), False)


def test_launches_of_other_threads_are_not_the_versions(extension, driver):
    module = extension.module()
    x = aligned(4, 8)
    assert module.start_recording()
    thread = threading.Thread(target=scaled(driver), args=(x,))
    thread.start()
    thread.join()
    scaled(driver)(x)
    assert [event[0] for event in module.stop_recording()] == ["cuLaunchKernelEx"]


def test_plans_replay_in_several_threads_at_once(extension, driver):
    calls = planned(extension, scaled(driver))
    x = aligned(64, 64)
    call_three_times(calls, x, 3.0)
    wrong = []

    def replay(seed):
        own = x.clone() + seed
        if own.data_ptr() % 64 == 0:
            wrong.extend(i for i in range(200) if not torch.equal(calls.replay((own, 3.0), False), 6 * own))

    threads = [threading.Thread(target=replay, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.fixture
def function(shop, driver, request):
    """`best` of a version with a plan for (4, 8)."""
    name = f"scaled_{request.node.name}"
    path = shop.project.definition_path(name)
    path.parent.mkdir(parents=True)
    path.write_text(DEFINITION.format(name=name))
    shop.accept(name, scaled(driver))
    function = best(name)
    for _ in range(3):
        function(aligned(4, 8))
    return function


def test_eager_calls_go_past_the_version(shop, function):
    before, x = len(shop.calls), aligned(4, 8)
    for result in (function(x), function(x, 3.0), function(scale=3.0, x=x)):
        assert torch.equal(result, 6 * x)
    with torch.inference_mode():
        result = function(x)
        assert result.is_inference()
    assert torch.equal(result, 6 * x)
    assert len(shop.calls) == before
    function(aligned(2, 8))
    assert len(shop.calls) == before + 1


def test_a_compiled_graph_holds_the_operator_and_gets_the_plan(shop, function):
    torch._dynamo.reset()
    before, x = len(shop.calls), aligned(4, 8)
    compiled = torch.compile(lambda x: function(x) + 1, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), 6 * x + 1)
    assert len(shop.calls) == before


def test_gradients_fakes_vmap_and_modes_go_through_pytorch(shop, function):
    plain = aligned(4, 8)
    x = plain.clone().requires_grad_()
    function(x).sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 6))
    with torch.no_grad():
        assert not function(x).requires_grad
    with torch._subclasses.FakeTensorMode() as mode:
        assert function(mode.from_tensor(plain)).shape == (4, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch loops, and says that it is slow
        rows = torch.vmap(lambda row: function(row.view(1, 8)))(plain)
    assert torch.equal(rows, 6 * plain.view(4, 1, 8))
    heard = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            heard.append(str(func))
            return func(*args, **(kwargs or {}))

    with Mode():
        function(plain)
    assert any("scaled_" in name for name in heard)

    class Sub(torch.Tensor):
        pass

    assert torch.equal(function(plain.as_subclass(Sub)), 6 * plain)


def test_bytes_and_patterns():
    x = torch.empty(2, 3)
    launch_plan.fill(x)
    assert set(x.numpy().tobytes()) == {0xA5}
    assert launch_plan.same_bytes([x], [x.clone()])
    assert not launch_plan.same_bytes([x], [torch.zeros(2, 3)])


@pytest.mark.gpu
@pytest.mark.parametrize("op", ["softmax", "rmsnorm_quant_fp8_token"])
def test_a_plan_on_a_gpu_and_in_a_graph(extension, op):
    function = best(op, "cuda")
    x = torch.randn(64, 1024, device="cuda", dtype=torch.bfloat16)
    arguments = (x,) if op == "softmax" else (x, torch.randn_like(x), torch.randn_like(x[0]), 1e-6)
    expected = function(*arguments)
    results = [function(*arguments) for _ in range(4)][-1]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = function(*arguments)
    graph.replay()
    for found in (results, captured):
        for one, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (found, expected)), strict=True):
            assert torch.equal(one.view(torch.uint8), other.view(torch.uint8))
