"""Formulas of an operator over its axes: shapes of results, reduction lengths and work, solved from runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import prod

from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.arithmetic.size_formula import solve_size
from warpsmith.interchange.pytorch.forward import ForwardRun

BLOCK = 4096
"""Terms that an honest kernel adds up in one chain; it cuts a longer sum into blocks and adds those up."""

Sample = tuple[Mapping[str, int], ForwardRun]
"""Sizes of the axes, and the run at them."""


def result_shapes(samples: Sequence[Sample]) -> list[list[str | int | None]]:
    """Return a formula for each dimension of each result; None where there is none."""
    sizes, runs = [sample for sample, _ in samples], [run for _, run in samples]
    return [
        [solve_size(values, sizes) for values in zip(*shapes, strict=True)]
        for shapes in zip(*(run.shapes for run in runs), strict=True)
    ]


def reduction_lengths(samples: Sequence[Sample], representative: Mapping[str, int]) -> list[str]:
    """Return the reduction length of each result as arithmetic over axes.

    It is the sum over the longest chain of reductions behind the result. A sum of more than `BLOCK` terms counts
    as one over blocks: `BLOCK + n / BLOCK`. So the mean over two million rows leaves no more slack than a sum of a
    few thousand numbers, and a kernel that skips rows fails.
    """
    comparable = _comparable(samples)
    return [_chain_length(chain, comparable, representative) for chain in samples[0][1].chains]


def operation_count(samples: Sequence[Sample], results: Sequence[Sequence[str | int]]) -> tuple[str, bool]:
    """Return floating-point operations over axes, and whether they are counted from products.

    Without products, they are estimated as one per element of the largest tensor that is computed with, which is
    never too many.
    """
    comparable, first = _comparable(samples), samples[0][1]
    sizes = [sample for sample, _ in comparable]
    products = [index for index, operation in enumerate(first.operations) if operation.flops]
    terms = [
        solve_size(flops, sizes) or _multiple_of_result(flops, comparable, results)
        for flops in ([run.operations[i].flops for _, run in comparable] for i in products)
    ]
    counted = [term for term in terms if term is not None]
    if counted:
        return _sum_of(counted), True
    largest = max(range(len(first.operations)), key=lambda i: first.operations[i].elements, default=None)
    elements = None
    if largest is not None and first.operations[largest].elements:
        elements = solve_size([run.operations[largest].elements for _, run in comparable], sizes)
    return str(elements or element_formula(results[0])), False


def _multiple_of_result(
    flops: Sequence[int], samples: Sequence[Sample], results: Sequence[Sequence[str | int]]
) -> str | None:
    """Return the work as a multiple of a result's elements, such as that of a convolution with a stride."""
    for index, shape in enumerate(results):
        ratios = {count / elements_at([run.shapes[index]]) for count, (_, run) in zip(flops, samples, strict=True)}
        if len(ratios) == 1 and (ratio := ratios.pop()).is_integer():
            return f"{int(ratio)} * {element_formula(shape)}"
    return None


def _comparable(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples that ran the same operations as the first."""
    names = [operation.name for operation in samples[0][1].operations]
    return [sample for sample in samples if [operation.name for operation in sample[1].operations] == names]


def _chain_length(chain: Sequence[int], samples: Sequence[Sample], representative: Mapping[str, int]) -> str:
    sizes = [sample for sample, _ in samples]
    terms: list[str | int] = []
    for index in chain:
        lengths = [run.operations[index].length for _, run in samples]
        formula = solve_size(lengths, sizes)
        terms.append(formula if formula is not None else max(lengths))
    return blocked_length(terms, representative)


def blocked_length(terms: Iterable[str | int], representative: Mapping[str, int]) -> str:
    """Return the reduction length of sums that follow each other; one of more than `BLOCK` terms runs in blocks.

    Args:
        terms: length of each sum, a number or arithmetic over axes.
        representative: sizes of the axes that decide which sums are long.
    """
    parts: list[str | int] = []
    for term in terms:
        length = evaluate(str(term), representative)
        if length > BLOCK:
            blocks = -(-int(length) // BLOCK) if isinstance(term, int) else f"{parenthesized(term)} / {BLOCK}"
            parts += [BLOCK, blocks]
        else:
            parts.append(term)
    return _sum_of(parts) if parts else "1"


def _sum_of(terms: Iterable[str | int]) -> str:
    """Write a sum, with equal terms collected and numbers added up."""
    counts: Counter[str] = Counter()
    number = 0
    for term in terms:
        if isinstance(term, int):
            number += term
            continue
        head, _, rest = term.partition(" * ")
        coefficient, body = (int(head), rest) if head.isdecimal() and rest else (1, term)
        counts[body] += coefficient
    parts = [body if count == 1 else f"{count} * {parenthesized(body)}" for body, count in counts.items()]
    return " + ".join([*parts, *([str(number)] if number or not parts else [])])


def parenthesized(text: str) -> str:
    """Put a sum in parentheses, so that it can be multiplied."""
    return f"({text})" if " + " in text or " - " in text or "//" in text else text


def element_formula(shape: Sequence[str | int]) -> str:
    """Return the number of elements of a shape as arithmetic over axes."""
    return " * ".join(parenthesized(str(size)) for size in shape) or "1"


def looked_up_elements(lookups: Sequence[int], samples: Sequence[Sample]) -> str | None:
    """Return the elements that some lookups read, as arithmetic over axes; None if there is no formula."""
    comparable = _comparable(samples)
    sizes = [sample for sample, _ in comparable]
    terms = [solve_size([run.operations[i].looked_up for _, run in comparable], sizes) for i in lookups]
    return None if None in terms else _sum_of([term for term in terms if term is not None])


def elements_at(shapes: Iterable[tuple[int, ...]]) -> int:
    """Return the number of elements of all tensors."""
    return sum(prod(shape) for shape in shapes)
