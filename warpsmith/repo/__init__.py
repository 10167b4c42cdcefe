"""Repo mode: a kernel inside another code base, judged by that project's own tests and benchmark."""
