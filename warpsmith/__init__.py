"""Warpsmith: the agent proposes, the lab decides."""

__version__ = "0.1.0"
