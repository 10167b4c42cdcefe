"""Operators of a program: extraction as definitions, and replacement by accepted kernels."""
