"""Small programs for the CUDA graph check: one blocker each, in the line marked `# HERE`, or none."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from warpsmith.program.process import values

HEAD = """\
import random, time
import torch
from torch import nn
from torch.nn import functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)).to(device)
x = torch.randn(4, 8, device=device)
y = torch.randn(4, 8, device=device)
"""


@dataclass(frozen=True)
class Planted:
    """A program with one blocker, or a control without any."""

    name: str
    kind: str
    """Kind of the blocker; empty if there is none."""
    body: str
    """Text after `HEAD`; it defines `step`."""
    ran: str | None = "certain"
    """Certainty after steps that are watched on a CPU; None: these do not show it."""
    setup: str | None = None
    """Name of the setup."""
    captures: bool | None = None
    """True if a GPU captures it; None: the replay is wrong, or it depends."""

    def write(self, folder: Path) -> Path:
        """Write the program to a file."""
        path = folder / f"{self.name.replace('-', '_')}.py"
        path.write_text(HEAD + textwrap.dedent(self.body))
        return path

    @property
    def line(self) -> int:
        """Return the line of the blocker."""
        lines = enumerate((HEAD + textwrap.dedent(self.body)).splitlines(), 1)
        return next((number for number, line in lines if line.endswith("# HERE")), 0)


class Loaded:
    """A program loaded in this process; it stands for the one that tasks get."""

    def __init__(self, path: Path, setup: str | None) -> None:
        spec = spec_from_file_location(f"planted_{path.stem}", path)
        assert spec
        assert spec.loader
        self.path, self.module, self.next_step = path, module_from_spec(spec), 0
        spec.loader.exec_module(self.module)
        self.setup_result = getattr(self.module, setup)() if setup else ()

    def step(self):
        step = self.module.step
        number = [self.next_step] if step.__code__.co_varnames[: step.__code__.co_argcount] == ("number",) else []
        self.next_step += 1
        return step(*(self.setup_result or number))

    def modules(self):
        return values.find_modules(vars(self.module), self.setup_result)


PLANTED = (
    Planted("item", "host-read", """
        def step():
            loss = F.mse_loss(model(x), y)
            return loss.item()  # HERE
        """, captures=False),
    Planted("float-of", "host-read", """
        def step():
            loss = F.mse_loss(model(x), y)
            return float(loss.detach())  # HERE
        """, captures=False),
    Planted("tensor-bound", "host-read", """
        lengths = torch.tensor([3], device=device)
        def step():
            longest = lengths.max()
            return model(x)[:longest].sum()  # HERE
        """, ran="likely", captures=False),
    Planted("equal", "host-read", """
        def step():
            out = model(x)
            same = torch.equal(out, y)  # HERE
            return out.sum() if same else out.mean()
        """, captures=False),
    Planted("branch", "truth", """
        def step():
            loss = F.mse_loss(model(x), y)
            if loss > 1e6:  # HERE
                loss = loss * 0.5
            return loss
        """, captures=False),
    Planted("bool-of", "truth", """
        def step():
            loss = F.mse_loss(model(x), y)
            fine = bool(torch.isfinite(loss))  # HERE
            return loss if fine else y.sum()
        """, captures=False),
    Planted("inference", "truth", """
        @torch.inference_mode()
        def step():
            out = model(x)
            if (out > 1e6).any():  # HERE
                out = out * 0.5
            return out.sum()
        """, captures=False),
    Planted("assert", "truth", """
        def checked(out):
            assert torch.isfinite(out).all()  # HERE
            return out

        def step():
            return checked(model(x)).sum()
        """, captures=False),
    Planted("print", "print", """
        def step():
            loss = F.mse_loss(model(x), y)
            print(loss)  # HERE
            return loss
        """, captures=False),
    Planted("f-string", "print", """
        def step():
            loss = F.mse_loss(model(x), y)
            words = f"loss {loss:.3f}"  # HERE
            return loss
        """, captures=False),
    Planted("cpu", "to-host", """
        def step():
            out = model(x).detach().cpu()  # HERE
            return out
        """, captures=False),
    Planted("tolist", "to-host", """
        def step():
            out = model(x).argmax(-1)
            return {"first": out.tolist()[0]}  # HERE
        """, captures=False),
    Planted("synchronize", "synchronize", """
        def step():
            out = model(x).sum()
            if torch.cuda.is_available():
                torch.cuda.synchronize()  # HERE
            return out
        """, ran=None, captures=False),
    Planted("nonzero", "data-shape", """
        def step():
            out = model(x)
            places = torch.nonzero(out > 0)  # HERE
            return out.sum() + places.sum()
        """, captures=False),
    Planted("mask-index", "data-shape", """
        def step():
            out = model(x)
            return out[out > 0].sum()  # HERE
        """, captures=False),
    Planted("masked-select", "data-shape", """
        class Picks(nn.Module):
            def forward(self, value):
                return value.masked_select(value > 0).sum()  # HERE

        picks = Picks()
        def step():
            return picks(model(x))
        """, captures=False),
    Planted("unique", "data-shape", """
        tokens = torch.randint(0, 5, (16,), device=device)
        def step():
            seen = torch.unique(tokens)  # HERE
            return model(x).sum() + seen.sum()
        """, ran="likely", captures=False),
    Planted("repeats", "data-shape", """
        counts = torch.tensor([1, 2, 1, 3], device=device)
        def step():
            return model(x).repeat_interleave(counts, dim=0).sum()  # HERE
        """, ran="likely", captures=False),
    Planted("cholesky", "error-check", """
        def step():
            out = model(x)
            square = out.T @ out + 10 * torch.eye(8, device=device)
            return torch.linalg.cholesky(square).sum()  # HERE
        """, captures=False),
    Planted("host-made", "to-device", """
        def step():
            scale = torch.tensor([1.0, 2.0] * 4).to(device)  # HERE
            return (model(x) * scale).sum()
        """, ran="likely", captures=False),
    Planted("host-index", "to-device", """
        def step():
            return model(x)[[0, 2]].sum()  # HERE
        """, ran="likely", captures=False),
    Planted("host-numbers", "to-device", """
        def step():
            scale = torch.tensor([1.0, 2.0] * 4, device=device)  # HERE
            return (model(x) * scale).sum()
        """, ran=None, captures=False),
    Planted("growing", "growing", """
        cache = {"keys": torch.zeros(0, 8, device=device)}
        def step():
            new = model(x)
            cache["keys"] = torch.cat([cache["keys"], new.detach()])  # HERE
            return new @ cache["keys"].T
        """),
    Planted("carried", "new-address", """
        state = torch.zeros(4, 8, device=device)
        def step():
            global state
            state = torch.tanh(model(x) + state).detach()  # HERE
            return state.sum()
        """),
    Planted("counter", "changing-number", """
        done = 0
        def step():
            global done
            done = done + 1
            return model(x).sum() * done  # HERE
        """),
    Planted("step-number", "changing-number", """
        def step(number):
            return (model(x) * 0.9**number).sum()  # HERE
        """),
    Planted("varied", "changing-shape", """
        def step(number):
            return model(x[: 1 + number % 4]).sum()  # HERE
        """),
    Planted("sliced", "changing-shape", """
        def step(number):
            return model(x)[: 1 + number % 4].sum()  # HERE
        """),
    Planted("adam", "optimizer", """
        optimizer = torch.optim.Adam(model.parameters())
        def step():
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()  # HERE
            optimizer.zero_grad()
            return loss
        """, ran="look", captures=False),
    Planted("schedule", "learning-rate", """
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        def step():
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()  # HERE
            schedule.step()
            optimizer.zero_grad()
            return loss
        """),
    Planted("data-loader", "loader", """
        batches = iter(torch.utils.data.DataLoader(torch.randn(400, 8), batch_size=4, shuffle=True))
        def step():
            batch = next(batches)  # HERE
            return model(x).sum()
        """),
    Planted("python-random", "changing-number", """
        def step():
            scale = 1 + random.random()
            return model(x).sum() * scale  # HERE
        """),
    Planted("generator", "generator", """
        own = torch.Generator(device).manual_seed(1)
        def step():
            noise = torch.rand(4, 8, device=device, generator=own)  # HERE
            return (model(x) + noise).sum()
        """, ran="likely"),
    Planted("seeded", "seed", """
        def step():
            torch.manual_seed(3)  # HERE
            return F.dropout(model(x), 0.5).sum()
        """, ran="likely"),
    Planted("path", "changing-path", """
        calls = []
        def step():
            calls.append(1)
            out = model(x)
            if len(calls) % 2:
                out = out.relu()  # HERE
            return out.sum()
        """),
)  # fmt: skip
"""One blocker each."""

CONTROLS = (
    Planted("forward", "", """
        def step():
            return model(x).sum()
        """, captures=True),
    Planted("training", "", """
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        def step():
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss
        """, captures=True),
    Planted("capturable", "", """
        optimizer = torch.optim.AdamW(model.parameters(), capturable=torch.cuda.is_available())
        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()
        """, captures=True),
    Planted("decode", "", """
        def setup():
            keys = torch.zeros(32, 8, device=device)
            place = torch.zeros(1, dtype=torch.long, device=device)
            return keys, place

        def step(keys, place):
            new = model(x)[:1].detach()
            keys.index_copy_(0, place, new)
            scores = new @ keys.T
            scores = scores.masked_fill(torch.arange(32, device=device) > place, float("-inf"))
            place.add_(1).remainder_(32)
            return scores.softmax(-1)
        """, setup="setup", captures=True),
    Planted("where", "", """
        def step():
            out = model(x)
            out = torch.where(out > 0, out, torch.zeros_like(out))
            out[out > 3] = 0.0
            return out.sum()
        """, captures=True),
    Planted("dropout", "", """
        def step():
            noise = torch.rand(4, 8, device=device)
            return F.dropout(model(x) + noise, 0.1).sum()
        """, captures=True),
    Planted("shapes", "", """
        def step():
            out = model(x)
            rows, columns = out.shape
            if rows > 2 and out.dim() == 2:
                out = out.reshape(columns, rows)
            return [out[i].sum() for i in range(min(columns, 3))][-1] / float(out.numel())
        """, captures=True),
    Planted("heads", "", """
        class Heads(nn.Module):
            def __init__(self):
                super().__init__()
                self.mix = nn.Linear(8, 24)
                self.register_buffer("scale", torch.full((), 0.5))

            def forward(self, value):
                if self.training and value.shape[0] == 0:
                    raise ValueError("empty")
                query, key, extra = self.mix(value).chunk(3, -1)
                return F.scaled_dot_product_attention(query[None], key[None], extra[None]) * self.scale

        heads = Heads().to(device)
        def step():
            with torch.no_grad():
                return heads(model(x)).sum()
        """, captures=True),
)  # fmt: skip
"""No blocker."""
