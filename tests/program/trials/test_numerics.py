from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from trial_kit import FACTS, TRAIN, InProcess, changed

from warpsmith.core.trial import NumericsResult, Precision
from warpsmith.program.process.program import resolve_step_program
from warpsmith.program.trials import numerics, trajectory
from warpsmith.program.trials.trajectory import StateTensor, Trajectory

WARMING = """
ready, real = False, train_step
def train_step():
    global ready
    if not ready:
        real()
        real()
        ready = True
    return real()
"""
QUICK = ("pause(PAUSE)", "")
IMAGE = """
import torch
from torch import nn
import torch.nn.functional as F

model = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

def train_step():
    x, y = torch.randn(16, 3, 8, 8), torch.randint(0, 5, (16,))
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return {"loss": loss}
"""
DECODE = """
import torch
from torch import nn

table = nn.Embedding(64, 32)
head = nn.Linear(32, 64)
last = torch.zeros(4, dtype=torch.int64)

@torch.no_grad()
def train_step():
    global last
    last = head(table(last)).argmax(-1)
    return last
"""


@cache
def recorded(folder: Path, text: str, jitter: float = 0.0, edited: str | None = None) -> Trajectory:
    (folder / "train.py").write_text(text)
    (folder / "pause.py").write_text("PAUSE = 0\ndef pause(_): pass\n")
    program = resolve_step_program(str(folder / "train.py"), "train_step")
    copies = {}
    if edited is not None:
        (folder / "edited").write_text(edited)
        copies[program.path] = folder / "edited"
    with InProcess(program, copies, seed=11) as runner:
        runner.start()
        (found,) = trajectory.record_trajectories(runner, jitter=jitter)  # type: ignore[arg-type]
        return found


@pytest.fixture(scope="module")
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder, so that no program is run twice."""
    return tmp_path_factory.mktemp("programs")


def judged(folder: Path, text: str, edited: str, precision: Precision = "same") -> NumericsResult:
    """A text against its edited form."""
    original = recorded(folder, text)
    again = recorded(folder, text, numerics.BOUNDS[precision].jitter)
    return numerics.compare_numerics(original, again, recorded(folder, text, edited=edited), precision, 11)


@pytest.mark.parametrize(
    ("text", "edits"),
    [
        (TRAIN, [("lr=1e-2", "lr=1e-2, fused=True")]),
        (TRAIN, [("lr=1e-2", "lr=1e-2, foreach=True")]),
        (TRAIN, [("optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=False)")]),
        (IMAGE, [("torch.randn(16, 3, 8, 8)", "torch.randn(16, 3, 8, 8).to(memory_format=torch.channels_last)")]),
        (IMAGE, [("AdamW", "AdamW"), ("lr=1e-3", "lr=1e-3, fused=True")]),
    ],
)
def test_an_honest_edit_passes(tmp_path, text, edits):
    result = judged(tmp_path, text, changed(text, *edits))
    assert result.passed, result.failure
    assert {"form", "values", "movement", "parameter"} <= {check.name for check in result.checks}


BF16 = ("    loss = F", '    with torch.autocast("cpu", torch.bfloat16):\n        loss = F')


@pytest.mark.parametrize("text", [TRAIN, IMAGE])
def test_lower_precision_passes_where_it_is_declared_alone(tmp_path, text):
    edited = changed(text, BF16)
    assert judged(tmp_path, text, edited, "bf16").passed
    assert not judged(tmp_path, text, edited, "same").passed


SKIPPING = """    return loss

count, last = 0, None
def train_step():
    global count, last
    count += 1
    if count % 2:
        last = real()
    return last"""
DETACHED = "{name: each.detach().requires_grad_() for name, each in model.named_parameters()}"
SECOND = "optimizer.skip = not getattr(optimizer, 'skip', False)\n    optimizer.skip or optimizer.step()"
FALSE_WINS = {
    "skips every second step": [("def train_step():", "def real():"), ("    return loss", SKIPPING)],
    "returns a constant loss": [("return loss", "return torch.tensor(1.6)")],
    "returns a constant loss and does nothing": [("x, y = batch()", "return torch.tensor(1.6)")],
    "detaches parameters": [("model(x)", f"torch.func.functional_call(model, {DETACHED}, (x,))")],
    "detaches one layer": [("model(x)", "model[2:](model[:2](x).detach())")],
    "freezes one bias": [("def batch", "model[2].bias.requires_grad_(False)\n\ndef batch")],
    "lowers the batch size": [("32, 12", "16, 12"), ("5, (32,)", "5, (16,)")],
    "drops some of the batch": [("model(x), y)", "model(x[:-4]), y[:-4])")],
    "caches the batch": [
        ("def train_step", "kept = batch()\n\ndef train_step"),
        ("x, y = batch()", "x, y = kept"),
    ],
    "updates every second step": [("optimizer.step()", SECOND)],
    "learns half as fast": [("lr=1e-2", "lr=5e-3")],
    "takes another initialisation": [("model = nn", "torch.randn(1)\nmodel = nn")],
}


@pytest.mark.parametrize("precision", ["same", "tf32", "bf16"])
@pytest.mark.parametrize("edits", FALSE_WINS.values(), ids=FALSE_WINS)
def test_a_false_win_fails_in_every_precision(tmp_path, edits, precision):
    result = judged(tmp_path, TRAIN, changed(TRAIN, *edits), precision)
    assert not result.passed


def test_the_cause_is_named_where_it_shows(tmp_path):
    constant = judged(tmp_path, TRAIN, changed(TRAIN, *FALSE_WINS["returns a constant loss"]))
    assert "every step returns the same value" in constant.failure
    skipping = judged(tmp_path, TRAIN, changed(TRAIN, *FALSE_WINS["skips every second step"]))
    assert "they do no work" in skipping.failure
    frozen = judged(tmp_path, TRAIN, changed(TRAIN, *FALSE_WINS["freezes one bias"]))
    assert "model.2.bias deviates by 100.0%" in str(frozen.checks)
    other = judged(tmp_path, TRAIN, changed(TRAIN, *FALSE_WINS["takes another initialisation"]))
    assert "differs before the first step" in other.failure


def test_warm_up_that_counts_as_steps_is_named(tmp_path):
    edited = TRAIN + WARMING
    assert "value runs 2 steps ahead" in judged(tmp_path, TRAIN, edited).failure


def test_whole_numbers_must_be_equal(tmp_path):
    assert judged(tmp_path, DECODE, DECODE).passed
    flipped = changed(DECODE, (".argmax(-1)", ".argmax(-1) + (last == 63)"))
    one_off = changed(DECODE, ("return last", "return last + torch.tensor([0, 0, 0, 1])"))
    assert judged(tmp_path, DECODE, one_off, "bf16").failure == "integers: step 0: value differs in 1 of 4"
    assert judged(tmp_path, DECODE, flipped).checks


def test_a_value_of_another_form_fails(tmp_path):
    assert "step 0 returns value.loss, the original value" in judged(
        tmp_path, TRAIN, changed(TRAIN, ("return loss", "return {'loss': loss}"))
    ).failure  # fmt: skip
    wider = judged(tmp_path, TRAIN, changed(TRAIN, ("32, 5)", "32, 6)")))
    assert wider.failure.startswith("form: its parameters differ")


def test_a_loss_that_turns_nan_fails(tmp_path):
    result = judged(tmp_path, TRAIN, changed(TRAIN, ("return loss", "return loss * float('nan')")))
    assert result.failure == "values: step 0: value is not finite"


def test_an_evaluation_may_move_nothing(tmp_path):
    text = changed(TRAIN, ("    optimizer.step()\n", ""), QUICK)
    assert judged(tmp_path, text, changed(text, ("optimizer.zero_grad()", "model.zero_grad()"))).passed
    moving = changed(text, ("loss.backward()", "loss.backward(); model[0].bias.data.add_(1e-7)"))
    assert "the original does not move it" in judged(tmp_path, text, moving).failure


def held(start: object, end: object) -> StateTensor:
    return StateTensor("p", (2,), True, np.asarray(start, dtype=float), (np.asarray(end, dtype=float),))


def curve(*values: float) -> tuple[dict[str, np.ndarray], ...]:
    return tuple({"value": np.asarray(value)} for value in values)


def test_what_rounding_alone_decides_cannot_be_judged():
    original = Trajectory(curve(1.5, 1.4), (held([0, 0], [1, 0]),))
    again = Trajectory(curve(1.5, 1.4), (held([0, 0], [0, 1]),))
    assert "movement: rounding alone" in numerics.compare_numerics(original, again, original, "same", 0).failure


def followed(*ways: tuple[float, float]) -> StateTensor:
    """A parameter that is at these places at the horizons."""
    return StateTensor("p", (2,), True, np.zeros(2), tuple(map(np.asarray, ways)))


def test_parameters_are_followed_as_far_as_rounding_does_not_decide():
    values = curve(1.5, 1.4, 1.3, 1.2, 1.1, 1.0, 0.9, 0.8)
    original = Trajectory(values, (followed((1, 0), (2, 0), (3, 0)),))
    again = Trajectory(values, (followed((1, 0), (2, 0), (0, 3)),))
    edited = Trajectory(values, (followed((1, 0), (2, 0), (-3, 1)),))
    result = numerics.compare_numerics(original, again, edited, "same", 0)
    assert result.passed
    assert "over 4 steps" in next(check for check in result.checks if check.name == "movement").detail
    wrong = Trajectory(values, (followed((1, 0), (1, 0), (3, 0)),))
    assert not numerics.compare_numerics(original, again, wrong, "same", 0).passed


def test_values_are_judged_as_far_as_rounding_does_not_decide():
    original = Trajectory(curve(4.5, 3.0, 2.0, 1.0), ())
    again = Trajectory(curve(4.5, 3.0, 2.1, 1.5), ())
    assert numerics.compare_numerics(original, again, Trajectory(curve(4.5, 3.0, 1.8, 2.0), ()), "same", 0).passed
    assert not numerics.compare_numerics(
        original, again, Trajectory(curve(4.5, 3.1, 2.0, 1.0), ()), "same", 0
    ).passed
    wild = Trajectory(curve(5.5, 2.5, 2.1, 1.5), ())
    assert not numerics.compare_numerics(
        original, wild, Trajectory(curve(4.5, 3.1, 2.0, 1.0), ()), "same", 0
    ).passed


def test_one_wrong_element_of_many_fails():
    values = np.ones(1_000_000)
    wrong = values.copy()
    wrong[7] = 1.2
    original = Trajectory(({"value": values},), ())
    assert numerics.compare_numerics(original, original, original, "bf16", 0).passed
    assert not numerics.compare_numerics(original, original, Trajectory(({"value": wrong},), ()), "bf16", 0).passed


@pytest.mark.parametrize(
    ("declared", "facts", "force"),
    [
        ("same", {}, "same"),
        ("tf32", {}, "tf32"),
        ("same", {"parameter_dtypes": {"bfloat16": 1}}, "bf16"),
        ("same", {"tf32_products": True}, "same"),
        ("same", {"gpu": True, "tf32_products": True}, "tf32"),
        ("bf16", {"gpu": True, "tf32_products": True}, "bf16"),
    ],
)
def test_the_original_s_own_precision_counts(declared, facts, force):
    assert numerics.effective_precision(declared, FACTS.model_copy(update=facts)) == force


def test_autocast_of_the_original_counts():
    assert FACTS.observed is not None
    seen = FACTS.observed.model_copy(update={"autocast": ("bfloat16",)})
    assert numerics.effective_precision("same", FACTS.model_copy(update={"observed": seen})) == "bf16"


def test_a_curve_that_hardly_moves_must_be_met_more_closely():
    flat = Trajectory(curve(2.0, 2.0026, 2.0052), ())
    constant = Trajectory(curve(2.0026, 2.0026, 2.0026), ())
    steep = Trajectory(curve(2.0, 1.5, 1.0), ())
    near = Trajectory(curve(2.0026, 1.5026, 1.0026), ())
    assert not numerics.compare_numerics(flat, flat, constant, "bf16", 0).passed
    assert numerics.compare_numerics(steep, steep, near, "bf16", 0).passed


def test_parameters_that_turn_nan_fail():
    original = Trajectory(curve(1.5, 1.4), (held([0, 0], [1, 0]),))
    broken = Trajectory(curve(1.5, 1.4), (held([0, 0], [np.nan, 0]),))
    result = numerics.compare_numerics(original, original, broken, "bf16", 0)
    assert {check.name for check in result.checks if not check.passed} == {"movement", "parameter"}


def test_the_page_s_table_has_the_bounds_in_force():
    page = (Path(__file__).parents[3] / "docs" / "programs.md").read_text()
    rows = {
        "a single number": ("scalar",),
        "a tensor, by norm": ("tensor",),
        "the way of all parameters, with noise at most": ("movement", "movement_cap"),
        "the way of one parameter, with noise at most": ("parameter",),
    }
    for name, fields in rows.items():
        (row,) = [line for line in page.splitlines() if line.strip().startswith(f"| {name} |")]
        told = [[float(word.strip(" %")) for word in cell.split(",")] for cell in row.split("|")[2:-1]]
        held = [[100 * getattr(one, field) for field in fields] for one in numerics.BOUNDS.values()]
        assert [cell[: len(fields)] for cell in told] == [pytest.approx(one) for one in held]
