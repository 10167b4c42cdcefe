"""Whether outputs are right: bounds, rounding, other orders of summation, and odd sizes."""
