"""A small ResNet's training step on made-up images as a first version is written.

The loader works in the program's own process, nothing is pinned, everything is float32, and each step waits for
its own loss.

python examples/programs/image.py --steps 5
warpsmith program analyze examples/programs/image.py --step train_step
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

SIZES = {
    "cpu": {"width": 8, "blocks": 1, "batch": 8, "pixels": 16, "classes": 10},
    "cuda": {"width": 64, "blocks": 2, "batch": 128, "pixels": 160, "classes": 1000},
}
"""On a CPU for tests, on a GPU those of a ResNet-18."""


def options() -> argparse.Namespace:
    """Sizes from the command line; what is not given depends on the device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=5)
    for name in SIZES["cpu"]:
        parser.add_argument(f"--{name}", type=int)
    given = parser.parse_args()
    for name, size in SIZES[given.device].items():
        if getattr(given, name) is None:
            setattr(given, name, size)
    return given


class Images(Dataset[tuple[Tensor, int]]):
    """Images of noise with a bright corner that tells their class, augmented as photos would be."""

    def __init__(self, pixels: int, classes: int, count: int = 4096) -> None:
        self.pixels, self.classes, self.count = pixels, classes, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> tuple[Tensor, int]:
        source = torch.Generator().manual_seed(number)
        kind = number % self.classes
        image = torch.randint(256, (3, self.pixels + 4, self.pixels + 4), generator=source, dtype=torch.uint8)
        image[:, 4:8, 4:8] = 255 * kind // self.classes
        top, left = torch.randint(4, (2,), generator=source).tolist()
        image = image[:, top : top + self.pixels, left : left + self.pixels]
        image = image.flip(-1) if number % 2 else image
        return (image.float() / 255 - 0.45) / 0.225, kind


class Residual(nn.Module):
    """Two convolutions beside a skip connection."""

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, width, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width)])
        self.skip = nn.Conv2d(inside, width, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """(batch, inside, height, width of the image) to as many channels as it is wide, smaller by its stride."""
        inner = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(inner)) + self.skip(x))


class ResNet(nn.Module):
    """Images to logits."""

    def __init__(self, width: int, blocks: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        stages: list[nn.Module] = []
        for stage in range(4):
            wide = width << stage
            for block in range(blocks):
                narrows = stage > 0 and block == 0
                stages.append(Residual(wide // 2 if narrows else wide, wide, 2 if narrows else 1))
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(width << 3, classes)

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 3, pixels, pixels) to (batch, classes)."""
        return self.head(self.stages(self.stem(images)).mean(dim=(2, 3)))


given = options()
device = torch.device(given.device)
model = ResNet(given.width, given.blocks, given.classes).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loader = DataLoader(Images(given.pixels, given.classes), batch_size=given.batch, shuffle=True, drop_last=True)
batches = iter(loader)
history: list[float] = []


def train_step() -> float:
    """One step on the next batch; its loss."""
    global batches
    try:
        images, kinds = next(batches)
    except StopIteration:
        batches = iter(loader)
        images, kinds = next(batches)
    loss = functional.cross_entropy(model(images.to(device)), kinds.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    return history[-1]


def main() -> None:
    """Train for some steps."""
    for number in range(given.steps):
        with record_function("step"):
            loss = train_step()
        print(f"step {number}: loss {loss:.3f}")  # noqa: T201


if __name__ == "__main__":
    main()
