"""Autopilot of a compiled program: its regions get kernels one after the other, as far as the whole step gains."""
