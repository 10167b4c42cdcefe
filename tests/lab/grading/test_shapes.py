"""Shapes by class: what is drawn, and that numbers vary with them."""

from __future__ import annotations

from pathlib import Path

from lab_samples import SQUARE

from warpsmith.lab.grading import shapes
from warpsmith.lab.operator.definition_file import load_definition

KERNELS = Path(__file__).parents[3] / "kernels"


def test_an_edge_and_a_skew_of_declared_shapes():
    file = load_definition(KERNELS / "softmax" / "definition.py")
    for seed in range(10):
        edge, skewed = shapes.draw_class_workloads(file, file.definition.select("representative"), seed=seed)
        assert edge.name.startswith("edge-")
        assert 1 in edge.axes.values()
        assert skewed.name.startswith("skewed-")
        assert {edge.set, skewed.set} == {"odd"}


def test_a_vector_cannot_be_skewed(workshop):
    file = workshop.load("square", SQUARE)
    (edge,) = shapes.draw_class_workloads(file, file.definition.select("representative"), seed=1)
    assert edge.axes == {"n": 1}


def test_numbers_vary_and_stay_what_they_are():
    file = load_definition(KERNELS / "rmsnorm" / "definition.py")
    values = [
        workload.scalars["eps"]
        for seed in range(10)
        for workload in shapes.draw_class_workloads(file, file.definition.select("representative"), seed=seed)
    ]
    assert min(values) >= 1e-6
    assert max(values) > 1e-4
    assert max(values) < 1
    assert len(set(values)) > 10


def test_the_larger_shape_is_beyond_the_largest_judged():
    file = load_definition(KERNELS / "softmax" / "definition.py")
    judged = file.definition.select("representative")
    most = max(file.definition.elements(workload) for workload in judged)
    for seed in range(10):
        larger = shapes.draw_larger_workload(file, judged, 1 << 34, seed=seed)
        assert most < file.definition.elements(larger) < 1.6 * most
        assert any(size % 8 for size in larger.axes.values())
        assert larger.dtype in {workload.dtype for workload in judged}
    assert shapes.draw_larger_workload(file, judged, 1 << 10) is None
