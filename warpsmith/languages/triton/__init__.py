"""Triton on GPUs, and its interpreter on a CPU."""
