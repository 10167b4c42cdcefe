"""A program in a process of its own, and what runs inside it."""
