"""Judges one solution: workers, inputs, correctness, timing, statistics and the gate."""
