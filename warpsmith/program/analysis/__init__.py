"""Analysis of a program: the time of its step, the bottleneck, and recommendations."""
