"""CUDA C++ through NVRTC."""
