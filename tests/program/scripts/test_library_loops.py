"""Loops of libraries, where these are installed: Hugging Face's Trainer, accelerate and Lightning."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from warpsmith.program.lines.watch import watch_lines
from warpsmith.program.process.program import resolve_step_program
from warpsmith.program.scripts.command_runner import open_runner

pytestmark = [pytest.mark.own_process, pytest.mark.slow]

HUGGING_FACE = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 4096
    def __getitem__(self, n):
        ids = torch.randint(0, 64, (16,), generator=torch.Generator().manual_seed(n))
        return {"input_ids": ids, "labels": ids}

config = GPT2Config(
    vocab_size=64, n_positions=16, n_embd=16, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=0
)
arguments = TrainingArguments(
    "out", max_steps=400, gradient_accumulation_steps=2, report_to=[], save_strategy="no", use_cpu=True,
    disable_tqdm=True, optim="adamw_torch",
)
Trainer(model=GPT2LMHeadModel(config), args=arguments, train_dataset=Rows()).train()
"""
ACCELERATE = """
import torch
from accelerate import Accelerator
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(4096, 8)), batch_size=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(20):
    for (x,) in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(x).square().mean())
            optimizer.step()
            optimizer.zero_grad()
"""
LIGHTNING = """
import torch
import lightning

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
    def training_step(self, batch, number):
        return self.layer(batch[0]).square().mean()
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.01)

rows = torch.utils.data.TensorDataset(torch.randn(4096, 8))
trainer = lightning.Trainer(
    max_epochs=20, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    accumulate_grad_batches=2,
)
trainer.fit(Net(), torch.utils.data.DataLoader(rows, batch_size=4))
"""


@pytest.mark.parametrize(
    ("library", "text"),
    [("transformers", HUGGING_FACE), ("accelerate", ACCELERATE), ("lightning", LIGHTNING)],
)
def test_a_step_of_a_librarys_loop_ends_where_its_optimizer_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, text: str
) -> None:
    pytest.importorskip(library)
    (tmp_path / "warpsmith.toml").touch()
    (tmp_path / "train.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    program = resolve_step_program(None, None, command=f"{sys.executable} train.py", writes=[tmp_path / "out"])
    with open_runner(program, timeout=120, log=tmp_path / ".warpsmith" / "log") as runner:
        assert "AdamW" in [item.kind for item in runner.start().optimizers]
        values = runner.run(3).values
        assert len({step["value"] for step in values}) == 3, "each step has a loss of its own"
        observed = runner.observe().observed
        assert observed is not None
        assert (observed.backwards, observed.optimizer_steps) == (2, 1)
        assert 0 < observed.optimizer_seconds < observed.seconds / 2
        lines = watch_lines(runner, gpu=False).lines
        assert lines.flops > 0
        assert lines.update is not None
        assert lines.update.package == {"transformers": "accelerate"}.get(library, library)
