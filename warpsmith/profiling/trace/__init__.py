"""Traces of whole scripts under torch.profiler."""
