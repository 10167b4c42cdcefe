"""Walls around a process that runs a candidate: Landlock, seccomp, namespaces and limits."""
