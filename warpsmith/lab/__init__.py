"""The lab, which judges one solution: workers, inputs, correctness, timing, statistics and the gate."""

import os

# Torch's OpenMP runtime reads this when it is loaded: the grader's threads must not spin while a side is timed.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
