"""Import of PyTorch code: functions, modules and KernelBench problems become definitions."""
