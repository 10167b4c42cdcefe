"""Signs of an optimization in a program: what its edit has to leave, whatever the clock says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warpsmith.core.trial import SIGNS, EditSign, ProgramRules
from warpsmith.program.models import ObservedStep, ProgramFacts

_FUSED_ATTENTION = ("scaled_dot_product", "flash_attention", "efficient_attention", "flex_attention")


@dataclass(frozen=True)
class _Change:
    """A program before and after the edit."""

    before: ProgramFacts
    after: ProgramFacts

    def count(self, counted: Callable[[ProgramFacts], int]) -> tuple[int, int]:
        """Return a number of the program before and after."""
        return counted(self.before), counted(self.after)


def check_sign(rules: ProgramRules, before: ProgramFacts, after: ProgramFacts) -> EditSign:
    """Look for the sign of an entry in the edited program.

    Args:
        rules: the rules of the entry.
        before: facts of the original with an observed step.
        after: facts of the edited program with an observed step.
    """
    if rules.sign is None:
        return EditSign(state="unknown", evidence="the entry names no sign that a program could show")
    return _CHECKS[rules.sign](_Change(before, after)).model_copy(update={"name": rules.sign})


def _check_fused_step(change: _Change) -> EditSign:
    tensors = change.count(lambda facts: sum(item.tensors for item in facts.optimizers if item.fused))
    calls = change.count(lambda facts: _count_operators(facts, "_fused_"))
    return _compare(
        change, ("parameters with fused=True", tensors), ("fused optimizer operators", calls), hidden=False
    )


def _check_attention(change: _Change) -> EditSign:
    calls = change.count(lambda facts: _count_operators(facts, *_FUSED_ATTENTION))
    softmaxes = change.count(lambda facts: _step(facts).calls("aten::_softmax"))
    return _compare(change, ("fused attention calls", calls), fewer=("softmaxes", softmaxes))


def _check_compiled(change: _Change) -> EditSign:
    return _compare(change, ("compiled graphs", change.count(lambda facts: facts.compiled_graphs)), hidden=False)


def _check_graph_launch(change: _Change) -> EditSign:
    launches = change.count(lambda facts: _step(facts).graph_launches)
    outside = change.count(lambda facts: _count_operators(facts, ""))
    wider = ("operator calls outside of graphs", outside) if min(launches) else None
    return _compare(change, ("CUDA graph launches", launches), fewer=wider, hidden=False)


def _check_bf16(change: _Change) -> EditSign:
    products = change.count(lambda facts: _step(facts).products.get("bfloat16", 0))
    regions = change.count(lambda facts: int("bfloat16" in _step(facts).autocast))
    return _compare(change, ("products in bfloat16", products), ("autocast regions in bfloat16", regions))


def _check_tf32(change: _Change) -> EditSign:
    switches = change.count(lambda facts: facts.tf32_products + facts.tf32_convolutions)
    return _compare(change, ("switches of TF32", switches), hidden=False)


def _check_channels_last(change: _Change) -> EditSign:
    return _compare(
        change, ("models in channels-last order", change.count(lambda facts: int(facts.channels_last)))
    )


def _check_loading(change: _Change) -> EditSign:
    workers = change.count(lambda facts: sum(loader.workers for loader in facts.loaders))
    pinned = change.count(lambda facts: sum(loader.pin_memory for loader in facts.loaders))
    calls = change.count(lambda facts: _count_operators(facts, "pin_memory"))
    result = _compare(
        change, ("loader workers", workers), ("pinned loaders", pinned), ("pinning operators", calls)
    )
    if result.state == "no":
        return EditSign(state="unknown", evidence=f"{result.evidence}; prefetching by hand would leave no sign")
    return result


def _check_fewer_passes(change: _Change) -> EditSign:
    calls = change.count(lambda facts: _count_operators(facts, ""))
    return _compare(change, fewer=("operator calls of a step", calls))


def _check_recomputation(change: _Change) -> EditSign:
    return _compare(change, ("operator calls of a step", change.count(lambda facts: _count_operators(facts, ""))))


def _check_collectives(change: _Change) -> EditSign:
    calls = change.count(lambda facts: sum(_step(facts).collectives.values()))
    before, after = (
        [(item.cap_bytes, item.switches, item.hook) for item in facts.replicas]
        for facts in (change.before, change.after)
    )
    result = _compare(change, fewer=("collectives of a step", calls), hidden=False)
    if before != after:
        return EditSign(state="ok", evidence=f"{result.evidence}; DistributedDataParallel is set in another way")
    if result.state == "no":
        return EditSign(state="unknown", evidence=f"{result.evidence}; overlap by hand would leave no sign")
    return result


_CHECKS: dict[str, Callable[[_Change], EditSign]] = {
    "fused-step": _check_fused_step,
    "fused-attention": _check_attention,
    "compiled-graph": _check_compiled,
    "graph-launch": _check_graph_launch,
    "bf16-product": _check_bf16,
    "tf32-switch": _check_tf32,
    "channels-last-weight": _check_channels_last,
    "loader-switch": _check_loading,
    "fewer-operators": _check_fewer_passes,
    "recomputation": _check_recomputation,
    "collectives": _check_collectives,
}
assert _CHECKS.keys() == SIGNS.keys()


def _compare(
    change: _Change,
    *more: tuple[str, tuple[int, int]],
    fewer: tuple[str, tuple[int, int]] | None = None,
    hidden: bool = True,
) -> EditSign:
    """Return `ok` if a number of `more` grew, or the one of `fewer` fell.

    Otherwise `unknown`, if compiled code may hide it (`hidden`), else `no`.
    """
    numbers = [*more, *([fewer] if fewer else [])]
    evidence = ", ".join(f"{words} {before} before and {after} after" for words, (before, after) in numbers)
    grown = any(after > before for _, (before, after) in more)
    if grown or (fewer is not None and fewer[1][1] < fewer[1][0]):
        return EditSign(state="ok", evidence=evidence)
    if hidden and (change.before.compiled_graphs or change.after.compiled_graphs):
        return EditSign(state="unknown", evidence=f"{evidence}; compiled code hides operators")
    return EditSign(state="no", evidence=evidence)


def _count_operators(facts: ProgramFacts, *parts: str) -> int:
    """Count the calls of operators whose name contains one of these parts."""
    calls = _step(facts).operators.items()
    return sum(count for name, count in calls if any(part in name for part in parts))


def _step(facts: ProgramFacts) -> ObservedStep:
    if facts.observed is None:
        raise ValueError("no step was observed")
    return facts.observed
