"""CUDA graph check: watch a program's steps, attempt to capture them, and name what stands in the way."""
