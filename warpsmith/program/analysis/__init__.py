"""Where a program's step loses its time, and what to try."""
