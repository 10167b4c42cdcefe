"""Training step of a small ResNet on synthetic images, written as a first version would be.

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
"""Sizes by device: for tests on a CPU, of a ResNet-18 on a GPU."""


def options() -> argparse.Namespace:
    """Parse sizes from the command line; those not given depend on the device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=5)
    for name in SIZES["cpu"]:
        parser.add_argument(f"--{name}", type=int)
    arguments = parser.parse_args()
    for name, size in SIZES[arguments.device].items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, size)
    return arguments


class Images(Dataset[tuple[Tensor, int]]):
    """Noise images with a bright corner that encodes their class, augmented as photos would be."""

    def __init__(self, pixels: int, classes: int, count: int = 4096) -> None:
        self.pixels, self.classes, self.count = pixels, classes, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        generator = torch.Generator().manual_seed(index)
        label = index % self.classes
        image = torch.randint(256, (3, self.pixels + 4, self.pixels + 4), generator=generator, dtype=torch.uint8)
        image[:, 4:8, 4:8] = 255 * label // self.classes
        top, left = torch.randint(4, (2,), generator=generator).tolist()
        image = image[:, top : top + self.pixels, left : left + self.pixels]
        image = image.flip(-1) if index % 2 else image
        return (image.float() / 255 - 0.45) / 0.225, label


class Residual(nn.Module):
    """Two convolutions with a skip connection."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width)])
        self.skip = nn.Conv2d(inputs, width, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, inputs, height, width) to `width` channels, smaller by the stride."""
        inner = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(inner)) + self.skip(x))


class ResNet(nn.Module):
    """Model from images to logits."""

    def __init__(self, width: int, blocks: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        stages: list[nn.Module] = []
        for stage in range(4):
            channels = width << stage
            for block in range(blocks):
                narrows = stage > 0 and block == 0
                stages.append(Residual(channels // 2 if narrows else channels, channels, 2 if narrows else 1))
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(width << 3, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Map (batch, 3, pixels, pixels) to (batch, classes)."""
        return self.head(self.stages(self.stem(images)).mean(dim=(2, 3)))


arguments = options()
device = torch.device(arguments.device)
model = ResNet(arguments.width, arguments.blocks, arguments.classes).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loader = DataLoader(
    Images(arguments.pixels, arguments.classes), batch_size=arguments.batch, shuffle=True, drop_last=True
)
batches = iter(loader)
history: list[float] = []


def train_step() -> float:
    """Train on the next batch, and return its loss."""
    global batches
    try:
        images, labels = next(batches)
    except StopIteration:
        batches = iter(loader)
        images, labels = next(batches)
    loss = functional.cross_entropy(model(images.to(device)), labels.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    return history[-1]


def main() -> None:
    """Train for several steps."""
    for index in range(arguments.steps):
        with record_function("step"):
            loss = train_step()
        print(f"step {index}: loss {loss:.3f}")  # noqa: T201


if __name__ == "__main__":
    main()
