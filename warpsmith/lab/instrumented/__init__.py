"""Candidates under tools that need a process of their own: compute-sanitizer and Nsight Compute."""
