"""Draft of the project settings from the repository: its kernels, its build, its tests and its benchmarks."""
