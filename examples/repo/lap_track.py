"""Program for repo mode: a tracker that assigns detections with noise to its tracks, frame by frame."""

import numpy as np
from lap import lapjv

rng = np.random.default_rng(0)
objects = rng.random((500, 2))
tracks = objects.copy()
for _ in range(60):
    objects += rng.normal(0, 0.004, objects.shape)
    order = rng.permutation(len(objects))
    seen = objects[order] + rng.normal(0, 0.004, objects.shape)
    cost = np.sqrt(((tracks[:, None] - seen[None]) ** 2).sum(-1))
    _, track_to_seen, _ = lapjv(cost)
    tracks = 0.5 * tracks + 0.5 * seen[track_to_seen]
assert tracks.shape == objects.shape
