"""Transfer: whether a kernel's gain in its benchmark reaches the program that calls it."""
