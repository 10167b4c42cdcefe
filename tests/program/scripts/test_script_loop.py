"""The loop of a script, read from its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.errors import Misuse
from warpsmith.program.scripts.script_loop import find_script_loop
from warpsmith.program.scripts.step_refusal import refuse_script

pytestmark = pytest.mark.own_process

NANO = """exec(open('configurator.py').read())
model.train()
while True:
    for micro_step in range(4):
        scaler.scale(loss).backward()
    scaler.step(optimizer)
    scheduler.step()
"""
HUGGING = """from transformers import Trainer
def main():
    trainer = Trainer(model=model)
    trainer.train()
if __name__ == "__main__":
    main()
"""
ACCELERATE = """def main():
    for epoch in range(3):
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(batch))
                optimizer.step()
if __name__ == '__main__':
    main()
"""
LIGHTNING = "trainer = L.Trainer(max_epochs=2)\ntrainer.fit(Net(), loader)\n"
TITAN = """class Trainer:
    def train_step(self):
        for part in range(2):
            loss.backward()
        self.optimizers.step()
    def train(self):
        while self.step < 10:
            self.train_step()
if __name__ == "__main__":
    trainer = Trainer()
    trainer.train()
"""
SHORT_NAMES = """o = torch.optim.RMSprop(model.parameters())
def train_step():
    for part in range(2):
        loss.backward()
    for x in [*optims, muon]:
        x.step()
while True:
    train_step()
"""
ONE_NAME = "o = torch.optim.AdamW(model.parameters())\nfor n in range(9):\n    loss.backward()\n    o.step()\n"
SAMPLE = "with torch.no_grad():\n    for k in range(3):\n        y = model.generate(x, 5)\n"
EVALUATE = """from library import build_model, Timer
tokenizer = AutoTokenizer.from_pretrained("x")
m = Net().to(device).eval()
criterion = nn.CrossEntropyLoss()
def evaluate(loader):
    for x, y in loader:
        ids = tokenizer(x)
        loss = criterion(m(ids), y)
for n in range(3):
    blocks = build_model(n)
    evaluate(loader)
"""
BEHIND_TRAINER = "for x in held_out:\n    model(x)\ntrainer = Trainer(model)\ntrainer.train()\n"
WRAPPED = "while True:\n    x = self.net.predict(x)\n"
BY_HAND = "def step():\n    loss.backward()\nfor n in range(9):\n    step()\n"
STEPS = """def train():
    for batch in loader:
        optimizer.step()
def train_step():
    for part in parts:
        loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    model.train()
model = Net()
model.train()
"""


@pytest.mark.parametrize(
    ("text", "line", "work", "call_line", "guarded", "functions"),
    [
        (NANO, 3, "optimizer", 6, False, ()),
        (HUGGING, 4, "library", 4, True, ("main",)),
        (ACCELERATE, 3, "optimizer", 6, True, ("main",)),
        (LIGHTNING, 2, "library", 2, False, ()),
        (TITAN, 7, "optimizer", 5, True, ("train",)),
        (SHORT_NAMES, 7, "optimizer", 6, False, ()),
        (ONE_NAME, 2, "optimizer", 4, False, ()),
        (SAMPLE, 2, "generate", 3, False, ()),
        (EVALUATE, 6, "forward", 8, False, ("evaluate",)),
        (BEHIND_TRAINER, 4, "library", 4, False, ()),
        (WRAPPED, 1, "forward", 2, False, ()),
        (BY_HAND, 3, "backward", 2, False, ()),
    ],
)
def test_the_loop_is_found_by_its_line(
    tmp_path: Path, text: str, line: int, work: str, call_line: int, guarded: bool, functions: tuple[str, ...]
) -> None:
    (tmp_path / "train.py").write_text(text)
    loop = find_script_loop(tmp_path / "train.py")
    assert loop is not None
    assert (loop.line, loop.work, loop.call_line, loop.guarded, loop.functions) == (
        line, work, call_line, guarded, functions,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        STEPS, "def f(:\n", "for x in xs:\n    scheduler.step()\n", "",
        "def build_model(n): pass\nfor n in range(3):\n    build_model(n)\n",
        "for model in models:\n    model(x)\n",
    ],
)  # fmt: skip
def test_functions_that_nothing_calls_are_no_script(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.py").write_text(text)
    assert find_script_loop(tmp_path / "train.py") is None


@pytest.mark.parametrize(
    ("text", "step", "says"),
    [
        (NANO, "train_step", r"line 3 trains by `scaler.step\(optimizer\)` \(line 6\)"),
        (LIGHTNING, "step", r"would train when it is imported: line 2"),
        (HUGGING, "main", r"`main` of .*train.py is no step"),
        (ACCELERATE, None, r"or give --step NAME"),
        (SAMPLE, None, r"line 2 generates by"),
        (EVALUATE, None, r"line 6 computes by `m\(ids\)` \(line 8\)"),
    ],
)
def test_a_script_in_place_of_a_step_is_refused_unread(
    tmp_path: Path, text: str, step: str | None, says: str
) -> None:
    path = tmp_path / "train.py"
    path.write_text(text)
    with pytest.raises(Misuse, match=says) as refused:
        refuse_script(str(path), step, ("--max_iters", "20"))
    assert f"warpsmith program analyze --command 'python {path} --max_iters 20'" in str(refused.value)
    with pytest.raises(Misuse, match="program autopilot --command"):
        refuse_script(str(path), step, (), "autopilot")
    assert "\n" not in str(refused.value)


def test_a_step_beside_a_guarded_loop_is_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TITAN + "\ndef step():\n    pass\n")
    refuse_script(str(tmp_path / "train.py"), "step", ())
    (tmp_path / "steps.py").write_text(EVALUATE)
    refuse_script(str(tmp_path / "steps.py"), "evaluate", ())
    refuse_script("absent.py", "step", ())
    refuse_script("pkg.train", None, ())
