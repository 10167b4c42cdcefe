"""Grading of outputs: bounds, rounding, other orders of summation, and odd sizes."""
