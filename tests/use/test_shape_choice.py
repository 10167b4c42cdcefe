"""`best(op)` by shape: the version of the map runs, compiled too, and a map that does not fit is left alone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch
from map_samples import make_map, plane
from use_samples import BACKWARD

from warpsmith import best
from warpsmith.lab.machine import hardware, identity
from warpsmith.lab.operator import definition_file
from warpsmith.lab.performance_map import store
from warpsmith.lab.performance_map.models import MapVersion
from warpsmith.use import choice, shape_choice
from warpsmith.use.choice import BestVersion

SHAPES = plane((4, 8), (16, 8), (64, 8))
MOST_SECONDS = 5e-6


@pytest.fixture
def mapped(shop, monkeypatch):
    """`mapped(name)`: an operator with two versions; `toy/v3` runs except at 4 and 16 rows and between."""
    calls: list[str] = []
    accepted: dict[str, list[BestVersion]] = {}
    monkeypatch.setattr(choice, "accepted_versions", lambda project, op, target: accepted[op])

    def version(language):
        def run(x, bias, scale, *outputs):
            calls.append(language)
            y = scale * x + bias
            sums = torch.nn.functional.pad(y.sum(-1).double(), (0, -y.shape[0] % 4))
            if not outputs:
                return y, sums
            for output, value in zip(outputs, (y, sums), strict=True):
                output.copy_(value)
            return None

        return run

    def make(name, *, outputs="returned", languages=("toy", "spare"), **changes):
        shop.define(name, outputs=outputs, more=BACKWARD)
        for language in languages:
            shop.accept(name, version(language), language=language)
        accepted[name] = shop._chosen[name]["cpu"]
        page = hardware.read_target_page(shop.project, "cpu")
        digest = definition_file.definition_sha256(shop.project.definition_path(name))
        record = make_map(
            SHAPES, {"4x8": True, "16x8": True},
            [MapVersion(solution=v.solution, language=v.language, sha256=v.sha256) for v in accepted[name]],
            **{"definition": name, "machine": identity.identify_machine(page.target), "definition_sha256": digest,
               **changes},
        )  # fmt: skip
        folder = store.next_folder(shop.project, name, "cpu")
        folder.mkdir(parents=True)
        (folder / store.RECORD).write_text(record.model_dump_json())
        return name

    return make, calls


def arguments(rows, **options):
    return torch.randn(rows, 32, **options), torch.randn(32, **options), 2.0


def expected(x, bias, scale):
    return scale * x + bias


def test_each_call_runs_the_version_of_its_shape(mapped):
    make, calls = mapped
    function = best(make("affine_by_shape"))
    assert function.solution == "toy/v3, by shape also spare/v3"
    for rows in (4, 64, 16, 10, 4, 100, 5):
        values = arguments(rows)
        assert torch.allclose(function(*values)[0], expected(*values))
    assert calls == ["spare", "toy", "spare", "spare", "spare", "toy", "spare"]


def test_outputs_that_are_given(mapped):
    make, calls = mapped
    function = best(make("affine_given_by_shape", outputs="given"))
    for rows in (4, 64):
        values = arguments(rows)
        assert torch.allclose(function(*values)[0], expected(*values))
    assert calls == ["spare", "toy"]


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_whole_with_fixed_and_symbolic_sizes(mapped, dynamic):
    make, calls = mapped
    function = best(make(f"affine_compiled_by_shape_{int(dynamic)}"))
    compiled = torch.compile(lambda *a: function(*a)[0] * 3, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for rows in (4, 64, 10):
        values = arguments(rows)
        assert torch.allclose(compiled(*values), expected(*values) * 3)
    assert calls == ["spare", "toy", "spare"]


def test_gradients_are_the_definitions_at_each_shape(mapped):
    make, calls = mapped
    function = best(make("affine_gradient_by_shape"))
    for rows in (4, 64):
        x, bias, scale = arguments(rows, requires_grad=True)
        function(x, bias, scale)[0].sum().backward()
        assert torch.allclose(x.grad, torch.full_like(x, 2.0))
    assert calls == ["spare", "toy"]


def test_a_version_that_does_not_run_here_leaves_the_best_single_one_with_one_warning(mapped, shop):
    make, calls = mapped
    name = make("affine_lacking_by_shape", languages=("spare", "toy"))
    shop.lacks = "No C++ compiler is on PATH."
    with pytest.warns(
        UserWarning, match=r"toy/v3: No C.. compiler is on PATH; spare/v3 runs at its shapes"
    ) as caught:
        function = best(name)
    assert (len(caught), Path(caught[0].filename)) == (1, Path(__file__))
    assert function.solution == "spare/v3"
    function(*arguments(4))
    assert calls == ["spare"]


def test_where_the_best_single_version_does_not_run_the_next_best_does(mapped, shop):
    make, calls = mapped
    name = make("affine_single_lacks")
    shop.lacks = "No C++ compiler is on PATH."
    with pytest.warns(UserWarning, match="toy/v3: No C.. compiler is on PATH; spare/v3 runs instead") as caught:
        function = best(name)
    assert (len(caught), function.solution) == (1, "spare/v3")
    assert calls == []


@pytest.mark.parametrize(
    ("changes", "obstacle"),
    [
        ({"machine": None}, "it was measured on another machine, a cpu"),
        ({"definition_sha256": "f" * 64}, "the definition has changed since"),
    ],
)
def test_a_map_of_another_machine_or_definition_is_left_alone(mapped, shop, changes, obstacle):
    make, _ = mapped
    changes = {key: value for key, value in changes.items() if value}
    if not changes:
        changes = {"machine": make_map(SHAPES, {}).machine}
    name = make(f"affine_left_{len(obstacle)}", **changes)
    assert best(name).solution == "toy/v3"
    found = find(shop, name)
    assert obstacle in found.obstacle
    assert found.versions == ()


def find(shop, name):
    target = hardware.read_target_page(shop.project, "cpu").target
    return shape_choice.find_map(shop.project, name, target, shop._chosen[name]["cpu"])


def test_a_version_that_was_struck_or_a_newer_best_one_ends_a_map(mapped, shop):
    make, _ = mapped
    name = make("affine_struck")
    listed = choice.accepted_versions(shop.project, name, "cpu")
    assert find(shop, name).obstacle == ""
    struck = listed.pop()
    assert "spare/v3 as it was timed is no accepted version" in find(shop, name).obstacle
    listed.append(struck)
    newer = struck.model_copy(update={"solution": "toy/v9", "sha256": "9" * 64})
    target = hardware.read_target_page(shop.project, "cpu").target
    found = shape_choice.find_map(shop.project, name, target, [newer, *listed])
    assert "it did not time toy/v9, today's best version" in found.obstacle


def test_a_map_under_other_libraries_is_left_alone(mapped, shop):
    make, _ = mapped
    page = hardware.read_target_page(shop.project, "cpu")
    machine = identity.identify_machine(page.target)
    older = machine.model_copy(update={"libraries": {**machine.libraries, "torch": "1.0.0"}})
    name = make("affine_older_torch", machine=older)
    assert "measured under torch 1.0.0" in find(shop, name).obstacle


def test_without_a_map_nothing_is_looked_up(shop, monkeypatch):
    shop.define("affine_unmapped")
    shop.accept("affine_unmapped", lambda x, bias, scale: (x, x))
    monkeypatch.setattr(identity, "identify_machine", lambda target: pytest.fail("it is slow"))
    assert best("affine_unmapped").solution == "toy/v3"


def test_a_choice_costs_a_look_up(mapped, shop):
    make, _ = mapped
    name = make("affine_cheap_choice")
    file = definition_file.load_definition(shop.project.definition_path(name))
    runs = {solution: (lambda *values: None) for solution in ("toy/v3", "spare/v3")}
    run = shape_choice.run_by_shape(find(shop, name), runs, file, shape_choice.Arguments(file.definition, "cpu"))
    values, times = arguments(4), []
    for _ in range(50):
        started = time.thread_time()
        for _ in range(100):
            run(*values)
        times.append((time.thread_time() - started) / 100)
    assert min(times) < MOST_SECONDS
