"""Signs of an optimization: present, absent, or hidden."""

from __future__ import annotations

import pytest
from trial_kit import FACTS, OBSERVED

from warpsmith.core.trial import SIGNS, ProgramRules
from warpsmith.program.models import LoaderFacts, OptimizerFacts, ProgramFacts, ReplicaFacts
from warpsmith.program.trials.edit_signs import check_sign

pytestmark = pytest.mark.own_process


def facts(**fields: object) -> ProgramFacts:
    step = {name: fields.pop(name) for name in list(fields) if name in type(OBSERVED).model_fields}
    return FACTS.model_copy(update={**fields, "observed": OBSERVED.model_copy(update=step)})


def loader(**switches: object) -> tuple[LoaderFacts, ...]:
    return (
        LoaderFacts.model_validate(
            {"workers": 0, "pin_memory": False, "batch": 1, "persistent": False} | switches
        ),
    )


FUSED = (OptimizerFacts(kind="AdamW", tensors=4, fused=True),)
REPLICA = ReplicaFacts(
    buckets=(8,), cap_bytes=8, unused_bytes=0, find_unused=True, bucket_views=True, static_graph=False
)
EAGER = facts(
    operators={"aten::_softmax": 2, "aten::mm": 4}, collectives={"c10d::allreduce_": 9}, loaders=loader()
)


@pytest.mark.parametrize(
    ("sign", "edited"),
    [
        ("fused-step", facts(optimizers=FUSED)),
        ("fused-step", facts(operators={"aten::_fused_adamw_": 1})),
        ("fused-attention", facts(operators={"aten::_scaled_dot_product_flash_attention_for_cpu": 2})),
        ("fused-attention", facts(operators={"aten::mm": 4})),
        ("compiled-graph", facts(compiled=("default",), compiled_graphs=1)),
        ("graph-launch", facts(graph_launches=1)),
        ("bf16-product", facts(products={"bfloat16": 6})),
        ("bf16-product", facts(autocast=("bfloat16",))),
        ("tf32-switch", facts(tf32_products=True)),
        ("channels-last-weight", facts(channels_last=True)),
        ("loader-switch", facts(loaders=loader(workers=2))),
        ("loader-switch", facts(loaders=loader(pin_memory=True))),
        ("fewer-operators", facts(operators={"aten::mm": 4})),
        ("recomputation", facts(operators={"aten::_softmax": 3, "aten::mm": 6})),
        ("collectives", facts(collectives={"c10d::allreduce_": 2})),
        ("collectives", facts(collectives={"c10d::allreduce_": 9}, replicas=(REPLICA,))),
    ],
)
def test_a_sign_is_seen_in_the_edited_program_and_not_in_the_same_one(sign: str, edited: ProgramFacts) -> None:
    rules = ProgramRules(sign=sign)
    assert check_sign(rules, EAGER, edited).state == "ok"
    absent = check_sign(rules, EAGER, EAGER)
    assert (absent.state, absent.name) == ("unknown" if sign in ("loader-switch", "collectives") else "no", sign)


def test_every_sign_is_tried_here_and_a_call_of_compile_alone_is_none() -> None:
    tried = test_a_sign_is_seen_in_the_edited_program_and_not_in_the_same_one.pytestmark[0].args[1]
    assert {sign for sign, _ in tried} == set(SIGNS)
    assert check_sign(ProgramRules(sign="compiled-graph"), EAGER, facts(compiled=("default",))).state == "no"


def test_a_graph_that_takes_in_more_of_the_step_is_seen() -> None:
    rules = ProgramRules(sign="graph-launch")
    part, whole = (facts(graph_launches=1, operators={"aten::copy_": calls}) for calls in (9, 1))
    assert check_sign(rules, part, whole).state == "ok"
    assert check_sign(rules, whole, part).state == "no"
    assert check_sign(rules, EAGER, facts(operators={"aten::mm": 1})).state == "no"


def test_compiled_code_may_hide_a_sign_and_an_entry_may_have_none() -> None:
    compiled = facts(compiled_graphs=1, operators={"aten::_softmax": 2, "aten::mm": 4})
    hidden = check_sign(ProgramRules(sign="fused-attention"), compiled, compiled)
    assert (hidden.state, "compiled code hides" in hidden.evidence) == ("unknown", True)
    assert check_sign(ProgramRules(), EAGER, EAGER).state == "unknown"
