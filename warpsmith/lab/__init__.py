"""Judges one solution: workers, inputs, correctness, timing, statistics and the gate."""

import os

# Read when torch loads its OpenMP runtime: the grader's threads must not spin while a side is timed.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
